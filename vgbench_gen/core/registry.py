"""Plug-ins: one file each, registered by a decorator, found by scanning the folder.

Packages outside this one register through entry points of the group `vgbench_gen.<kind>`; loading the entry
point must run the decorator.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from vgbench_gen.core.errors import UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """Named plug-ins of one kind.

    Args:
        kind: singular noun for messages, e.g. "task".
        package: dotted name of the folder that is scanned on first use.
        require: raises where a plug-in lacks what the rest of the program relies on.
    """

    def __init__(self, kind: str, package: str, require: Callable[[T], None] | None = None) -> None:
        self.kind, self.package, self.require = kind, package, require
        self._entries: dict[str, T] = {}
        self._scanned = False

    def register(self, name: str) -> Callable[[type], type]:
        """Class decorator: create one instance and keep it under `name`.

        Raises:
            ValueError: the name is taken (two plug-ins would silently shadow each other otherwise).
        """

        def keep(cls: type) -> type:
            # A module that is loaded again may register its own class again; a copied file may not.
            old = type(self._entries[name]) if name in self._entries else cls
            if (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ValueError(f"two {self.kind} plug-ins are called {name!r}: {self._entries[name]!r} and {cls!r}")
            plug_in: T = cls()
            if self.require is not None:
                self.require(plug_in)
            self._entries[name] = plug_in
            return cls

        return keep

    def __getitem__(self, name: str) -> T:
        self._scan()
        if name not in self._entries:
            near = difflib.get_close_matches(name, self._entries, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise UnknownNameError(f"no {self.kind} is called {name!r}.{hint} Known: {', '.join(self.names())}")
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

    def _scan(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        folder = importlib.import_module(self.package)
        for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda m: m.name):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self.package}.{module.name}")
        group = f"vgbench_gen.{self.package.rpartition('.')[2]}"
        for entry in sorted(importlib.metadata.entry_points(group=group), key=lambda e: e.name):
            entry.load()
