"""Which of our kinds stands for which published category, and both beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import vgbench_gen
from tests.evaluation.benchmarks import mmsi_files
from tests.evaluation.score_rows import board, entry, row
from tests.evaluation.test_tables import by_key, cell
from tests.publish.published import TRAVELS, write_build
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.benchmarks.mmsi.questions import ROWS, TYPES
from vgbench_gen.evaluation.benchmarks.vgbench.tables import read_published
from vgbench_gen.evaluation.tables import compare_models
from vgbench_gen.importers.base import importers
from vgbench_gen.tasks.base import tasks


def test_every_kind_stands_for_a_published_category() -> None:
    """A kind without an entry in `published.toml` fails here: add it to the categories that it stands for."""
    named = {kind for one in read_published().values() for category in one.values() for kind in category.kinds}
    registered = {task.name for task in tasks.values()}
    assert named <= registered
    assert registered - named == {"view_after_motion"}  # of SpatialScore's first version alone
    assert tasks["view_after_motion"].paper_column


def test_categories_are_those_that_were_published() -> None:
    published = read_published()
    sums = {
        name: (sum(c.items for c in parts.values()), sum(c.corpus for c in parts.values()))
        for name, parts in published.items()
    }
    assert sums["SpatialScore v2"] == (5025, 330_802)
    assert len(published["SpatialScore v2"]) == 30
    assert sum(category.corpus > 0 for category in published["SpatialScore v2"].values()) == 16
    assert sums["MMSI-Bench"] == (ROWS, 0)
    assert list(published["MMSI-Bench"]) == list(TYPES)
    for name, source in (("VSI-Bench", "vsi-bench"), ("BLINK", "blink"), ("3DSRBench", "3dsrbench")):
        parts = importers[source].parts
        assert {c: category.items for c, category in published[name].items()}.items() <= {
            c: part.expected for c, part in parts.items()
        }.items()
    assert published["VSI-Bench"].keys() == importers["vsi-bench"].parts.keys()


def test_a_category_stands_before_our_kinds_for_it() -> None:
    entries = [entry(f"c{k}", task="object_from_camera", origin="object_from_camera_vqa") for k in range(4)]
    entries += [entry(f"s{k}", task="size_comparison", origin="size_comparison_vqa") for k in range(2)]
    entries += [
        entry(f"m{k}", source="MMSI-Bench", task=task, origin="")
        for k, task in enumerate(("positional_cam_obj", "positional_cam_obj", "positional_cam_reg", "attribute_appr"))
    ]
    rows = [row("c0"), row("c1", 0.0), row("c2", 0.0), row("c3", 0.0), row("s0"), row("s1")]
    rows += [row("m0"), row("m1", 0.0), row("m2"), row("m3", 0.0)]
    found = compare_models(board(entries, m=rows))
    table = by_key(found, "ours-mmsi-bench")
    obj, reg = "positional cam obj", "positional cam reg"
    cells = [cell(table, "m", head) for head in (obj, f"ours: {obj}", reg, f"ours: {reg}", "ours: attribute meas")]
    assert [(one.value, one.n) for one in cells] == [(0.5, 2), (0.25, 4), (1.0, 1), (0.25, 4), (1.0, 2)]
    assert "attribute appr" not in [head.name for head in table.columns]  # we have no kind for it
    # VSI-Bench's directions are of three difficulties, and SpatialScore's copy of it has a name of its own.
    vsi = [entry("v", source="VSI-Bench_8", task="", origin="object_rel_direction_hard")]
    ours = [entry("d", task="relative_direction", origin="relative_direction_vqa")]
    both = compare_models(board([*vsi, *ours], m=[row("v"), row("d", 0.0)]))
    assert cell(by_key(both, "ours-vsi-bench"), "m", "object rel direction").n == 1
    # Neither alone makes such a table.
    for alone in (vsi, ours):
        keys = [table.key for table in compare_models(board(alone, m=[row(alone[0].id)])).tables]
        assert not any(key.startswith("ours-") for key in keys)


def test_datasets_of_several_benchmarks_stand_on_one_board(tmp_path: Path) -> None:
    mmsi = mmsi_files.write(tmp_path / "mmsi", [mmsi_files.row(k) for k in range(11)])
    built = write_build(tmp_path / "small", [TRAVELS])
    for folder, name in ((built, "vgbench"), (mmsi, "mmsi")):
        assert main(["eval", str(folder), "--benchmark", name, "--model", "baseline:truth", "--prompts", "paper"]) == 0
    out = str(tmp_path / "out")
    found = vgbench_gen.compare([built, mmsi], benchmark=["vgbench", "mmsi"], out=out)
    names = found.to_pandas("source")
    assert names.loc["baseline:truth"].to_dict() == {"MMSI-Bench": 1.0, "VGBench": 1.0}
    command = ["compare", str(built), str(mmsi), "--benchmark", "vgbench", "--benchmark", "mmsi", "--out", out]
    assert main(command) == 0
    with pytest.raises(ConfigError, match="found 2 names with 1 datasets; expected one for all, or one for each"):
        vgbench_gen.compare(mmsi, benchmark=["vgbench", "mmsi"])
