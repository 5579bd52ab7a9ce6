"""The one rule of what is a secret: by its name, by its place, or in a URL. Every record, page and line passes here.

A secret reaches the process that needs it by the environment or by a file for its owner alone, never as an argument.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

MASK = "***"
_WORDS = (
    r"pass(word|wd|phrase|code)?|pwd|secret|token|credentials?|jaas|sas|signature|sig|authorization|cookie|dsn|"
    r"(api|access|account|private|secret|encryption|signing|shared|auth|client|license|service)[._-]?key(_?id)?"
)
#: a name with one of the words between dots, dashes, underscores or humps
_NAME = re.compile(rf"(^|[^a-z])({_WORDS})s?([^a-z]|$)|password|secret|(api|access|private)key|\.pem$")
#: names of what is about a secret and is none
_ABOUT = re.compile(r"(variable|from_env|enabled|provider|providers|file|path|location|type|class|algorithm|url|uri)$")
#: keys below which every value may be a secret, whatever its name
PLACES = ("environment", "options", "arguments")
#: keys whose values name environment variables
_VARIABLES = ("headers_from_env",)
#: a value that only refers to where the secret is: ${VARIABLE}, Spark's ${env:VARIABLE}, a place of a job's command
_REFERS = re.compile(r"(\$\{(env[:.])?[A-Za-z_][A-Za-z0-9_]*\}|\{[a-z]+\})+")
_HARMLESS = re.compile(r"|true|false|yes|no|on|off|null|none|-?\d{1,5}(\.\d{1,5})?", re.IGNORECASE)
#: the user part of a URL; that of Azure's schemes is a container
_USER = re.compile(r"(?<![a-z])(?!abfss?:|wasbs?:)([a-z][a-z0-9+.-]*://)(?:[^\s/@'\"<>]*:[^\s@'\"<>]*|[^\s/@'\"<>]+)@")
_QUERY = re.compile(r"([?&;]([\w.-]+)=)([^\s&;#'\"<>]+)")
_PAIR = re.compile(r"((?:^|(?<=[\s\"'{(,;-]))-{0,2}D?([\w.-]+)[\"']?\s?=\s?)(\"[^\"]*\"|'[^']*'|\S+)")
#: forms that stand for a secret in settings, but not in sentences
_OPTION = re.compile(r"((?:^|\s)--?([\w.-]+)\s+)(\"[^\"]*\"|'[^']*'|\S+)")
_QUOTED = re.compile(r"([\"']([\w.-]+)[\"']\s*:\s*)(\"[^\"]*\"|'[^']*'|[^\s,}]+)")
_HEADER = re.compile(r"(\b(authorization|cookie|x-[\w-]+|[\w-]*token)\s*:\s*)([^'\"\r\n]+)", re.IGNORECASE)
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*://[^/?#]+/?)(.*)", re.DOTALL)
#: shorter values are not looked for in texts, where they would be found by chance
_LEAST = 6
#: nor are short words and paths, which settings and sentences have alike
_LIKE_A_KEY = re.compile(r"(?=.*\d)(?=.*[A-Za-z]).{8,}")
_WORD = re.compile(r"[a-z_-]{1,11}")
_FOLDERS = re.compile(r"(~|\.{1,2})?/(.*/)?[a-z]{3,}([/.].*)?", re.DOTALL)

_known: set[str] = set()


def is_secret_name(name: str) -> bool:
    """True for a name such as sasl.password, spark.hadoop.fs.s3a.secret.key, API_TOKEN or accessKey."""
    humps = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return _NAME.search(humps) is not None and _ABOUT.search(humps) is None


def masked(value: Any, key: str = "", inside: str = "") -> Any:
    """The settings with *** in place of each secret; what refers to a variable of the environment stays.

    key: the name of the value. inside: the key in PLACES below which it lies.
    """
    if isinstance(value, Mapping):
        if key in _VARIABLES:
            return dict(value)
        below = inside or (key if key in PLACES or is_secret_name(key) else "")
        return {name: masked(one, str(name), below) for name, one in value.items()}
    if isinstance(value, list | tuple):
        if key == "command" and all(isinstance(one, str) for one in value):
            return _arguments(value)
        return [masked(one, key, inside) for one in value]
    named = is_secret_name(key)
    if value is None or isinstance(value, bool) or not (isinstance(value, str) or inside or named):
        return value
    text = str(value)
    if _REFERS.fullmatch(text) or (_HARMLESS.fullmatch(text) and not (named and text.isdigit())):
        return value
    if inside or named:
        return MASK
    if key == "url" and (parts := _ORIGIN.fullmatch(text)):
        return _hidden(parts[1]) + (MASK if parts[2] else "")
    return _hidden(text)


def _arguments(command: Sequence[str]) -> list[str]:
    """The arguments of a command, without what follows a secret's name."""
    found: list[str] = []
    for before, argument in zip(["", *command], command, strict=False):
        named = re.fullmatch(r"--?([\w.-]+)", before)
        hides = named is not None and is_secret_name(named[1]) and not _REFERS.fullmatch(argument)
        found.append(MASK if hides else _hidden(argument))
    return found


