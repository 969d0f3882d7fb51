"""A model of the user's own that answers and draws in this process."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.backends.fixtures import picture, request
from vgbench_gen.backends.base import BackendError, ImagePart, Reply, Settings
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.errors import ConfigError

CODE = """
calls = []

class Model:
    def __init__(self):
        calls.append("made")

    def answer(self, images, text):
        calls.append(("answer", images, text))
        if "fail" in text:
            raise RuntimeError("out of memory")
        return 3 if "number" in text else f"{len(images)} images"

    def edit(self, images, prompt):
        calls.append(("edit", images, prompt))
        return None if "nothing" in prompt else images[-1]

nothing_callable = 1

def broken():
    raise OSError("no weights")
"""
RED, BLUE = picture(shade=1), picture(kind="PNG", shade=2)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_unified_model.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_unified_model", raising=False)
    return "unified:my_unified_model"


def asked(spec: str, text: str, edit: bool = False, options: BackendOptions | None = None) -> Reply:
    async def run() -> Reply:
        async with open_backend(spec, options) as backend:
            images = [ImagePart(RED), ImagePart(BLUE)]
            if edit:
                return await backend.edit(images, text, Settings())
            return await backend.ask(request(text, *images).messages, Settings())

    return asyncio.run(run())


def test_it_answers_and_draws(module: str, tmp_path: Path) -> None:
    options = BackendOptions(cache=tmp_path / "cache.sqlite")
    said = asked(f"{module}:Model", "Which?", options=options)
    assert (said.text, said.images, said.model) == ("2 images", (), "my_unified_model:Model")
    drawn = asked(f"{module}:Model", "Draw lines.", edit=True, options=options)
    assert drawn.images == (BLUE,)
    calls = sys.modules["my_unified_model"].calls
    assert calls == ["made", ("answer", [RED, BLUE], "Which?"), "made", ("edit", [RED, BLUE], "Draw lines.")]
    assert asked(f"{module}:Model", "Draw lines.", edit=True, options=options).images == (BLUE,)
    assert len(calls) == 4  # from the cache: the model was not even made


@pytest.mark.parametrize(
    ("factory", "text", "edit", "told"),
    [
        ("Model", "fail", False, r"answer\(\) failed \(RuntimeError: out of memory\)"),
        ("Model", "a number", False, r"answer\(\) gave a int; expected str"),
        ("Model", "nothing", True, r"edit\(\) gave a NoneType; expected bytes"),
        ("broken", "x", False, r"the factory failed \(OSError: no weights\)"),
    ],
)
def test_what_fails_in_it_is_told(module: str, factory: str, text: str, edit: bool, told: str) -> None:
    with pytest.raises(BackendError, match=told):
        asked(f"{module}:{factory}", text, edit)
    assert len(sys.modules["my_unified_model"].calls) == 2 * (factory == "Model")  # asked once


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("unified:my_unified_model", "expected unified:MODULE:FACTORY"),
        ("unified:my_unified_model:nothing_callable", "no function nothing_callable"),
        ("unified:my_unified_model:other", "no function other"),
        ("unified:no_such_module_at_all:f", "ModuleNotFoundError"),
    ],
)
def test_a_spec_that_names_no_factory_is_refused(module: str, spec: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_backend(spec)
