"""Rationales of every kind: they hold, they name the answer, they tell nothing else, and a changed digit is found."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.quality.invariance_room import NAMES, PER_TASK, SETTINGS, get_view, measured, plan_of
from tests.shared import recall_once
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, TooFewOptionsError
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.distractors.base import strategies
from vgbench_gen.evaluation.scoring import make_case, score
from vgbench_gen.pipeline.measure import measure_task, store_pictures
from vgbench_gen.pipeline.question import QuestionRejectedError, make_question
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.shards import write_items
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.row_evidence import RowEvidence, list_names, rebuild_fact
from vgbench_gen.text.numbers import _NUMBER, number_tokens
from vgbench_gen.text.render import find_templates_root
from vgbench_gen.text.steps import LENGTHS, Length, Pen, _load_file, find_difference, list_rationales
from vgbench_gen.training.rationales import find_rationale_problem, list_texts, make_rationale

Capture = pytest.CaptureFixture[str]
TWO_WAYS = [name for name in NAMES if tasks[name] is not tasks[name].in_notation("matrix")]
OPPOSITES = (
    ("left", "right"),
    ("Yes", "No"),
    ("nearer", "farther away"),
    ("orange", "blue"),
    ("clockwise", "counterclockwise"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[Item]], Path]:
    """Rows of every kind in all its forms; those that have the choice, in words and as matrices. And their images."""

    def make(folder: Path) -> tuple[dict[str, list[Item]], Path]:
        room = measured(folder)
        found = {name: list(ask(tasks[name], room.facts[name], room.media)) for name in NAMES}
        for name in TWO_WAYS:
            task = tasks[name].in_notation("matrix")
            facts, _ = measure_task(task, get_view(name), 0, PER_TASK.get(name, 4))
            found[f"{name}, matrix"] = list(ask(task, store_pictures(facts, get_view(name), room.media), room.media))
        return found, folder

    return recall_once(tmp_path_factory, "explained", make)


@pytest.fixture(scope="module")
def rows(made: tuple[dict[str, list[Item]], Path]) -> dict[str, list[Item]]:
    return made[0]


def ask(task: Task, facts: Any, media: MediaStore) -> Iterator[Item]:
    for fact in facts:
        for form in task.formats:
            with suppress(QuestionRejectedError, TooFewOptionsError):
                rng, count = rng_for(0, "options", fact.key), task.count_options(4)
                options = strategies["set_first"].options(fact, task, rng, count) if form == "multi-choice" else None
                made = make_question(fact, options, plan_of(fact, form), task, SETTINGS)
                yield from question_rows(made, SETTINGS, PictureCache(None, media))


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}, matrix" for name in TWO_WAYS)])
def test_rationales_of_all_forms_hold_and_name_the_answer(name: str, rows: dict[str, list[Item]]) -> None:
    assert {item.question_type for item in rows[name]} == set(tasks[name.partition(",")[0]].formats)
    told = Counter[str]()
    for item in rows[name]:
        hidden = {label for label in list_names(item) if label} - set(item.options)
        hidden = {label for label in hidden if label not in f"{item.question} {' '.join(item.options)}"}
        for length in LENGTHS:
            text, problem = make_rationale(item, length)
            assert not problem, (item.question, text)
            assert text in list_texts(item, length)[0]
            last = re.split(r"(?<=[.:]) ", text)[-1] if item.question_type == "judgment" else text.rpartition(". ")[2]
            assert item.answer in text
            assert item.answer.rstrip(".") in last or item.question_type != "judgment"
            assert not {label for label in hidden if re.search(rf"\b{re.escape(label)}\b", text)}
            assert score(make_case(item), f"{text}\n\nAnswer: {item.answer}").strict == 1
            told[length] += len(text)
    assert told["long"] > told["short"]


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}, matrix" for name in TWO_WAYS)])
def test_every_changed_digit_is_found(name: str, rows: dict[str, list[Item]]) -> None:
    for item in rows[name][:4]:
        text = make_rationale(item, "long")[0]
        for match in _NUMBER.finditer(text):
            for place in range(match.start(), match.end()):
                if text[place].isdigit():
                    digit = str((int(text[place]) + 1 + place % 9) % 10)
                    changed = text[:place] + digit + text[place + 1 :]
                    assert find_rationale_problem(item, changed), (match[0], changed)


@pytest.mark.parametrize("name", NAMES)
def test_exchanged_words_are_found(name: str, rows: dict[str, list[Item]]) -> None:
    for item in rows[name]:
        text = make_rationale(item, "long")[0]
        for one, other in OPPOSITES:
            turned = re.sub(rf"\b(?:{one}|{other})\b", lambda found: other if found[0] == one else one, text)  # noqa: B023
            # Nothing is 0.00 m to the left of another thing, or to the right.
            assert turned == text or find_rationale_problem(item, turned) or re.search(r"\b0\.00 m", text), turned
        if item.question_type == "multi-choice":
            letter = next(one for one in ALPHABET if one != item.answer)
            assert find_rationale_problem(item, text.replace(f"option {item.answer}", f"option {letter}"))
            assert find_rationale_problem(replace(item, answer=letter), text)


def test_a_number_may_only_differ_by_its_rounding() -> None:
    assert not find_difference("It is 0.35 m to the left.", "It is 0.354999000 m to the left.")
    assert "says 0.35, the evidence gives 0.3551" in find_difference("It is 0.35 m.", "It is 0.355100000 m.")
    assert not find_difference("It is 0.00 m to the left.", "It is 0.001 m to the right.")
    assert find_difference("It is 0.01 m to the left.", "It is 0.01 m to the right.")


def test_quantities_that_are_compared_are_not_printed_alike() -> None:
    pen = Pen()
    assert pen.list("m", [("a", 1.001), ("b", 1.004), ("c", 2.0)]) == "1.001 m for a, 1.004 m for b and 2.000 m for c"
    assert pen.say("m", 1.004, unlike=[1.001]) == "1.004 m"
    assert pen.say("m", 1.004, unlike=[1.004]) == "1.00 m"
    assert pen.say("right_m", -0.004) == "0.004 m to the left"


def test_every_kind_has_rationales_and_no_wording_has_a_number_of_its_own() -> None:
    folder = find_templates_root() / "rationales"
    assert {path.stem for path in folder.glob("*.toml")} == {*NAMES, "words", "closings"}
    for name in NAMES:
        file = _load_file(folder / f"{name}.toml")
        texts = [text for case in file.steps.values() for text in (*case.short, *case.long)]
        texts += [text for lines in file.closing.values() for text in lines]
        assert all(len(case.short) >= 2 and len(case.long) >= 2 for case in file.steps.values()), name
        # Image 1, and the 1 of (x, y, 1).
        assert {token for text in texts for token in number_tokens(text)} <= {"1"}, name


# --- that the numbers lead to the answer ------------------------------------------------------------------------------


def read_list(text: str) -> dict[str, float]:
    """The names and quantities of a list: "1.20 m for the blue region and …"."""
    found = re.findall(r"([\d.]+) m for ((?:the |image |option )[a-zA-Z0-9 ]+?)(?=,| and [\d.]|[.;]| makes)", text)
    return {name: float(number) for number, name in found}


def find_option(item: Item) -> str:
    return item.options[ALPHABET.index(item.answer)]


def pick_extreme(item: Item, text: str) -> bool:
    found = read_list(text)
    chosen = max if item.ask == "deepest" else min
    return len(found) == 4 and find_option(item) in chosen(found, key=lambda name: found[name])


def pick_larger(item: Item, text: str) -> bool:
    numbers = [float(x) * (-1 if "below" in words else 1) for x, words in re.findall(r"([\d.]+) m( \w+)?", text)]
    return ("orange", "blue")[int(np.argmax(numbers[:2]))] in find_option(item)


def follow_signs(item: Item, text: str) -> bool:
    signs = {word for word in ("ahead", "behind", "nearer", "farther away") if re.search(rf"\d m {word}", text)}
    sides = set(re.findall(r"\d m to the (left|right)", text))
    option = find_option(item)
    return len(sides) == 1 == len(signs) and sides.pop() in option and signs.pop() in option


def follow_turns(item: Item, text: str) -> bool:
    return re.findall(r"degrees to the (left|right)", text) == find_option(item).split(", then ")


def follow_motion(item: Item, text: str) -> bool:
    words = {"to the left": "left", "to the right": "right"}
    said = re.findall(r"(turned|tilted|moved) [\d.]+ (?:m|degrees) (to the left|to the right|\w+)", text)
    return {f"{verb} {words.get(way, way)}" for verb, way in said} == set(find_option(item).split(" and "))


def find_spot(item: Item, text: str) -> bool:
    at = re.search(r"(\d+) degrees to the (left|right).*?([\d.]+) m away", text)
    spots = re.findall(r"(blue|yellow|green|pink) (\d+) degrees to the (left|right) at ([\d.]+) m", text)
    assert at is not None
    place = float(at[3]) * np.exp(1j * np.radians(float(at[1])) * (1 if at[2] == "right" else -1))
    gaps = {
        color: abs(float(far) * np.exp(1j * np.radians(float(turn)) * (1 if side == "right" else -1)) - place)
        for color, turn, side, far in spots
    }
    return len(gaps) == 4 and min(gaps, key=lambda color: gaps[color]) == find_option(item)


def count_new(item: Item, text: str) -> bool:
    words = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight"]
    total = sum(words.index(word) for word in re.findall(r"image \d+ shows (\w+)", text))
    return find_option(item) == f"{words[total]} in all"


def compare_angle(item: Item, text: str) -> bool:
    angles = {"ten degrees": 10, "twenty degrees": 20, "thirty degrees": 30, "forty degrees": 40}
    found = re.search(r"([\d.]+) degrees", text)
    assert found is not None
    return min(angles, key=lambda words: abs(angles[words] - float(found[1]))) == find_option(item)


def order_depths(item: Item, text: str) -> bool:
    found = {name.split()[1]: depth for name, depth in read_list(text).items()}
    return ", ".join(sorted(found, key=lambda name: found[name])) == find_option(item)


def find_first(item: Item, text: str) -> bool:
    first = {name: int(n) for name, n in re.findall(r"the ([a-z ]+?) in image (\d+)", text)}
    text = text.rpartition(" view ")[2]
    listed = re.findall(r"the ([a-z ]+?)(?=, the| and the|\. )", text) if not first else sorted(first, key=first.get)  # type: ignore[arg-type]
    return ", ".join(listed) == find_option(item)


def find_direction(item: Item, text: str) -> bool:
    found = re.search(r"(\d+) degrees to the (left|right)", text)
    if found:
        near = {"ahead": 45, "straight": 90, "behind": 135}
        where = min(near, key=lambda word: abs(near[word] - int(found[1])))
        return find_option(item) == f"{where} to the {found[2]}"
    return find_option(item).rpartition(" ")[2] in text


def pass_end(item: Item, text: str) -> bool:
    ends = dict(reversed(one) for one in re.findall(r"(\([-\d]+, [-\d]+\)) for (image \d|option [A-D])", text))
    said = re.findall(r"(?:at|to|becomes|be at) (\([-\d]+, [-\d]+\))", text.partition(" for ")[0])
    own = find_option(item) if item.options[0].startswith("image") else f"option {item.answer}"
    return not ends or ends[own] in said or ends[own] in text


def say_twice(item: Item, text: str) -> bool:
    """The value in the steps is that of the option."""
    return text.count(find_option(item).partition(" (")[0]) >= 2


def say_numbers(item: Item, text: str) -> bool:
    """The motion in the steps is that of the option, or for the image that is the option that of the question."""
    told = re.findall(r"\d+\.\d+", find_option(item))
    if told:
        return len(told) == 6 and set(told) <= set(number_tokens(text))
    said = re.search(rf"{find_option(item)} is (turned [^;]*? (?:ahead|behind))", text)
    return said is not None and set(number_tokens(said[1])) <= set(re.findall(r"\d+\.\d+", item.question))


def reach_mark(item: Item, text: str) -> bool:
    at = re.search(rf"{find_option(item)} (\(\d+, \d+\))", item.context)
    return at is not None and at[1] in text


def match_orders(item: Item, text: str) -> bool:
    orders = re.search(r"From left to right there are ([a-z, ]+), and from near to far ([a-z, ]+)\.", text)
    orders = orders or re.search(r"order ([a-z, ]+) from left to right and ([a-z, ]+) from bottom to top\.", text)
    assert orders is not None
    wanted = f"{find_option(item)} has {orders[1]} from left to right and {orders[2]} from"
    return wanted in make_rationale(item, "long")[0]


LEADS: dict[str, Callable[[Item, str], bool]] = {
    "relative_depth": pick_extreme,
    "nearest_object": lambda item, text: find_option(item) in min(read_list(text).items(), key=lambda one: one[1])[0],
    "box_match": lambda item, text: find_option(item) == min(read_list(text).items(), key=lambda one: one[1])[0],
    "depth_order": order_depths,
    "metric_depth": say_twice,
    "object_distance": say_twice,
    "object_size": say_twice,
    "object_gap": say_twice,
    "room_area": say_twice,
    "camera_parameters": say_twice,
    "relative_pose": say_numbers,
    "view_after_motion": say_numbers,
    "point_tracking": reach_mark,
    "orthographic_view": match_orders,
    "object_existence": lambda item, text: text.count(find_option(item)) == 2,
    "size_comparison": pick_larger,
    "height_comparison": pick_larger,
    "object_from_camera": follow_signs,
    "relative_direction": follow_signs,
    "relation_from_camera": follow_signs,
    "relation_across_views": follow_signs,
    "imagined_move": follow_signs,
    "route_turns": follow_turns,
    "camera_motion_words": follow_motion,
    "map_relation": find_spot,
    "object_count": count_new,
    "camera_turn_angle": compare_angle,
    "appearance_order": find_first,
    "camera_from_camera": find_direction,
    "homography_to_image": pass_end,
    "homography_to_matrix": pass_end,
}


@pytest.mark.parametrize("name", LEADS)
def test_what_is_printed_leads_to_the_answer(name: str, rows: dict[str, list[Item]]) -> None:
    asked = [item for item in rows[name] if item.question_type == "multi-choice"]
    assert asked
    for item in asked:
        text = make_rationale(item, "short")[0]
        assert LEADS[name](item, text), (text, item.options, item.answer)


def test_a_row_of_another_language_or_kind_has_no_rationale(rows: dict[str, list[Item]]) -> None:
    item = rows["metric_depth"][0]
    with pytest.raises(ConfigError, match="a text in 'de'; expected one in English"):
        list_texts(replace(item, template_id=f"{item.template_id}.de1"), "short")
    text, problem = make_rationale(replace(item, task="another"), "short")
    assert not text
    assert "LookupError" in problem or "another" in problem
    with pytest.raises(ConfigError, match="task 'elsewhere': found no rationales"):
        list(list_rationales("elsewhere", "short", "yes", {}))
    with pytest.raises(ConfigError, match="no steps for the case 'odd'; expected one of \\['any'\\]"):
        list(list_rationales("depth_order", "short", "yes", {"case": "odd"}))
    damaged = replace(item, evidence={**item.evidence, "options": [{**item.evidence["options"][0], "evidence": {}}]})
    assert make_rationale(damaged, "short") == ("", "the evidence does not give the steps (DatasetError)")


def test_a_wrong_number_of_the_evidence_is_not_explained_away(rows: dict[str, list[Item]]) -> None:
    """The way to check goes by other numbers of the evidence than the way to write."""
    item = next(one for one in rows["metric_depth"] if one.question_type == "open-ended")
    truth = item.evidence["truth"]
    blocks = [[mean_m + 0.2, count] for mean_m, count in truth["evidence"]["blocks"]]
    wrong = {**truth, "evidence": {**truth["evidence"], "blocks": blocks}}
    damaged = replace(item, evidence={**item.evidence, "truth": wrong, "options": [wrong]})
    assert "does not hold" in make_rationale(damaged, "short")[1]
    assert rebuild_fact(item).truth_candidate.key == RowEvidence.of(item).truth.key


# --- in files ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dataset(made: tuple[dict[str, list[Item]], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with points, with numbers and with labels, and last one whose evidence is damaged."""
    rows, folder = made
    named = ("point_tracking", "metric_depth", "relative_depth", "depth_order")
    items = [item for name in named for item in rows[name][:4]]
    last = items[-1]
    items[-1] = replace(last, evidence={**last.evidence, "options": last.evidence["options"][:1]})
    out = tmp_path_factory.mktemp("explained") / "set"
    write_items(out / "items", [replace(item, index=k) for k, item in enumerate(items)], MediaStore(folder))
    shutil.copytree(folder, out / "media")
    return out


