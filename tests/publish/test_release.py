"""What a release says of its hard questions, its day, its configurations, and images that no scan gives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.publish.published import STAYS, TRAVELS, publish, write_build
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.pipeline.subset import write_subset
from vgbench_gen.publish import package as packaging
from vgbench_gen.publish.baselines import find_unpublished, format_scores
from vgbench_gen.publish.hydrate import hydrate
from vgbench_gen.publish.pull import pull
from vgbench_gen.publish.release import Options, Release, make_configuration_names
from vgbench_gen.publish.smoke_test import open_with_datasets
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import read_manifest, write_manifest
from vgbench_gen.store.shards import iterate_rows

Capture = pytest.CaptureFixture[str]
RULE = {"wrong": 16, "models": 20, "large": 2, "large_from_billions": 32.0, "policy": "paper"}


@pytest.fixture
def without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging, "make_croissant", lambda *_: (b"{}", []))


def hard_set(build: Path, out: Path, status: str, **more: Any) -> Path:
    """Two questions of a build, as `vgbench vote` writes them."""
    record = {
        "rule": RULE,
        "panel": [{"model": name, "billions": 7, "replies": "0"} for name in ("openai:a", "baseline:b", "hf:c")],
        "status": status,
        "items": [{"id": "scene001", "review": "accepted"}, {"id": "scene006", "review": "open"}],
    }
    write_subset(load(build), build, out, {"scene001", "scene006"}, "hard", record | more)
    return out


@pytest.mark.usefixtures("without_metadata")
def test_the_card_says_who_has_looked_at_the_hard_questions(tmp_path: Path) -> None:
    build = write_build(tmp_path / "small")
    said = {}
    for status in ("candidate", "reviewed"):
        folder = hard_set(build, tmp_path / status, status)
        made = publish(build, tmp_path / f"{status}-set", hard=folder)
        said[status] = (made.folder / "README.md").read_text()
        assert read_manifest(made.folder)["published"]["hard"]["status"] == status
    for told in (
        "| `hard` | `test` | 2 | candidates:", "Status: **candidate**. People have accepted 1 of these 2 questions.",
        "at least 16 of 20 models got wrong, 2 of them with 32 billion parameters", "Voting panel: 3.",
        "**Programs of a known strength among them, which are no models: 1.**",
    ):  # fmt: skip
        assert told in said["candidate"], told
    assert "each accepted by people" not in said["candidate"]
    assert "each accepted by people" in said["reviewed"]
    assert "Status: **reviewed**" in said["reviewed"]
    (tmp_path / "ids.txt").write_text("scene001\n")
    listed = (publish(build, tmp_path / "listed-set", hard=tmp_path / "ids.txt").folder / "README.md").read_text()
    assert "Status: **not known**" in listed
    alone = (publish(tmp_path / "candidate", tmp_path / "alone-set").folder / "README.md").read_text()
    assert "This whole set was chosen by a vote" in alone
    assert "Status: **candidate**" in alone
    assert "### The hard questions" not in (publish(build, tmp_path / "plain-set").folder / "README.md").read_text()
    hard_set(build, tmp_path / "odd", "checked")
    with pytest.raises(DatasetError, match="damaged record of a vote"):
        publish(build, tmp_path / "odd-set", hard=tmp_path / "odd")


@pytest.mark.usefixtures("without_metadata")
def test_candidates_are_uploaded_only_by_name(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    build = write_build(tmp_path / "small")
    pushed: list[Path] = []

    def push(folder: Path, *_: object) -> Any:
        pushed.append(folder)
        raise ConfigError("pushed")

    monkeypatch.setattr("vgbench_gen.publish.hub.push", push)
    (tmp_path / "ids.txt").write_text("scene001\n")
    candidate, reviewed = (hard_set(build, tmp_path / name, name) for name in ("candidate", "reviewed"))
    common = ["--repo", "lab/small", "--no-check", "--out", str(tmp_path / "set")]
    for sources in ([build, "--hard", candidate], [candidate], [build, "--hard", tmp_path / "ids.txt"]):
        line = ["publish", *map(str, sources), *common]
        assert main(line) == 2
        assert "--candidates" in capsys.readouterr().err
        assert not (tmp_path / "set").exists()
        assert not pushed
        assert main([*line, "--candidates"]) == 2
        assert len(pushed) == 1
        pushed.clear()
        assert main([*line, "--dry-run"]) == 0
        shutil.rmtree(tmp_path / "set")
    assert main(["publish", str(build), "--hard", str(reviewed), *common]) == 2
    assert len(pushed) == 1


@pytest.mark.usefixtures("without_metadata")
def test_hard_rows_name_no_partner_that_is_not_hard(tmp_path: Path) -> None:
    pair = {**TRAVELS, "twin_id": "t", "pair_id": "p"}
    build = write_build(tmp_path / "small", [pair])
    made = publish(build, tmp_path / "set", hard=hard_set(build, tmp_path / "hard", "candidate"))
    rows = list(iterate_rows(sorted((made.folder / "data" / "hard").glob("*.parquet"))))
    assert [(row["id"], row["twin_id"], row["pair_id"]) for row in rows] == [
        ("scene001", "", ""),
        ("scene006", "", ""),
    ]
    back = pull(str(made.folder), tmp_path / "back", part="hard")
    assert back.rows == 2
    assert read_manifest(tmp_path / "back")["hard"]["status"] == "candidate"
    again = (publish(tmp_path / "back", tmp_path / "again").folder / "README.md").read_text()
    assert "People have accepted 1 of these 2 questions." in again


def test_the_day_is_one_of_the_calendar(tmp_path: Path, capsys: Capture) -> None:
    build = write_build(tmp_path / "small", [TRAVELS])
    for day in ("2026-13-40", "2026-02-30", "20260101", "soon"):
        assert main(["publish", str(build), "--dry-run", "--date", day, "--out", str(tmp_path / "set")]) == 2
        assert "no valid date" in capsys.readouterr().err
    assert not (tmp_path / "set").exists()
    manifest = read_manifest(build)
    write_manifest(build, {**manifest, "date": "2026-03-01"})
    made = publish(build, tmp_path / "set")
    assert made.warnings == ()
    assert json.loads((made.folder / "croissant.json").read_bytes())["datePublished"].startswith("2026-03-01")
    assert not publish(build, tmp_path / "set").fresh
    assert publish(build, tmp_path / "set", date="2026-03-02").fresh
    pull(str(made.folder), tmp_path / "back")
    write_manifest(tmp_path / "back", {k: v for k, v in read_manifest(tmp_path / "back").items() if k != "date"})
    assert publish(tmp_path / "back", tmp_path / "next").folder
    assert read_manifest(tmp_path / "next")["published"]["date"] == "2026-03-02"


def test_configurations_have_names_that_everything_takes() -> None:
    tasks = ["Q-Plus/a b", "Q-Plus-a-b", "Train", "metric_depth", "q-plus/a b", "深度", "../x", "MMIU/Größe"]
    names = make_configuration_names(tasks)
    assert list(names.values()) == [
        "Q-Plus-a-b-2", "Q-Plus-a-b", "Train-2", "metric_depth", "q-plus-a-b-3", "task", "x", "MMIU-Groe",
    ]  # fmt: skip
    assert Options("lab/small", date="").name == "small"


def test_tasks_of_other_benchmarks_are_published_and_opened(tmp_path: Path, capsys: Capture) -> None:
    """Also: images that stay behind, and that no scan gives, are to be imported again."""
    q = {"benchmark": "SpatialScore/QSpatialBench-Plus", "source": "QSpatialBench-Plus", "licence": "unknown"}
    cv = {"benchmark": "CV-Bench", "source": "coco", "licence": "unknown"}
    tasks = ("QSpatialBench-Plus/horizontal distance", "train")
    build = write_build(tmp_path / "small", [q, cv, STAYS, TRAVELS], tasks=tasks)
    made = publish(build, tmp_path / "set")
    assert open_with_datasets(made.folder, made.rows)["configurations"] == {
        "vgbench": 8,
        "QSpatialBench-Plus-horizontal-distance": 4,
        "train-2": 4,
    }
    card = (made.folder / "README.md").read_text()
    front = yaml.safe_load(card.split("---\n")[1])
    assert [c["config_name"] for c in front["configs"]][1:] == ["QSpatialBench-Plus-horizontal-distance", "train-2"]
    assert "`QSpatialBench-Plus-horizontal-distance` (QSpatialBench-Plus/horizontal distance)" in card
    sets = {each["@id"]: each for each in json.loads((made.folder / "croissant.json").read_bytes())["recordSet"]}
    assert sets["train-2"]["description"].endswith(", task train")
    assert made.warnings == ()
    for told in (
        "**6 of the questions (75 %)", "`vgbench pull --scenes` makes the images of 2 from",
        "`vgbench import spatialscore` gives 2 with",
        "`vgbench import cvbench --out build/cvbench`", "| with their authors |",
    ):  # fmt: skip
        assert told in card, told
    back = tmp_path / "back"
    assert main(["pull", str(made.folder), "--out", str(back)]) == 0
    said = capsys.readouterr().out
    assert f"2 come without images: vgbench pull {back} --scenes" in said
    assert "2 come without images, which no scan gives: import it again: vgbench import cvbench --out FOLDER" in said
    assert load(back).ids() == load(build).ids()
    (tmp_path / "raw").mkdir()
    # With scans named it goes on as `hydrate` does: same words, same status.
    assert (
        main(["pull", str(made.folder), "--out", str(back), "--scenes", str(tmp_path / "raw"), "--workers", "1"]) == 1
    )
    said = capsys.readouterr().out
    assert "CV-Bench: 2 rows, import it again (vgbench import cvbench --out FOLDER)" in said
    assert "rows have their images" in said
    assert main(["pull", str(back), "--scenes", str(tmp_path / "raw"), "--workers", "1"]) == 1
    said = capsys.readouterr().out
    assert "CV-Bench: 2 rows, import it again (vgbench import cvbench --out FOLDER)" in said
    assert "(vgbench import spatialscore --out FOLDER)" in said
    assert set(hydrate(back, []).not_from_scans) >= {"CV-Bench", "SpatialScore/QSpatialBench-Plus"}


def card_scores(build: Path, *named: str) -> str:
    return format_scores(Release(build, {"fingerprint": "d"}, (), Options("me/set", scores=named), None))


@pytest.mark.usefixtures("without_metadata")
def test_the_card_installs_what_there_is_and_tells_constants_apart(tmp_path: Path) -> None:
    build = write_build(tmp_path / "small", [TRAVELS])
    card = (publish(build, tmp_path / "set").folder / "README.md").read_text()
    assert "pip install vgbench-gen" not in card
    assert "pip install .        # in a copy of the vgbench-gen repository" in card
    report = build / "scores" / "report"
    report.mkdir(parents=True)
    cell = {"value": 0.4, "low": None, "high": None, "n": 8, "value_all": 0.4}
    lines = [{"name": name, "cells": {"Overall": cell}} for name in ("baseline:constant", "best constant per column")]
    table = {"key": "vgbench", "columns": [{"name": "Overall", "total": 8}], "lines": lines}
    (report / "tables.json").write_text(json.dumps({"tables": [table]}))
    (build / "scores" / "x.jsonl").write_text('{"dataset": "d", "spec": "baseline:constant"}\n')
    named = card_scores(build, "baseline:constant")
    assert "`baseline:constant` has its best letter per task" in named
    (report / "tables.json").write_text(json.dumps({"tables": [{**table, "lines": lines[1:]}]}))
    found = card_scores(build)
    assert "one letter and one of yes and no for a whole column" in found
    assert "best letter per task" not in found


def test_the_card_has_models_and_programs_that_are_named_with_what_their_scores_are_over(tmp_path: Path) -> None:
    report = tmp_path / "scores" / "report"
    report.mkdir(parents=True)
    cell = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 503, "value_all": 0.4}
    specs = {
        "mine": "scripted:mine.py", "baseline:solvers": "baseline:solvers", "gpt": "openai:gpt", "some": "table:some",
        "lost": "vllm:lost", "later": "vllm:later", "baseline:blind": "baseline:blind",
    }  # fmt: skip
    for k, (model, spec) in enumerate(specs.items()):
        head = {"dataset": "d", "spec": spec, "model": model}
        (tmp_path / "scores" / f"{k}.jsonl").write_text(json.dumps(head) + "\n")
    cells = {"some": cell | {"n": 1}, "lost": cell | {"value": None, "value_all": 0.0, "n": 0}}
    names = [name for name in specs if name not in ("later", "baseline:blind")]
    lines = [
        {"name": name, "cells": {"Overall": cells.get(name, cell)}}
        for name in (*names, "baseline:solvers (coords)", "best constant per column")
    ]
    tables = [{"key": "vgbench", "columns": [{"name": "Overall", "total": 503}], "lines": lines}]
    (report / "tables.json").write_text(json.dumps({"tables": tables}))
    card = " ".join(card_scores(tmp_path).split())
    assert "| gpt | 40.0 [30.0, 50.0] |" in card
    assert "| some | 40.0 [30.0, 50.0] (1 of 503) |" in card
    assert "| best constant per column |" in card
    assert not any(f"| {name}" in card for name in ("mine", "baseline:", "lost"))
    again = f"vgbench compare {tmp_path}"
    assert find_unpublished(tmp_path, ["mine"]) == {
        "all of its requests failed": ["vllm:lost"],
        "no model (--scores NAME puts it there)": ["baseline:blind", "baseline:solvers"],
        f"not in the last comparison ({again} puts it there)": ["vllm:later"],
    }
    assert "| mine |" in card_scores(tmp_path, "scripted:mine.py")
    with pytest.raises(ConfigError, match=r"--scores other: found no scores of it"):
        find_unpublished(tmp_path, ["other"])
    with pytest.raises(ConfigError, match=rf"baseline:blind: .*not in the last comparison.*Run `{again}` first"):
        find_unpublished(tmp_path, ["baseline:blind"])


@pytest.mark.parametrize(
    "written",
    [
        {"items": 7, "findings": []},
        {"items": 8, "findings": [{"audit": "letters", "bar": "0"}]},
        {"items": 8, "findings": [3]},
        {"items": 8, "findings": None},
        {"findings": []},
        [],
    ],
)
def test_an_audit_of_something_else_is_refused(written: object, tmp_path: Path) -> None:
    build = write_build(tmp_path / "build")
    (build / "audit" / "audit.json").write_text(json.dumps(written))
    with pytest.raises(DatasetError, match=r"audit\.json: found (no|an) audit.*Audit it again"):
        publish(build, tmp_path / "out")
