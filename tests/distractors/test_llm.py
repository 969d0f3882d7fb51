"""What a model names becomes options only where the truth may stand anywhere among them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.distractors.line_space import Line, line_fact
from vgbench_gen.core.errors import ConfigError, TooFewOptionsError
from vgbench_gen.core.rng import rng_for
from vgbench_gen.distractors import llm
from vgbench_gen.distractors.base import Proposal, strategies
from vgbench_gen.pipeline.recipe import load_recipe


def test_the_truth_takes_every_rank_alike_whatever_was_named() -> None:
    # One set leaves the truth the highest rank, but dozens a middle one.
    fact = line_fact([5.0, 1.5, 2.7, 3.9, 6.1, 7.2, 8.4, 9.4], truth=0)
    ranks: Counter[int] = Counter()
    for seed in range(400):
        options = strategies["llm"].options(fact, Line(), rng_for(seed, "t"), 4)
        ranks[sorted(o.value[0] for o in options.options).index(5.0)] += 1
    assert set(ranks) == {0, 1, 2, 3}
    assert all(abs(count - 100) < 4 * (400 * 0.25 * 0.75) ** 0.5 for count in ranks.values())


def test_a_rank_that_cannot_be_had_is_not_drawn_again() -> None:
    """Else values at the ends of what was named would be asked oftener, always at the ends of their sets."""
    ends: Counter[int] = Counter()
    reasons: Counter[str] = Counter()
    for truth in range(4):
        for seed in range(400):
            fact = line_fact([2.0, 3.1, 4.2, 5.3], truth)  # one set, in which each has its rank
            try:
                strategies["llm"].options(fact, Line(), rng_for(seed, "t", str(truth)), 4)
                ends[truth] += 1
            except TooFewOptionsError as error:
                reasons[error.reason] += 1
    assert set(reasons) == {"rank_out_of_reach"}
    assert set(ends) == {0, 1, 2, 3}
    assert all(abs(count - 100) < 4 * (400 * 0.25 * 0.75) ** 0.5 for count in ends.values())
    assert llm.has_set(line_fact([2.0, 3.1, 4.2, 5.3]), Line())
    assert not llm.has_set(line_fact([5.0, 5.2, 4.9]), Line())


@pytest.mark.parametrize(
    ("text", "numbers", "reason"),
    [
        ("[1.5, 2.5", 1, "no_json"),
        ("Sure! [1.5, 2.5]", 1, "no_json"),
        ("[1.5, NaN]", 1, "no_json"),
        ("[1.5, 1e999]", 1, "no_json"),
        ('{"values": [1.5]}', 1, "no_array"),
        ("[]", 1, "no_array"),
        ("[[1.5, 2.5]]", 1, "wrong_shape"),
        ("[[1, 2, 3, 4, 5]]", 6, "wrong_shape"),
        ("[1.5]", 6, "wrong_shape"),
        ('["1.5"]', 1, "no_number"),
        ("[true]", 1, "no_number"),
        ("[" * 7000, 1, "no_json"),
        ("1" * 9000, 1, "too_long"),
    ],
)
def test_a_reply_that_is_not_what_was_asked_for_is_refused(text: str, numbers: int, reason: str) -> None:
    with pytest.raises(llm.UnreadableReply, match=reason):
        llm.read_values(text, numbers)


def test_a_reply_is_read() -> None:
    assert llm.read_values(" ```json\n[1.5, 2]\n``` ", 1) == [(1.5,), (2.0,)]
    assert llm.read_values("[[1, 2, 3, 4, 5, 6]]", 6) == [(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)]


def test_named_values_are_of_the_family_in_range_and_print_apart() -> None:
    fact, proposal = line_fact([5.0]), Proposal("depth", {}, ends=(1.0, 9.0))
    found = llm.make_candidates(fact, Line(), proposal, [(3.04,), (3.0,), (5.0,), (-2.0,), (9.5,), (7.0,)], "g", 0)
    assert [c.value[0] for c in found] == [3.0, 7.0]
    assert [c.key for c in found] == ["llm:3.04", "llm:7"]


def test_a_model_is_told_the_range_and_not_the_answer() -> None:
    fact = line_fact([5.37, 2.0])
    proposal = Line().proposal(fact)
    assert proposal is not None
    first, again, other = (llm.request(fact, proposal, name, 0, turn) for name, turn in (("a", 0), ("a", 1), ("b", 0)))
    text = str(first.messages)
    assert "1.00 to 9.00" in text
    assert "indoor room" in text
    assert "5.37" not in text
    # Equal words, yet each is asked for itself.
    assert len({request.settings.epoch for request in (first, again, other)}) == 3


def test_no_recipe_has_options_from_a_model(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text('strategy = "llm"\n')
    with pytest.raises(ConfigError, match="language model"):
        load_recipe(path)
