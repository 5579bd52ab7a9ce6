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
#: keys whose values are commands, with their arguments: of a job, and of the faults that it declares
_COMMANDS = ("command", "kill", "start", "restart", "cut", "heal", "rescale")
#: keys whose values name environment variables
_VARIABLES = ("headers_from_env",)
#: a value that only refers to where the secret is: ${VARIABLE}, Spark's ${env:VARIABLE}, a place of a job's command
_REFERS = re.compile(r"(\$\{(env[:.])?[A-Za-z_][A-Za-z0-9_]*\}|\{[a-z]+\})+")
_HARMLESS = re.compile(r"|true|false|yes|no|on|off|null|none|-?\d{1,5}(\.\d{1,5})?", re.IGNORECASE)
#: a URL, up to what ends it in a sentence
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}://[^\s'\"<>]+")
#: schemes of Azure, where a container's name stands before the @
_CONTAINERS = ("abfs", "wasb")
#: what stands before a value, with its name: forms that end at once, whatever the text
_QUERY = re.compile(r"([?&;])([\w.-]++)=")
_PAIR = re.compile(r"(?<![\w.-])()([\w.-]++)[\"']?\s?=\s?")
#: forms that stand for a secret in settings, but not in sentences
_OPTION = re.compile(r"(?:^|(?<=\s))(--?)(\w[\w.-]*+)\s++")
_QUOTED = re.compile(r"([\"'])([\w.-]++)[\"']\s?:\s?")
_HEADER = re.compile(r"(?<![\w.-])()([\w-]++)\s?:\s?(?!//)")
_WORD_OF_QUERY = re.compile(r"[^\s&;#'\"<>]+")
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'|\S+")
_OF_JSON = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s,}]+")
_LINE = re.compile(r"[^'\"\r\n]+")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*://[^/?#]+/?)(.*)", re.DOTALL)
#: shorter values are not looked for in texts, where they would be found by chance
_LEAST = 6
#: form of a key; and those of words and paths, which are not looked for: settings and sentences have them alike
_LIKE_A_KEY = re.compile(r"(?=.*\d)(?=.*[A-Za-z]).{8,}")
_WORD = re.compile(r"[a-z_-]{1,11}")
_FOLDERS = re.compile(r"(~|\.{1,2})?/(.*/)?[a-z]{3,}([/.].*)?", re.DOTALL)

_known: set[str] = set()


def is_secret_name(name: str) -> bool:
    """True for a name such as sasl.password, spark.hadoop.fs.s3a.secret.key, API_TOKEN or accessKey."""
    humps = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return _NAME.search(humps) is not None and _ABOUT.search(humps) is None


def masked(value: object) -> Any:
    """The settings with *** in place of each secret; what refers to a variable of the environment stays."""
    return _masked(value, "", False, [])


def _masked(value: object, key: str, inside: bool, hidden: list[str]) -> Any:
    """The value of a key. inside: it lies below one of PLACES. hidden: takes each text that *** stands for."""
    named = is_secret_name(key) or key in PLACES
    if isinstance(value, Mapping):
        if key in _VARIABLES:
            return dict(value)
        return {name: _masked(one, str(name), inside or named, hidden) for name, one in value.items()}
    if isinstance(value, list | tuple):
        if key in _COMMANDS and not inside and all(isinstance(one, str) for one in value):
            return _arguments(value, hidden)
        return [_masked(one, key, inside, hidden) for one in value]
    if value is None or isinstance(value, bool) or not (isinstance(value, str) or inside or named):
        return value
    text = str(value)
    if _REFERS.fullmatch(text) or (_HARMLESS.fullmatch(text) and not (named and text.isdigit())):
        return value
    if inside or named:
        hidden.append(text)
        return MASK
    if key == "url" and (parts := _ORIGIN.fullmatch(text)):
        hidden.extend([parts[2]] if parts[2] else [])
        return _hidden(parts[1], hidden) + (MASK if parts[2] else "")
    return _hidden(text, hidden)


def _arguments(command: Sequence[str], hidden: list[str]) -> list[str]:
    """The arguments of a command, without what follows a secret's name."""
    kept: list[str] = []
    for before, argument in zip(["", *command], command, strict=False):
        named = re.fullmatch(r"--?([\w.-]+)", before)
        hides = named is not None and is_secret_name(named[1]) and not _REFERS.fullmatch(argument)
        hidden.extend([argument] if hides else [])
        kept.append(MASK if hides else _hidden(argument, hidden))
    return kept


def _hidden(text: str, hidden: list[str]) -> str:
    """A setting's text without the secrets that stand in it."""
    text = _reachable(text, hidden)
    for form, value in ((_OPTION, _VALUE), (_QUOTED, _OF_JSON), (_HEADER, _LINE), (_PAIR, _VALUE)):
        text = _without(form, value, text, hidden)
    return text


