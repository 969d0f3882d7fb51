"""Rewards as trainers call them, from this package and from the file that an export carries."""

from __future__ import annotations

import importlib.util
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.rewards.cases import CHOICE, CLAIM, DEPTH, write
from vgbench_gen.publish.scorer import copy_scorer
from vgbench_gen.rewards import adapters
from vgbench_gen.text.render import find_templates_root

REPLIES = ("Answer: B", "<answer>No</answer>", "Answer: 2.9 m", "Answer: A\nAnswer: B", "It is B.")
SOLUTIONS = [write(case) for case in (CHOICE, CLAIM, DEPTH, CHOICE, CHOICE)]
SCORES = pytest.approx([1, 0, 0.961, 0, 1], abs=1e-3)
PLAIN_CODE = """
import importlib.util, json, sys
class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in {"numpy", "vgbench_scorer"} and top not in sys.stdlib_module_names:
            raise ImportError(name)
sys.meta_path.insert(0, Only())
spec = importlib.util.spec_from_file_location("custom_module", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
replies, solutions = json.loads(sys.stdin.read())
print(json.dumps([module.reward(completions=replies, solution=solutions), module.REWARD_TYPE]))
"""


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """The file in a folder as an export has it."""
    copy_scorer(tmp_path)
    shutil.copyfile(find_templates_root() / "exports" / "rewards" / "vgbench_reward.py", tmp_path / "vgbench_reward.py")
    return tmp_path / "vgbench_reward.py"


def chat(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]


def test_trl_gets_a_list_for_texts_and_for_messages() -> None:
    columns: dict[str, Any] = {"solution": SOLUTIONS, "prompts": [""] * 5, "trainer_state": None, "log_metric": print}
    tools = [*chat("Answer: C"), {"role": "tool", "content": "2.31"}, {"role": "assistant", "content": "Answer: B"}]
    assert adapters.reward(completions=list(REPLIES), **columns) == SCORES
    assert adapters.reward(completions=[chat(reply) for reply in REPLIES], **columns) == SCORES
    assert adapters.reward([tools, [{"role": "assistant", "content": None}], []], [SOLUTIONS[0]] * 3) == [1, 0, 0]
    assert adapters.format_reward(completions=list(REPLIES), **columns) == [1, 1, 1, 1, 0]
    with pytest.raises(ValueError, match="argument"):
        adapters.reward(list(REPLIES), SOLUTIONS[:2])


def test_verl_gets_numbers_under_the_same_names_for_every_reply() -> None:
    extra: dict[str, Any] = {"extra_info": {"num_turns": 1}, "reward_router_address": None}
    found = [
        adapters.compute_score(data_source="vgbench", solution_str=reply, ground_truth=solution, **extra)
        for reply, solution in zip(REPLIES, SOLUTIONS, strict=True)
    ]
    assert [one["score"] for one in found] == SCORES
    assert found[3] == {"score": 0, "acc": 1, "format": 1, "hack": 1}
    assert {tuple(one) for one in found} == {("score", "acc", "format", "hack")}


def test_easyr1_gets_a_batch() -> None:
    inputs = [
        {"response": reply, "response_length": 9, "ground_truth": solution}
        for reply, solution in zip(REPLIES, SOLUTIONS, strict=True)
    ]
    found = adapters.compute_score_batch(inputs)
    assert [one["overall"] for one in found] == SCORES
    assert found[4] == {"overall": 1, "format": 0, "accuracy": 1}


def test_verifiers_gets_the_score_of_the_last_reply() -> None:
    assert adapters.reward_trace(SimpleNamespace(last_reply="Answer: B"), SOLUTIONS[0]) == 1


@pytest.mark.parametrize("place", ["swift.rewards", "swift.plugin"])  # of version 4, and of version 3
def test_ms_swift_finds_its_plug_ins_by_name(place: str, carried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class ORM:
        def __init__(self, args: object = None, **kwargs: object) -> None:
            self.args = args

    swift, plugin = ModuleType("swift"), ModuleType(place)
    swift.__path__ = []
    plugin.__spec__ = importlib.util.spec_from_loader(place, loader=None)
    vars(plugin).update(ORM=ORM, orms={})
    monkeypatch.setitem(sys.modules, "swift", swift)
    monkeypatch.setitem(sys.modules, place, plugin)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("plug_in", carried)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    orms: dict[str, Any] = vars(plugin)["orms"]
    assert set(orms) == {"vgbench", "vgbench_format"}
    made: Any = orms["vgbench"](args="given")
    assert made.args == "given"
    assert ORM in type(made).__mro__
    assert made(list(REPLIES), solution=SOLUTIONS, trainer_state=None) == SCORES
    assert orms["vgbench_format"]()(list(REPLIES), solution=SOLUTIONS) == [1, 1, 1, 1, 0]
    for name in [name for name in sys.modules if name.partition(".")[0] == "vgbench_scorer"]:
        monkeypatch.delitem(sys.modules, name)


def test_the_file_of_an_export_needs_nothing_but_numpy(carried: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", PLAIN_CODE, str(carried)],
        input=json.dumps([REPLIES, SOLUTIONS]),
        capture_output=True,
        text=True,
        check=True,
    )
    scores, kind = json.loads(done.stdout)
    assert scores == SCORES
    assert kind == "batch"
    assert "vgbench_gen" not in "".join(path.read_text("utf-8") for path in carried.parent.rglob("*.py"))


def test_the_file_of_an_export_names_every_adapter() -> None:
    words = (find_templates_root() / "exports" / "rewards" / "vgbench_reward.py").read_text("utf-8")
    public = [
        name for name, one in vars(adapters).items() if inspect.isfunction(one) and one.__module__ == adapters.__name__
    ]
    for name in [name for name in public if not name.startswith("_")]:
        assert f'"{name}",' in words, name
