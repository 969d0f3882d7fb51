from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vgbench_gen.core.errors import PluginError, UnknownNameError
from vgbench_gen.core.registry import Registry

PLUGIN = """
from {package}.registry import animals

@animals.register("{name}")
class {cls}:
    sound = "{sound}"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An importable package `zoo_<n>.animals` with two plug-ins and a private module that must stay unread."""
    name = f"zoo_{abs(hash(tmp_path))}"
    folder = tmp_path / name / "animals"
    folder.mkdir(parents=True)
    (tmp_path / name / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (tmp_path / name / "registry.py").write_text(
        "from vgbench_gen.core.registry import Registry\n"
        f"animals: Registry[object] = Registry('animal', '{name}.animals')\n"
    )
    (folder / "zebra.py").write_text(PLUGIN.format(package=name, name="zebra", cls="Zebra", sound="bark"))
    (folder / "ant.py").write_text(PLUGIN.format(package=name, name="ant", cls="Ant", sound="none"))
    (folder / "_private.py").write_text("raise AssertionError('private modules are not scanned')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module]


def registry_of(package: str) -> Registry[object]:
    registry = importlib.import_module(f"{package}.registry").animals
    assert isinstance(registry, Registry)
    return registry


def test_the_folder_is_scanned_on_first_use_and_sorted(package: str) -> None:
    animals = registry_of(package)
    assert f"{package}.animals.ant" not in sys.modules
    assert list(animals) == animals.names() == ["ant", "zebra"]
    assert [getattr(a, "sound", "") for a in animals.values()] == ["none", "bark"]


def test_unknown_names_get_help(package: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        registry_of(package)["zebar"]
    assert str(caught.value) == "no animal is called 'zebar'. Did you mean zebra? Known: ant, zebra"
    with pytest.raises(UnknownNameError) as caught:
        registry_of(package)["quokka"]
    assert str(caught.value) == "no animal is called 'quokka'. Known: ant, zebra"


def test_twins_are_an_error() -> None:
    animals: Registry[object] = Registry("animal", "unused")

    @animals.register("ant")
    class Ant:
        pass

    with pytest.raises(ValueError, match=r"two animal plug-ins are called 'ant': .*Ant.* and .*Impostor"):

        @animals.register("ant")
        class Impostor:
            pass


def test_a_twin_file_in_the_folder_is_an_error(package: str, tmp_path: Path) -> None:
    (tmp_path / package / "animals" / "other.py").write_text(
        PLUGIN.format(package=package, name="ant", cls="Ant", sound="copied file, name not changed")
    )
    with pytest.raises(ValueError, match="two animal plug-ins are called 'ant'"):
        registry_of(package).names()


def test_other_packages_register_by_entry_points(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{package}_more.py").write_text(
        PLUGIN.format(package=package, name="quokka", cls="Quokka", sound="click")
    )
    entry = importlib.metadata.EntryPoint("quokka", f"{package}_more", "vgbench_gen.animals")
    asked: list[object] = []

    def entry_points(**selection: str) -> list[importlib.metadata.EntryPoint]:
        asked.append(selection)
        return [entry]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    assert registry_of(package).names() == ["ant", "quokka", "zebra"]
    assert asked == [{"group": "vgbench_gen.animals"}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import nowhere_at_all\n", "ModuleNotFoundError: No module named 'nowhere_at_all'.* tells more"),
        ("", "nothing registered as 'quokka'"),
        (
            PLUGIN.replace("{name}", "wombat"),
            "nothing registered as 'quokka', but 'wombat' was; .* Give the decorator and",
        ),
        (
            PLUGIN.replace("{name}", "ant"),
            "NameTaken: two animal plug-ins are called 'ant': .* Give one of the two another name",
        ),
    ],
)
def test_an_entry_point_that_brings_nothing_is_said(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    (tmp_path / f"{package}_more.py").write_text(text.format(package=package, cls="Quokka", sound="click"))
    entry = importlib.metadata.EntryPoint("quokka", f"{package}_more", "vgbench_gen.animals")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **selection: [entry])
    for _ in range(2):  # the second look-up does not go on without it
        with pytest.raises(PluginError, match=rf"quokka = {package}_more of {package}_more: found {told}"):
            registry_of(package).names()
