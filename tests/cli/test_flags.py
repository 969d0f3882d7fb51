from __future__ import annotations

import re
from typing import Annotated, Any

import pytest
import typer
from pydantic import Field

from vgbench_gen.cli import main as program
from vgbench_gen.cli._flags import Only
from vgbench_gen.cli._verbs import GROUPS, add_verb
from vgbench_gen.core.config import Config, Flag


class Lamp(Config):
    watts: Annotated[int, Flag("Of the bulb.", "N")] = Field(default=40, gt=0, lt=101)
    shade: str = "paper"


class Desk(Config):
    width_m: Annotated[float, Flag("From edge to edge.", "M", names="--width -w")] = Field(default=1.2, gt=0)
    drawers: Annotated[tuple[str, ...], Flag("By name.", "A,B", is_list=True)] = ()
    oiled: Annotated[bool | None, Flag("Or left raw.", names="--oiled/--raw")] = None
    lamp: Lamp = Field(default_factory=Lamp)


SMALL = Desk(width_m=0.5, drawers=("top",), lamp=Lamp(shade="silk"))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, list[tuple[str, Desk]]]:
    """The exit status, and what two verbs were called with: one takes all options of a desk, one only two of them."""
    seen: list[tuple[str, Desk]] = []

    def whole(name: Annotated[str, typer.Argument()], *, desk: Desk) -> None:
        seen.append((name, desk))

    def part(desk: Annotated[Desk, Only("drawers", "lamp")] = SMALL) -> None:
        seen.append(("", desk))

    app = typer.Typer(rich_markup_mode=None)
    add_verb(app, "whole", whole, "Build", "vgbench whole mine")
    add_verb(app, "part", part, "Build", "vgbench part")
    monkeypatch.setattr(program, "make_app", lambda: app)
    return program.main(list(arguments)), seen


def test_fields_become_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "whole", "a") == (0, [("a", Desk())])
    given = ["-w", "2", "--drawers", "x, y", "--drawers=z", "--raw", "--watts", "60"]
    desk = Desk(width_m=2, drawers=("x", "y", "z"), oiled=False, lamp=Lamp(watts=60))
    assert run(monkeypatch, "whole", "a", *given) == (0, [("a", desk)])


def test_what_a_verb_does_not_offer_keeps_the_defaults_of_the_verb(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "part") == (0, [("", SMALL)])
    lamp = Lamp(watts=60, shade="silk")
    assert run(monkeypatch, "part", "--watts=60") == (0, [("", SMALL.model_copy(update={"lamp": lamp}))])
    assert run(monkeypatch, "part", "--width", "2") == (2, [])
    assert "No such option: --width" in capsys.readouterr().err


def test_a_value_that_does_not_fit_is_told_by_its_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "whole", "a", "--width=-2") == (2, [])
    assert capsys.readouterr().err == "vgbench: error: --width: found -2.0; expected greater than 0\n"
    assert run(monkeypatch, "whole", "a", "--watts", "101") == (2, [])
    assert "'--watts': Input should be less than or equal to 100" in capsys.readouterr().err


def test_every_verb_stands_in_a_group_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert {command.rich_help_panel for command in program.make_app().registered_commands} <= set(GROUPS)
    assert program.main(["--help"]) == 0
    headings = [line[:-1] for line in capsys.readouterr().out.splitlines() if line[:1].isalpha() and line[-1] == ":"]
    assert headings == ["Options", *GROUPS]


def test_the_help_of_the_program_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    assert len(program.make_app().registered_commands) + len(program.make_app().registered_groups) == 22


@pytest.mark.parametrize("verb", ["eval", "export", "show", "review", "distractors", "paraphrase"])
def test_every_verb_that_chooses_tasks_takes_the_same_word(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([verb, "--help"]) == 0
    assert re.search(r"--task\b", capsys.readouterr().out)


def test_tasks_with_commas_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for names in (["room_area"], ["metric_depth"], ["room_area,metric_depth"], ["room_area", "metric_depth"]):
        assert program.main(["paraphrase", "--dry-run", *(word for name in names for word in ("--task", name))]) == 0
        told.append(int(re.findall(r"--- (\d+) requests", capsys.readouterr().out)[0]))
    assert told[2] == told[3] == told[0] + told[1]


def test_options_of_eval_stand_in_panels(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["eval", "--help"]) == 0
    said = capsys.readouterr().out
    headings = [line[:-1] for line in said.splitlines() if line[:1].isalpha() and line[-1] == ":"]
    panels = ["Model", "Questions", "Prompt", "Sampling", "Images", "Limits", "Output"]
    assert headings == ["Arguments", *panels, "Options"]
    lines = said.splitlines()
    limits = lines[lines.index("Limits:") : lines.index("Output:")]
    assert any(line.startswith("  --budget USD ") for line in limits)
    assert not any("--temperature" in line for line in limits)


def test_no_help_prints_types_or_bounds_of_a_program() -> None:
    app: Any = typer.main.get_command(program.make_app())
    for name, each in app.commands.items():
        for command in getattr(each, "commands", {name: each}).values():
            said = command.get_help(typer.Context(command, info_name=name))
            assert not re.search(r"x[<>]=|<\w+>|list\[|\[\[|\d{8}", said), said
