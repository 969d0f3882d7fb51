"""Loading and filling templates: what is refused, and how the refusal reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.text import render
from vgbench_gen.text.render import Phrasing


def task_file(folder: Path, question: str = "How far is {{ thing }}?", context: str = "In {{ unit }}.") -> Path:
    """A small task file whose third phrasing is the given one."""
    lines = ["How far is {{ thing }}?"] * 2 + [question] + ["How far is {{ thing }}?"] * 3
    text = "".join(f"  '''{line}''',\n" for line in lines)
    path = folder / "toy.toml"
    head = f"task = \"toy\"\ncontext = '''{context}'''\nstates = [\"meters\"]\nslots = [\"spare\"]\n"
    path.write_text(f"{head}judgment = [\n{text}]\n", encoding="utf-8")
    return path


def third(folder: Path, question: str = "How far is {{ thing }}?") -> Phrasing:
    return render.load_task_file(task_file(folder, question))["judgment"][2]


def test_fills_question_and_context(tmp_path: Path) -> None:
    slots = {"thing": "the <lamp> & {{ unit }}", "unit": "meters"}
    # A value is never read as a template again, and nothing is escaped.
    assert render.render(third(tmp_path), slots) == ("How far is the <lamp> & {{ unit }}?", "In meters.")
    assert render.render(third(tmp_path), {**slots, "spare": "unused but allowed"})[1] == "In meters."


@pytest.mark.parametrize(
    "hostile",
    [
        "{{ thing }} {{ ''.__class__ }}",
        "{{ thing }} {{ thing.__class__.__mro__ }}",
        "{{ thing }} {{ 'x' * 10**9 }}",
        "{{ thing }} {{ thing | upper }}",
        "{{ thing }} {{ thing() }}",
        "{{ thing }} {% for i in range(10**9) %}x{% endfor %}",
        "{{ thing }} {# hidden #}",
        "{{ thing }} {{ {{ thing }} }}",
        "{{ thing }} {{thing}}",
        "{{ thing }} {{- thing }}",
        "{{ thing }} { thing }",
        "{{ thing }} {{ Thing }}",
        "{{ thing }} {%- set x = 1 %}",
        "{{ thing }} }}",
    ],
)
def test_refuses_everything_but_plain_slots(tmp_path: Path, hostile: str) -> None:
    with pytest.raises(ConfigError, match="plain slots") as caught:
        render.load_task_file(task_file(tmp_path, hostile))
    assert isinstance(caught.value, ConfigError)
    assert "toy.toml, toy.judgment.3" in str(caught.value)
    with pytest.raises(ConfigError, match="plain slots"):
        render.load_task_file(task_file(tmp_path, context="In {{ unit }}." + hostile))


def test_refuses_a_hostile_phrasing_built_by_hand() -> None:
    bad = Phrasing("x", "toy", "judgment", "{{ ''.__class__ }}", "c", frozenset(), (), "memory")
    with pytest.raises(ConfigError, match="plain slots"):
        render.render(bad, {})


@pytest.mark.parametrize(
    ("question", "match"),
    [
        ("How far is {{ other }} from {{ thing }}?", r"slots \['other'\]; expected only \['spare', 'thing'\]"),
        ("How far is it?", r"no slot \['thing'\]; expected all of \['thing'\]"),
        ("How far is {{ thing }} in {{ unit }}?", r"slots \['unit'\]"),
        ("{{ thing }}" + "x" * 5000, "at most 4000"),
        ("", "at least 1 character"),
    ],
)
def test_refuses_slots_and_lengths_at_load(tmp_path: Path, question: str, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        render.load_task_file(task_file(tmp_path, question))


@pytest.mark.parametrize(
    ("slots", "match"),
    [
        ({"unit": "meters"}, "toy.judgment.3: found no value for the slot 'thing'"),
        ({"thing": "it"}, "no value for the slot 'unit'"),
        (
            {"thing": "it", "unit": "m", "claim": "2"},
            r"unknown slots \['claim'\]; expected only \['cx', .*'spare', 'thing', 'unit'",
        ),
        ({"thing": "", "unit": "m"}, "0 characters for the slot 'thing'"),
        ({"thing": "x" * 4001, "unit": "m"}, "4001 characters"),
        ({"thing": 3, "unit": "m"}, "int for the slot 'thing'"),
    ],
)
def test_refuses_wrong_values(tmp_path: Path, slots: dict[str, str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        render.render(third(tmp_path), slots)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('task = "toy"', 'task = "boy"', "the name of the file"),
        ('task = "toy"', 'task = "toy"\nmood = "good"', "unknown key 'mood'"),
        ("judgment = ", "judgement = ", "unknown key 'judgement'"),
        ('states = ["meters"]', 'states = ["meters", "mood"]', r"toy\.toml: found \['mood'\] in states"),
        ("states = ", "broken\nstates = ", "no valid TOML"),
    ],
)
def test_refuses_files_of_the_wrong_shape(tmp_path: Path, old: str, new: str, match: str) -> None:
    path = task_file(tmp_path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=match):
        render.load_task_file(path)


def test_refuses_too_few_phrasings_and_unreadable_files(tmp_path: Path) -> None:
    path = task_file(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("  '''How far is {{ thing }}?''',\n", "", 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"toy\.toml: .*judgment: found .* at least 6"):
        render.load_task_file(path)
    with pytest.raises(ConfigError, match="no such file"):
        render.load_task_file(tmp_path / "absent.toml")
    path.write_text("[")
    with pytest.raises(ConfigError, match="no valid TOML"):
        render.load_task_file(path)


def test_unknown_tasks_and_types() -> None:
    for name in ("metric_deepness", "../words", "/etc/passwd"):
        with pytest.raises(ConfigError, match="no file for the task"):
            render.load_phrasings(name, "judgment")
    with pytest.raises(ConfigError, match=r"no section \[open-ended\]"):
        render.load_phrasings("relative_depth", "open-ended")


def test_words() -> None:
    assert render.fill_word("quantity.hfov") == "horizontal field of view"
    assert render.fill_word("option.image", n="3") == "image 3"
    assert render.fill_word("option.pose", rotation="[[1]]", translation="[2]") == "R =\n[[1]]\nt = [2]"
    for key, slots, match in (
        ("option.imaeg", {}, "one of .*option.image"),
        ("regoin", {}, "one of .*'quantity'"),
        ("option.image", {}, "no value for the slot 'n'"),
        ("option.image", {"n": "1", "m": "2"}, r"unknown slots \['m'\]"),
    ):
        with pytest.raises(ConfigError, match=match):
            render.fill_word(key, **slots)


def test_words_are_plain_text_with_slots(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text("[a]\nb = \"{{ ''.__class__ }}\"\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a\.b.*plain slots"):
        render.load_words(path)
    other = tmp_path / "flat.toml"
    other.write_text('b = "x"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="expected an object"):
        render.load_words(other)


SHORT = """
task = "turn"
context = "{points} Left is where {{ camera }} says."
labels = { left = "to the left" }
states = ["meters"]
multi-choice = [{LINES}]
open-ended = "{in_meters}"
"""


def short_file(folder: Path, change: tuple[str, str] = ("", "")) -> Path:
    path = folder / "turn.toml"
    lines = ", ".join(f'"Line {k}: where is {{{{ a }}}}?"' for k in range(6))
    path.write_text(SHORT.replace("{LINES}", lines).replace(*change))
    return path


def test_a_file_takes_its_clauses_in_turn(tmp_path: Path) -> None:
    bank = render.load_task_file(short_file(tmp_path))
    assert list(bank) == ["multi-choice", "open-ended"]
    choice, asked = bank["multi-choice"], bank["open-ended"]
    assert [phrasing.id for phrasing in choice] == [f"turn.multi-choice.{k}" for k in range(1, 7)]
    assert len({phrasing.context for phrasing in choice}) == 6
    assert choice[0].states == ("meters", "pixel_axes")
    assert asked[1].states == ("meters", "two_decimals", "pixel_axes")
    question, context = render.render(asked[1], {"a": "(1, 2)", "camera": "the camera", "second_camera": "the same"})
    assert question == "Line 1: where is (1, 2)? Give the answer in meters with two decimals."
    assert context.endswith("beginning at the top-left corner. Left is where the camera says.")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("{points}", "{rooms}"), r"unknown clauses \['rooms'\]"),
        (("Line 3: where is {{ a }}", "Line 3: where is {{ b }}"), r"multi-choice.4, question: found slots \['b'\]"),
        (("Line 2: where is {{ a }}", "Line 2: where is it"), r"multi-choice.3, question: found no slot \['a'\]"),
        (('"turn"', '"turns"'), "the name of the file"),
        (("states", "state"), "state"),
    ],
)
def test_a_short_file_with_a_fault_is_refused(tmp_path: Path, change: tuple[str, str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        render.load_task_file(short_file(tmp_path, change))