def _hidden(text: str) -> str:
    """A setting's text without the secrets that stand in it."""
    for form in (_OPTION, _QUOTED, _HEADER, _PAIR):
        text = _without(form, text)
    return _reachable(text)


def _reachable(text: str) -> str:
    """A text whose URLs have no secrets."""
    return _without(_QUERY, _USER.sub(rf"\1{MASK}@", text)) if "://" in text else text


def _without(form: re.Pattern[str], text: str) -> str:
    def hidden(found: re.Match[str]) -> str:
        refers = _REFERS.fullmatch(found[3].strip("\"'")) or re.fullmatch(r"\*{3}\W*", found[3])
        hides = is_secret_name(found[2]) and not refers
        return f"{found[1]}{MASK}" if hides else found[0]

    return form.sub(hidden, text)


def names_user(url: str) -> bool:
    """True for a URL with a user part."""
    return _USER.match(url) is not None


def learn(settings: Any) -> None:
    """Remembers the secrets in settings, so that masked_text finds them wherever this process shows them."""
    shown = masked(settings)
    others = {*_texts(shown)}
    know(text for text in _hidden_texts(settings, shown) if text not in others and not _FOLDERS.fullmatch(text))


def know(values: Iterable[str]) -> None:
    """Remembers texts that are secrets."""
    for value in values:
        if len(value) >= _LEAST and MASK not in value and not _WORD.fullmatch(value):
            _known.update({value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1],
                           html.escape(value), quote(value, safe=""), repr(value)[1:-1]})  # fmt: skip


def without_known(text: str) -> str:
    """A text without the secrets that this process knows."""
    for value in sorted((one for one in _known if one in text), key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def masked_text(text: str) -> str:
    """A line, page or message without the secrets that this process knows, and those that its URLs show."""
    return _reachable(without_known(text))


def masked_message(text: str) -> str:
    """A message of somebody's library, without pairs such as password=… either."""
    return _without(_PAIR, masked_text(text)) if "=" in text else masked_text(text)


def shown(record: Any) -> Any:
    """A record with masked_text in place of each text; a single word that only looks like a secret stays."""
    text = json.dumps(record, ensure_ascii=False, default=str)
    return record if masked_text(text) == text else _shown(record)


def _shown(record: Any) -> Any:
    if isinstance(record, Mapping):
        return {key: _shown(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [_shown(value) for value in record]
    return masked_text(record) if isinstance(record, str) and not re.fullmatch(r"[a-z_]*", record) else record


def restored(record: Any, now: Any) -> Any:
    """A masked record with the secrets that the same settings have now."""
    if isinstance(record, Mapping) and isinstance(now, Mapping):
        return {key: restored(value, now.get(key)) for key, value in record.items()}
    if isinstance(record, list | tuple) and isinstance(now, list | tuple) and len(record) == len(now):
        return [restored(*pair) for pair in zip(record, now, strict=True)]
    return now if any(MASK in text for text in _texts(record)) else record


def places_of_masks(record: Any, place: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields the keys of a record that stand for secrets."""
    if isinstance(record, Mapping):
        for key, value in record.items():
            yield from places_of_masks(value, (*place, str(key)))
    elif isinstance(record, list | tuple):
        for number, value in enumerate(record):
            yield from places_of_masks(value, (*place, str(number)))
    elif isinstance(record, str) and MASK in record and place[-1:] != ("description",):
        yield ".".join(place)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _hidden_texts(value: Any, shown: Any) -> Iterator[str]:
    """Yields the parts of the settings for which *** stands in the masked ones."""
    for text, mask in zip(_texts(value), _texts(shown), strict=True):
        if text != mask:
            pattern = "(.+?)".join(re.escape(part) for part in mask.split(MASK))
            found = re.fullmatch(pattern, text, re.DOTALL)
            yield from (part for group in (found.groups() if found else (text,)) for part in _parts(group))


def _parts(hidden: str) -> Iterator[str]:
    """A hidden text, users and passwords in its URLs, and what looks like a key in a path or a header."""
    bare = hidden.strip("\"'")
    yield from (hidden, bare, bare.partition(":")[2])
    for found in _USER.finditer(bare):
        user = found[0].removeprefix(found[1])[:-1]
        yield from (user, user.partition(":")[2])
    yield from (word for word in re.split(r"[\s/?&=:]+", bare) if _LIKE_A_KEY.fullmatch(word))