def _reachable(text: str, hidden: list[str]) -> str:
    """A text whose URLs have no secrets."""
    if "://" not in text:
        return text
    return _without(_QUERY, _WORD_OF_QUERY, _URL.sub(lambda url: _without_user(url[0], hidden), text), hidden)


def _user_of(url: str) -> str:
    """The user part of a URL; empty without one."""
    scheme, _, rest = url.partition("://")
    first = rest.partition("/")[0]
    # a password may hold a slash, which should have been %2F; a port may not
    has_password = ":" in first and not re.fullmatch(r"[^@]*:\d{1,5}", first)
    end = (rest if has_password else first).rfind("@")
    is_container = scheme.lower().startswith(_CONTAINERS) and ":" not in first
    return "" if end < 0 or is_container else rest[:end]


def _without_user(url: str, hidden: list[str]) -> str:
    user = _user_of(url)
    if user in ("", MASK):
        return url
    hidden.append(user)
    return url.replace(f"://{user}@", f"://{MASK}@", 1)


def _without(form: re.Pattern[str], value: re.Pattern[str], text: str, hidden: list[str]) -> str:
    """A text without the values that follow a secret's name in this form."""
    kept, copied, at = list[str](), 0, 0
    while name := form.search(text, at):
        at = name.end()
        if is_secret_name(name[2]) and (secret := value.match(text, at)):
            bare = secret[0].strip("\"'")
            if not _REFERS.fullmatch(bare) and not bare.startswith(MASK):
                kept += [text[copied:at], MASK]
                copied = secret.end()
                hidden.append(secret[0])
            at = secret.end()
    return "".join(kept) + text[copied:]


def names_user(url: str) -> bool:
    """True for a URL with a user part."""
    return "://" in url and _user_of(url) != ""


def learn(settings: object) -> None:
    """Remembers the secrets in settings, so that masked_text finds them wherever this process shows them."""
    hidden: list[str] = []
    others = {*_texts(_masked(settings, "", False, hidden))}
    parts = (part for text in dict.fromkeys(hidden) for part in _parts(text))
    know(part for part in parts if part not in others and not _FOLDERS.fullmatch(part))


def know(values: Iterable[str]) -> None:
    """Remembers texts that are secrets."""
    for value in values:
        if len(value) >= _LEAST and MASK not in value and not _WORD.fullmatch(value):
            _known.update((value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]))
            _known.update((html.escape(value), quote(value, safe=""), repr(value)[1:-1]))


def without_known(text: str) -> str:
    """A text without the secrets that this process knows."""
    for value in sorted((one for one in _known if one in text), key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def masked_text(text: str) -> str:
    """A line, page or message without the secrets that this process knows, and those that its URLs show."""
    return _reachable(without_known(text), [])


def masked_message(text: str) -> str:
    """A message of somebody's library, without pairs such as password=… either."""
    return _without(_PAIR, _VALUE, masked_text(text), []) if "=" in text else masked_text(text)


def shown(record: object) -> Any:
    """A record with masked_text in place of each text; a single word of which only a part is a secret stays."""
    text = json.dumps(record, ensure_ascii=False, default=str)
    return record if masked_text(text) == text else _shown(record)


def _shown(record: object) -> Any:
    if isinstance(record, Mapping):
        return {key: _shown(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [_shown(value) for value in record]
    if not isinstance(record, str) or (re.fullmatch(r"[a-z_]*", record) and record not in _known):
        return record
    return masked_text(record)


def restored(record: object, now: object) -> Any:
    """A masked record with the secrets that the same settings have now."""
    if isinstance(record, Mapping) and isinstance(now, Mapping):
        return {key: restored(value, now.get(key)) for key, value in record.items()}
    if isinstance(record, list | tuple) and isinstance(now, list | tuple) and len(record) == len(now):
        return [restored(*pair) for pair in zip(record, now, strict=True)]
    return now if any(MASK in text for text in _texts(record)) else record


def places_of_masks(record: object, place: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields the keys of a record that stand for secrets."""
    if isinstance(record, Mapping):
        for key, value in record.items():
            yield from places_of_masks(value, (*place, str(key)))
    elif isinstance(record, list | tuple):
        for number, value in enumerate(record):
            yield from places_of_masks(value, (*place, str(number)))
    elif isinstance(record, str) and MASK in record and place[-1:] != ("description",):
        yield ".".join(place)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _parts(hidden: str) -> Iterator[str]:
    """A hidden text, users and passwords in its URLs, and what looks like a key in a path or a header."""
    bare = hidden.strip("\"'")
    yield from (hidden, bare, bare.partition(":")[2])
    for url in _URL.findall(bare):
        yield from (_user_of(url), _user_of(url).partition(":")[2])
    yield from (word for word in re.split(r"[\s/?&=:]+", bare) if _LIKE_A_KEY.fullmatch(word))
