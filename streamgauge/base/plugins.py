"""Finds code by name: a part of this project, one that an installed package registers, or `package.module:name`.

A package registers a part as an entry point of the group `streamgauge.<kind>`. Its metadata tells name and place;
nothing is imported before a part is loaded.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.shipped import missing_extra

_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class Parts:
    """Parts of one kind, by name. A built-in part stands here itself, or as the `package.module:name` of its code."""

    def __init__(self, kind: str, built_in: Mapping[str, object], own: str = "") -> None:
        """own: what `package.module:…` of a user's own code is called; empty where a part must be registered."""
        self.kind, self.built_in, self._own = kind, built_in, own

    def names(self) -> tuple[str, ...]:
        """Lists the built-in parts, then those of installed packages."""
        return (*self.built_in, *sorted(set(_registered(self.kind)) - set(self.built_in)))

    def outside(self, name: str) -> str | None:
        """Returns the place of code that is not of this project; None for a name that is built in or unknown."""
        if name in self.built_in:
            return None
        if self._own and _PLACE.fullmatch(name):
            return name
        return next(iter(_registered(self.kind).get(name, ())), None)

    def hidden(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Lists (name, place) of the parts that packages register under these names, which are taken already."""
        return [(name, place) for name in names for place in _registered(self.kind).get(name, ())]

    def check(self, name: str, key: str) -> None:
        """Checks a name, and imports nothing. Raises UserError, which lists what is allowed."""
        if name not in self.built_in:
            self._place(name, key)

    def load(self, name: str, key: str) -> object:
        """Returns the part of this name. Raises UserError, one line that begins with the key."""
        part = self.built_in.get(name) or self._place(name, key)
        return loaded(part, key) if isinstance(part, str) else part

    def version(self, name: str) -> str | None:
        """Returns package and version of a part that a package registers; None for other parts."""
        packages = {} if name in self.built_in else _registered(self.kind).get(name, {})
        return next((f"{package} {version(package)}" for package in packages.values()), None)

    def packages(self) -> dict[Path, Path]:
        """Maps packages that register parts, as folders or files of single modules, to the namespaces around them.

        Imports nothing but namespaces, which hold no code.
        """
        modules = {place.partition(":")[0] for places in _registered(self.kind).values() for place in places}
        return {place: parent for module in sorted(modules) for place, parent in _package(module)}

    def metadata(self) -> str:
        """Returns the entry points of this kind, as the metadata of one package may hold them."""
        rows = [f"{name} = {place}\n" for name, places in _registered(self.kind).items() for place in places]
        return f"[streamgauge.{self.kind}]\n{''.join(rows)}"

    def _place(self, name: str, key: str) -> str:
        place = self.outside(name)
        if place is None:
            own = f", or package.module:{self._own}" if self._own else ""
            raise UserError(f"{key}: found {name!r}, allowed: {', '.join(self.names())}{own}")
        packages = _registered(self.kind).get(name, {})
        if len(packages) > 1:
            both = " and ".join(packages.values())
            raise UserError(f"{key}: {name} is registered by {both}; uninstall all but one")
        if not _PLACE.fullmatch(place):
            raise UserError(f"{key}: {packages[place]} registers {place!r} as {name}, allowed: package.module:name")
        return place


def loaded(place: str, key: str) -> object:
    """Imports the object at `package.module:name`. Raises UserError, one line that begins with the key."""
    module, _, name = place.partition(":")
    try:
        part: object = getattr(importlib.import_module(module), name)
    except UserError as problem:
        raise UserError(f"{key}: {problem}") from None
    except (Exception, SystemExit) as problem:  # somebody's own module may do anything
        hint = ""
        if isinstance(problem, ModuleNotFoundError):
            if extra := missing_extra(problem):
                raise UserError(f"{key}: {extra}") from None
            hint = "; install its package, or put its folder on PYTHONPATH"
        what = " ".join(str(problem).split())
        raise UserError(f"{key}: {place} cannot be loaded: {type(problem).__name__}: {what}{hint}") from None
    return part


def _package(module: str) -> Iterator[tuple[Path, Path]]:
    """Yields the outermost package of a module that is no namespace, if there is one, and the namespaces around it."""
    parts = module.split(".")
    for depth in range(len(parts)):
        spec = find_spec(".".join(parts[: depth + 1]))
        if spec is None:
            return
        if spec.origin:
            origin = Path(spec.origin)
            yield origin.parent if spec.submodule_search_locations else origin, Path(*parts[:depth])
            return


def _registered(kind: str) -> Mapping[str, Mapping[str, str]]:
    return _entry_points(kind, tuple(sys.path))


@cache
def _entry_points(kind: str, _path: tuple[str, ...]) -> Mapping[str, Mapping[str, str]]:
    """Reads the entry points of a kind from the metadata on this path: name -> place -> package."""
    parts: dict[str, dict[str, str]] = {}
    for point in entry_points(group=f"streamgauge.{kind}"):
        place, package = re.sub(r"\s", "", point.value), (point.dist.name if point.dist else None) or "a package"
        parts.setdefault(point.name, {}).setdefault(place, package)
    return parts