def test_an_export_has_rationales_before_the_answers(dataset: Path, tmp_path: Path, capsys: Capture) -> None:
    told = ["export", str(dataset), "--to", "chat-jsonl", "--answers", "--rationale"]
    cases: tuple[tuple[Length, str], ...] = (("short", ""), ("long", "0-1"))
    for length, family in cases:
        out = tmp_path / length
        assert main([*told, length, "--out", str(out), *(["--family", family] if family else [])]) == 0
        said = capsys.readouterr().out
        assert "without a rationale: 1 questions: the evidence does not give the steps" in said
        manifest = json.loads((out / "export.json").read_text("utf-8"))
        assert sum(manifest["without_rationale"].values()) == 1
        assert manifest["questions"] == len(load(dataset))
        lines = (out / "vgbench_set.jsonl").read_text("utf-8").splitlines()
        for line, item in zip(map(json.loads, lines), load(dataset), strict=True):
            *_, question, reply = line["messages"]
            rationale, _, answer = reply["content"][0]["text"].rpartition("\n\n")
            assert answer == f"Answer: {item.answer}"
            text, problem = make_rationale(item, length)
            assert not rationale if problem else (rationale == text or family)
            assert not text or text not in str(question)
            if item.task == "point_tracking" and family:
                points = re.findall(r"\([^()]*\)", rationale)
                assert points
                assert all(point in str(question) and re.fullmatch(r"\(0\.\d+, 0\.\d+\)", point) for point in points)
    assert main([*told[:4], "--rationale", "short", "--out", str(tmp_path / "none")]) == 2
    assert "found it where no answers are written" in capsys.readouterr().err


def test_verify_checks_both_rationales_of_every_row(dataset: Path, capsys: Capture) -> None:
    assert main(["verify", str(dataset), "--rationales", "--workers", "1"]) == 1
    told, count = capsys.readouterr().out, 2 * len(load(dataset))
    assert f"{count - 2} of {count} rationales hold, short and long ones" in told
    assert "short_rationale: the evidence does not give the steps" in told
    assert "long_rationale" in told
    assert main(["verify", str(dataset), "--rationales", "--workers", "1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rationales"] == count - 2
