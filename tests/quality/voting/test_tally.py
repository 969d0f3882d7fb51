"""The rule counts exactly: against a plain count, and against every way in which missing votes could fall."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.quality.voting.rule import VOTES, Rule, Vote, Voter, fit_rule, load_rule
from vgbench_gen.quality.voting.tally import count_by_question

SIZES = (1, 4, 8, 38, 78, 1, 8, 14, 38, 78, 3, 7, 32, 72, 7, 72, 11, 11, 3, 31.9)
PANEL = [Voter(f"model{k}", size) for k, size in enumerate(SIZES)]
PAPER = load_rule("paper")
SMALL = Rule(models=4, wrong=3, large=1)
FOUR = [Voter("a", 1), Voter("b", None), Voter("c", 32), Voter("d", 72)]


def codes(rows: list[list[Vote]]) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    return np.array([[VOTES.index(vote) for vote in row] for row in rows], dtype=np.int8)


def test_the_published_rule_on_votes_of_known_truth() -> None:
    rng = np.random.default_rng(5)
    rows = [
        [VOTES[k] for k in rng.choice(6, 20, p=[p, 0.94 - p, 0.03, 0.01, 0.01, 0.01]).tolist()]
        for p in rng.uniform(0, 0.4, 4000)
    ]
    for policy, as_wrong in (("paper", {"wrong", "unreadable", "refused"}), ("robust", {"wrong"})):
        rule = PAPER.model_copy(update={"policy": policy})
        found = count_by_question(codes(rows), PANEL, rule)
        expected = []
        for row in rows:
            wrong = [SIZES[k] for k, vote in enumerate(row) if vote in as_wrong]
            expected.append(len(wrong) >= 16 and sum(size >= 32 for size in wrong) >= 2)
        assert found.hard.tolist() == expected
        assert 500 < sum(expected) < 3500
        assert found.wrong.tolist() == [sum(vote in as_wrong for vote in row) for row in rows]


def test_two_large_models_must_be_wrong_and_their_bound_is_32() -> None:
    large = [k for k, size in enumerate(SIZES) if size >= 32]
    assert len(large) == 7
    small = [k for k in range(20) if k not in large]
    rows: list[list[Vote]] = []
    for many in (1, 2, 3):
        wrong = {*small[:13], *large[:many], *large[:0]}
        rows.append(["wrong" if k in wrong else "right" for k in range(20)])
    # 13 + 3 are 16 with three large ones; 15 and 14 are too few whatever their size.
    assert count_by_question(codes(rows), PANEL, PAPER).hard.tolist() == [False, False, True]
    every = PAPER.model_copy(update={"wrong": 14})
    assert count_by_question(codes(rows), PANEL, every).hard.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("vote", "paper", "robust"),
    [
        ("unreadable", "hard", "undecided"),
        ("refused", "hard", "undecided"),
        ("failed", "undecided", "undecided"),
        ("missing", "undecided", "undecided"),
        ("wrong", "hard", "hard"),
        ("right", "", ""),
    ],
)
def test_what_a_reply_that_is_no_answer_votes(vote: Vote, paper: str, robust: str) -> None:
    row: list[Vote] = ["right", "wrong", "wrong", vote]
    for policy, expected in (("paper", paper), ("robust", robust)):
        found = count_by_question(codes([row]), FOUR, SMALL.model_copy(update={"policy": policy}))
        assert ("hard" if found.hard[0] else "undecided" if found.undecided[0] else "") == expected


@pytest.mark.parametrize("policy", ["paper", "robust"])
def test_undecided_is_what_missing_votes_could_still_make_hard(policy: str) -> None:
    rule = SMALL.model_copy(update={"policy": policy, "large": 2})
    rows = [list(row) for row in itertools.product(VOTES, repeat=4)]
    found = count_by_question(codes(rows), FOUR, rule)
    without = {"failed", "missing"} | ({"unreadable", "refused"} if policy == "robust" else set())
    for row, hard, undecided in zip(rows, found.hard.tolist(), found.undecided.tolist(), strict=True):
        choices: list[tuple[Vote, ...]] = [("right", "wrong") if vote in without else (vote,) for vote in row]
        ways = count_by_question(codes([list(way) for way in itertools.product(*choices)]), FOUR, rule).hard
        assert hard == ways.all()
        assert undecided == (ways.any() and not ways.all())


VOTE = st.sampled_from(VOTES)


@settings(max_examples=150, deadline=None)
@given(st.lists(VOTE, min_size=20, max_size=20), st.integers(0, 19), st.permutations(range(20)), st.booleans())
def test_votes_move_the_verdict_the_way_they_point(row: list[Vote], place: int, order: list[int], robust: bool) -> None:
    rule = PAPER.model_copy(update={"policy": "robust"}) if robust else PAPER
    # Mostly wrong, so that verdicts are near the bound.
    row = ["wrong" if k % 3 else vote for k, vote in enumerate(row)]
    right = [*row[:place], "right", *row[place + 1 :]]
    wrong = [*row[:place], "wrong", *row[place + 1 :]]
    found = count_by_question(codes([row, right, wrong]), PANEL, rule)
    rank = (2 * found.hard + found.undecided).tolist()
    assert rank[1] <= rank[0]
    assert found.hard[2] >= found.hard[0]
    assert found.hard[2] >= found.hard[1]
    turned = count_by_question(codes([[row[k] for k in order]]), [PANEL[k] for k in order], rule)
    assert (turned.hard[0], turned.undecided[0]) == (found.hard[0], found.undecided[0])
    assert count_by_question(codes([row]), PANEL, PAPER).hard[0] >= found.hard[0]


def test_another_panel_needs_thresholds_of_its_own() -> None:
    with pytest.raises(ConfigError, match=r"found 4 models; the rule is for 20.*--wrong N and --large N"):
        fit_rule(PAPER, FOUR)
    with pytest.raises(ConfigError, match="found 4 models"):
        fit_rule(PAPER, FOUR, wrong=3)
    assert fit_rule(PAPER, FOUR, wrong=3, large=2).models == 4
    assert fit_rule(PAPER, PANEL) == PAPER
    with pytest.raises(ConfigError, match=r"--wrong: found 5; expected 1 to 4"):
        fit_rule(PAPER, FOUR, wrong=5, large=1)
    with pytest.raises(ConfigError, match=r"found 2 models of 32 billion.*at least 3.*Unknown sizes: b"):
        fit_rule(PAPER, FOUR, wrong=3, large=3)


def test_rules_are_strict(tmp_path: Path) -> None:
    assert len(load_rule("demo").panel) == 20
    assert sum(PAPER.balance.counts.values()) == PAPER.balance.target == 1400
    with pytest.raises(ConfigError, match=r"expected demo, paper or a \.toml file"):
        load_rule("papers")
    bad = tmp_path / "bad.toml"
    for text, message in (
        ("models = 3\nwrong = 4", "at most 3"),
        ("wrongs = 4", "unknown key 'wrongs'"),
        ('policy = "kind"', "policy"),
        ("[balance]\ntarget = 3\n[balance.counts]\nA = 2", "sum 3"),
    ):
        bad.write_text(text)
        with pytest.raises(ConfigError, match=message):
            load_rule(str(bad))
