"""A toy learner behind ten faulty pipelines and behind sound ones: the canary names each fault and cries no wolf."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache

import cv2
import numpy as np
import pytest

from tests.store.examples import textured
from vgbench_gen.core.types import ColorArray
from vgbench_gen.store.pictures import decode, encode_jpeg
from vgbench_gen.text.render import fill_word
from vgbench_gen.training.canary import CONTROL, PROBES, CanaryVerdict, Card, Judged, judge_canary, make_cards

Rows = list[tuple[ColorArray, ...]]
Pipeline = Callable[[Rows], Rows]
SIZE = (128, 96)
BLIND_LEVELS = 6


@cache
def cards() -> tuple[Card, ...]:
    return tuple(make_cards([textured(512, 384, seed) for seed in range(12)], seed=3))


def sound(rows: Rows) -> Rows:
    return rows


def each(change: Callable[[ColorArray], ColorArray]) -> Pipeline:
    return lambda rows: [tuple(map(change, shown)) for shown in rows]


def resize(image: ColorArray, width: int, height: int) -> ColorArray:
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def grey(image: ColorArray) -> ColorArray:
    return np.repeat(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2).astype(np.uint8)


def swap_twins(rows: Rows) -> Rows:
    """Every row gets the pictures of its twin."""
    places = defaultdict(list)
    for k, card in enumerate(cards()):
        places[card.twins].append(k)
    other = {a: b for a, b in places.values()} | {b: a for a, b in places.values()}  # noqa: C416
    return [rows[other[k]] for k in range(len(rows))]


# Pipeline -> what is found if it is met in training or asking alone, and if in both; "" stands for any alarm, None for
# none: what exchanges pictures alike in both is learned that way, and harms nobody.
FAULTS: dict[str, tuple[Pipeline, str, str | None]] = {
    "dropped": (lambda rows: [() for _ in rows], "missing", "missing"),
    "swapped": (swap_twins, "swapped", None),
    "first only": (lambda rows: [shown[:1] for shown in rows], "first_only", "first_only"),
    "last only": (lambda rows: [shown[-1:] for shown in rows], "", "second_only"),
    "shrunk": (each(lambda image: resize(image, 4, 3)), "", "detail"),
    "wrong order": (lambda rows: [shown[::-1] for shown in rows], "turned", None),
    "grey": (each(grey), "color", "color"),
    "same for all": (lambda rows: [rows[0][:1] * len(shown) for shown in rows], "missing", "missing"),
    "cached": (lambda rows: [rows[max(k - 1, 0)] for k in range(len(rows))], "missing", None),
    "cropped": (each(lambda image: image[48:-48, 64:-64]), "", "border"),
    "half of the batch": (lambda rows: [shown if k % 8 < 4 else () for k, shown in enumerate(rows)], "", ""),
}
SOUND: dict[str, Pipeline] = {
    "as it is": sound,
    "resized": each(lambda image: resize(image, 420, 308)),
    "encoded again": each(lambda image: decode(encode_jpeg(image))),
}


def see(shown: Sequence[ColorArray]) -> ColorArray:
    """What the learner sees of a row: two pictures of one size, black for those that are not there."""
    slots = [resize(image, *SIZE) for image in shown[:2]]
    return np.stack(slots + [np.zeros((SIZE[1], SIZE[0], 3), np.uint8)] * (2 - len(slots)))


def measure(one: ColorArray, other: ColorArray) -> float:
    """How different two rows look; what is a few levels apart looks the same."""
    return float(np.maximum(cv2.absdiff(one[0], other[0]), cv2.absdiff(one[1], other[1])).clip(BLIND_LEVELS).mean())


def run(train: Pipeline, predict: Pipeline, slips: float = 0.0, words: str = "right") -> CanaryVerdict:
    """A learner that knows by heart what it was shown, and answers as in the most similar row of the same text."""
    shown, rng = [card.pictures for card in cards()], np.random.default_rng(5)
    learned = defaultdict(list)
    for card, seen in zip(cards(), map(see, train(shown)), strict=True):
        learned[card.question].append((seen, card.answer))
    judged = []
    for card, seen in zip(cards(), map(see, predict(shown)), strict=True):
        off = [measure(seen, own) for own, _ in learned[card.question]]
        best = [answer for (_, answer), apart in zip(learned[card.question], off, strict=True) if apart == min(off)]
        said = str(rng.choice(best))
        if rng.random() < slips or (words == "untrained" and rng.random() < 0.5):
            said = "AB"["AB".index(said) - 1]
        judged.append(Judged(card.probe, card.answer, said))
    return judge_canary(judged)


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


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_pipeline_raises_no_alarm(name: str) -> None:
    for slips in (0.0, 0.04):
        verdict = run(SOUND[name], sound, slips)
        assert verdict.passed, verdict


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    fault, in_one, in_both = FAULTS[name]
    for train, predict, finding in ((fault, sound, in_one), (sound, fault, in_one), (fault, fault, in_both)):
        verdict = run(train, predict)
        assert verdict.conclusive
        assert verdict.passed is (finding is None), verdict
        assert not finding or fill_word(f"canary.{finding}") in verdict.findings, verdict


def test_a_short_training_is_not_blamed_on_pictures() -> None:
    verdict = run(sound, sound, words="untrained")
    assert not verdict.conclusive
    assert verdict.findings == (fill_word("canary.untrained"),)
