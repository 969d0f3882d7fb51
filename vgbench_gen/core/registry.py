"""Plug-ins: one file each, registered by a decorator, found by scanning the folder.

Packages outside this one register through entry points of the group `vgbench_gen.<folder>`: loading the entry point
runs the decorator, which registers a plug-in under the entry point's own name.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from vgbench_gen.core.errors import PluginError, UnknownNameError
from vgbench_gen.core.surroundings import explain_surroundings

T = TypeVar("T")


class NameTaken(ValueError):
    """Two plug-ins of one kind have one name."""


class Registry(Generic[T]):
    """Named plug-ins of one kind.

    Args:
        kind: singular noun for messages, e.g. "task".
        package: dotted name of the folder that is scanned on first use.
        admit: called with each plug-in before it is kept; raises where it lacks what the rest of the program needs.
    """

    def __init__(self, kind: str, package: str, admit: Callable[[T], None] | None = None) -> None:
        self.kind, self.package, self.admit = kind, package, admit
        self._entries: dict[str, T] = {}
        self._scanned = False

    def register(self, name: str) -> Callable[[type], type]:
        """Class decorator: create one instance and keep it under `name`.

        Raises:
            NameTaken: the name is taken (two plug-ins would silently shadow each other otherwise).
        """

        def keep(cls: type) -> type:
            # A module that is loaded again may register its own class again; a copied file may not.
            old = type(self._entries[name]) if name in self._entries else cls
            if (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
                raise NameTaken(f"two {self.kind} plug-ins are called {name!r}: {_name(old)} and {_name(cls)}")
            plug_in: T = cls()
            if self.admit is not None:
                self.admit(plug_in)
            self._entries[name] = plug_in
            return cls

        return keep

    def __getitem__(self, name: str) -> T:
        self._scan()
        if name not in self._entries:
            raise make_unknown_error(self.kind, name, self.names())
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """All names, sorted, so that iteration never depends on import order."""
        self._scan()
        return sorted(self._entries)

    def values(self) -> list[T]:
        """All plug-ins in the order of their names."""
        return [self[name] for name in self.names()]

    @property
    def group(self) -> str:
        """Name of the entry points by which packages from outside bring plug-ins of this kind."""
        return f"vgbench_gen.{self.package.rpartition('.')[2]}"

    def _scan(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        folder = importlib.import_module(self.package)
        for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda m: m.name):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self.package}.{module.name}")
        for entry in sorted(importlib.metadata.entry_points(group=self.group), key=lambda e: e.name):
            self._load(entry)

    def _load(self, entry: importlib.metadata.EntryPoint) -> None:
        """Import what an entry point names and see that it registered a plug-in under the entry point's name.

        Raises:
            PluginError: it did not. Left out in silence, it would be missed only where its name is asked for.
        """
        package = entry.dist.name if entry.dist is not None else entry.module
        try:
            entry.load()
            if entry.name in self._entries:
                return
            problem = f"nothing registered as {entry.name!r}"
            if others := sorted(name for name, kept in self._entries.items() if type(kept).__module__ == entry.module):
                problem += f", but {', '.join(map(repr, others))} was"
            remedy = "Give the decorator and the entry point one name"
        except NameTaken as error:
            problem, remedy = f"{type(error).__name__}: {error}", "Give one of the two another name"
        except Exception as error:
            if explain_surroundings(error):
                raise  # no fault of the package
            problem = f"{type(error).__name__}: {error}"
            remedy = f'Mend it (`python -c "import {entry.module}"` tells more)'
        self._scanned = False  # so that the next look-up says it again
        raise PluginError(
            f"entry point {entry.name} = {entry.value} of {package}: found {problem}; expected a module that "
            f"registers a {self.kind} under that name. {remedy}, or uninstall {package}."
        )


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def make_unknown_error(kind: str, name: str, known: Sequence[str]) -> UnknownNameError:
    """The error of a name that is none of `known`."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return UnknownNameError(f"no {kind} is called {name!r}.{hint} Known: {', '.join(known)}")
