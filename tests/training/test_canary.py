"""A toy learner behind ten faulty pipelines and behind sound ones: the canary names each fault and cries no wolf."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.publish.exported import written
from tests.store.examples import textured
from tests.training.toy_learner import FAULTS, Pipeline, ShownRow, each, learn_and_answer, resize, sound
from vgbench_gen.cli.main import main
from vgbench_gen.store.pictures import decode, encode_jpeg
from vgbench_gen.text.render import fill_word
from vgbench_gen.training.canary import CONTROL, PROBES, Card, judge_canary, make_cards

# Fault -> what is found if it is met in training or asking alone, and if in both; "" is any alarm, None none, because
# what exchanges pictures alike in both is learned that way, and harms nobody.
FOUND: dict[str, tuple[str, str | None]] = {
    "dropped": ("missing", "missing"),
    "swapped": ("swapped", None),
    "first only": ("first_only", "first_only"),
    "last only": ("", "second_only"),
    "shrunk": ("", "detail"),
    "wrong order": ("turned", None),
    "grey": ("color", "color"),
    "same for all": ("missing", "missing"),
    "cached": ("missing", None),
    "cropped": ("", "border"),
    "half of the batch": ("", ""),
}
SOUND: dict[str, Pipeline] = {
    "as it is": sound,
    "resized": each(lambda image: resize(image, 420, 308)),
    "encoded again": each(lambda image: decode(encode_jpeg(image))),
}


@cache
def cards() -> tuple[Card, ...]:
    return tuple(make_cards([textured(512, 384, seed) for seed in range(12)], seed=3))


def run(train: Pipeline, predict: Pipeline, slips: float = 0.0) -> list[str]:
    """What is found wrong with a learner; slips: share of its answers that are turned round."""
    rng = np.random.default_rng(5)
    rows = [ShownRow(card.question, card.answer, str(card.twins), card.pictures) for card in cards()]
    said = [
        letter if rng.random() >= slips else "AB"["AB".index(letter) - 1]
        for letter in learn_and_answer(rows, train, predict)
    ]
    right = defaultdict[str, list[bool]](list)
    for card, one in zip(cards(), said, strict=True):
        right[card.probe].append(one == card.answer)
    return judge_canary(right)[1]


def test_twins_share_their_text_and_nothing_else() -> None:
    assert Counter(card.probe for card in cards()) == {name: 2 * n for name, n in (PROBES | {CONTROL: 20}).items()}
    assert sum(PROBES.values()) == 200
    pairs = defaultdict(list)
    for card in cards():
        pairs[card.twins].append(card)
    for one, other in pairs.values():
        same = one.probe == CONTROL
        assert (one.question == other.question) is not same
        assert one.options == other.options
        assert one.answer != other.answer
        assert all(map(np.array_equal, one.pictures, other.pictures)) is same
    letters = Counter(card.answer for card in cards())
    assert letters["A"] == letters["B"]
    # Nor does what is seen tell the answer by a rule: red is A as often as B.
    for probe in PROBES:
        firsts = [card.answer for card in cards() if card.probe == probe and card.half == 0]
        assert 0.2 < firsts.count("A") / len(firsts) < 0.8, probe


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_pipeline_raises_no_alarm(name: str) -> None:
    for slips in (0.0, 0.04):
        assert run(SOUND[name], sound, slips) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    fault, (in_one, in_both) = FAULTS[name], FOUND[name]
    for train, predict, finding in ((fault, sound, in_one), (sound, fault, in_one), (fault, fault, in_both)):
        found = run(train, predict)
        assert fill_word("canary.untrained") not in found
        assert (not found) is (finding is None), found
        assert not finding or fill_word(f"canary.{finding}") in found, found


def test_a_short_training_is_not_blamed_on_pictures() -> None:
    assert run(sound, sound, slips=0.5) == [fill_word("canary.untrained")]


def test_from_a_dataset_to_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "set")
    assert main(["export", str(tmp_path / "set"), "--to", "canary", "--out", str(tmp_path / "canary")]) == 0
    for fault, said in ((None, "Every picture reaches"), ("first only", "Only the first picture")):
        predictions = tmp_path / "predictions.jsonl"
        command = [sys.executable, "-m", "tests.training.toy_learner", str(tmp_path / "canary"), str(predictions)]
        subprocess.run(command + (["--fault", fault] if fault else []), check=True)
        capsys.readouterr()
        assert main(["lint", str(tmp_path / "canary"), "--canary", str(predictions)]) == bool(fault)
        assert said in capsys.readouterr().out
    assert main(["lint", str(tmp_path / "set"), "--canary", str(predictions)]) == 2
    assert "no reply to these rows" in capsys.readouterr().err
