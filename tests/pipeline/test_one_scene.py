"""One scene, one verdict: whatever is raised at a scene costs that scene, and the others go on."""

from __future__ import annotations

import errno
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.scenes import ca1m_writer, wildrgbd_writer
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import GeometryError, PluginError
from vgbench_gen.core.types import Fact
from vgbench_gen.pipeline import measure as measure_module
from vgbench_gen.pipeline.build import measure
from vgbench_gen.pipeline.measure import SceneReport, read_reports, shard_path
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.opening import RAISE_DEFECTS
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.scenes.wildrgbd import WildRGBD, WildRGBDScene
from vgbench_gen.store.schema import REJECTS
from vgbench_gen.store.shards import read_shard
from vgbench_gen.tasks.relative_depth import RelativeDepth

QUICK = load_recipe("default").model_copy(update={"tasks": ("relative_depth",)})


def write_capture(root: Path, change: Callable[[bytearray], None] = lambda data: None, **members: bytes) -> None:
    """A CA-1M tar of two frames: other bytes for some members of the second, then a change of the archive's bytes."""
    shots = [ca1m_writer.shot(0), ca1m_writer.shot(1)]
    shots[1].members |= {name.replace("__", "/"): data for name, data in members.items()}
    path = ca1m_writer.write_tar(root / f"{ca1m_writer.VIDEO}.tar", ca1m_writer.members(shots))
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def find_second_header(data: bytearray) -> int:
    return data.find(b"ustar", 512) - 257


def write_checksum(data: bytearray, at: int) -> None:
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])


def state_huge_size(data: bytearray) -> None:
    at = find_second_header(data)
    data[at + 124 : at + 136] = b"\x80" + (2**63).to_bytes(11, "big")
    data[at + 156 : at + 157] = b"5"
    write_checksum(data, at)


def state_size_of_many_digits(data: bytearray) -> None:
    body = b"size=" + b"9" * 5000 + b"\n"
    body = b"%d " % (len(body) + 5) + body
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, len(body)
    at = find_second_header(data)
    data[at:at] = header.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)


def rename(name: bytes) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        folder = wildrgbd_writer.write_scene(root, "cup", "scenes_001")
        (folder / "metadata").write_text("{}")
        os.rename(os.fsencode(folder), os.fsencode(folder.parent) + b"/" + name)  # noqa: PTH104

    return write


HOSTILE: dict[str, Callable[[Path], None]] = {
    "tar pax size of over 4,300 digits": lambda root: write_capture(root, state_size_of_many_digits),
    "tar base-256 size of 2^63": lambda root: write_capture(root, state_huge_size),
    "size [1, 1.7e308]": lambda root: write_capture(root, _wide__image__size=b"[1, 1.7e308]"),
    "a folder name that is no UTF-8": rename(b"scenes_\xff\xfe"),
    "a name too long for the file system": rename(b"s" * 251),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_scene_costs_itself(what: str, tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    wildrgbd_writer.write_scene(raw)
    HOSTILE[what](raw)
    reports = measure(QUICK, raw, out)
    assert len(reports) == 2
    (good,) = [report for report in reports if report.scene_id == "box/scenes_000"]
    assert not good.raised
    assert good.total_frames == 4
    assert {(r.dataset, r.scene_id) for r in read_reports(out)} == {(r.dataset, r.scene_id) for r in reports}


def fail_at(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """The loader of WildRGB-D raises at one scene."""

    def open_or_fail(self: WildRGBD, ref: SceneRef) -> WildRGBDScene:
        if ref.scene_id.endswith("bad"):
            raise error
        return WildRGBDScene(ref)

    monkeypatch.setattr(WildRGBD, "open", open_or_fail)


@pytest.fixture
def two_scenes(tmp_path: Path) -> Path:
    for name in ("bad", "scenes_000"):
        wildrgbd_writer.write_scene(tmp_path / "raw", name=name)
    return tmp_path / "raw"


def test_a_defect_costs_its_scene_and_leaves_a_traceback(
    two_scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(RAISE_DEFECTS)
    fail_at(monkeypatch, ZeroDivisionError("seven of nothing"))
    out = tmp_path / "out"
    assert (
        main(["build", "--stop-after", "facts", "--scenes", str(two_scenes), "--out", str(out), "--workers", "1"]) == 1
    )
    told = capsys.readouterr().err
    assert "ZeroDivisionError: seven of nothing. This is a defect of vgbench-gen, please report it." in told
    log = shard_path(out, "rejects", "wildrgbd", "box/bad").with_suffix(".log")
    assert f"{log.relative_to(out)} holds its traceback" in told
    assert "Traceback (most recent call last)" in log.read_text()
    assert "seven of nothing" in log.read_text()
    found = {report.scene_id: report.rejects for report in read_reports(out)}
    assert found["box/bad"] == {"scene/defect": 1}
    assert "box/scenes_000" in found


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("seven of nothing"), "ZeroDivisionError: seven of nothing. This is a defect of vgbench-gen"),
        (PluginError("its value is wrong"), "its value is wrong"),
        (GeometryError("a score below zero"), "a score below zero"),
    ],
)
def test_a_task_that_fails_costs_its_own_questions(
    error: Exception, said: str, two_scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: RelativeDepth, view: SceneView, *_: object) -> Iterator[Fact]:
        if view.id.endswith("bad"):
            raise error
        yield from ()

    monkeypatch.delenv(RAISE_DEFECTS)
    monkeypatch.setattr(RelativeDepth, "drafts", fail)
    monkeypatch.setattr(measure_module, "find_scene_problem", lambda view: None)
    recipe, out = load_recipe("default"), tmp_path / "out"
    reports = measure(recipe.model_copy(update={"tasks": ("relative_depth", "metric_depth")}), two_scenes, out)
    bad, good = sorted(reports, key=lambda report: report.scene_id)
    assert (bad.raised, bad.error, bad.issues) == (True, "", {"defect of relative_depth": 1})
    assert not good.raised
    assert bad.rejects.pop("relative_depth/defect") == 1
    assert (bad.rejects, bad.facts) == (good.rejects, good.facts)
    assert any(name.startswith("metric_depth/") for name in bad.rejects)
    rejects = read_shard(shard_path(out, "rejects", "wildrgbd", "box/bad"), REJECTS)
    (found,) = [reject for reject in rejects if reject.reason == "defect"]
    assert found.detail.startswith(said)
    log = out / "rejects" / "wildrgbd" / "box__bad.log"
    assert log.is_file() == isinstance(error, ZeroDivisionError)
    assert not log.is_file() or "seven of nothing" in log.read_text()


def test_tests_see_defects(two_scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at(monkeypatch, ZeroDivisionError("seven of nothing"))
    with pytest.raises(ZeroDivisionError):
        measure(QUICK, two_scenes, tmp_path / "out")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), MemoryError(), KeyboardInterrupt()])
def test_what_is_not_the_scenes_fault_ends_the_run(
    two_scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    fail_at(monkeypatch, error)
    with pytest.raises(type(error)):
        measure(QUICK, two_scenes, tmp_path / "out")


def test_a_scene_that_cannot_be_read_is_tried_again_and_exits_1(two_scenes: Path, tmp_path: Path) -> None:
    metadata = two_scenes / "box/scenes/bad/metadata"
    whole = metadata.read_bytes()
    metadata.write_text("[]")
    verb = [
        "build",
        "--stop-after",
        "facts",
        "--scenes",
        str(two_scenes),
        "--out",
        str(tmp_path / "out"),
        "--workers",
        "1",
    ]
    assert main(verb) == 1
    metadata.write_bytes(whole)

    def find_bad() -> SceneReport:
        return next(r for r in measure(QUICK, two_scenes, tmp_path / "out") if r.scene_id == "box/bad")

    assert not find_bad().raised


def test_scenes_whose_ids_differ_only_in_their_slash_are_kept_apart(tmp_path: Path) -> None:
    ids = ["a/b__c", "a__b/c", "a_/b", "a/_b", "a/b%5F%5Fc", "a%/b", "box/scenes_000", "7c9be0a21f/iphone", "a" * 300]
    paths = {shard_path(tmp_path, "facts", "x", scene_id) for scene_id in [*ids, "a" * 299 + "b"]}
    assert len(paths) == len(ids) + 1
    assert shard_path(tmp_path, "facts", "x", "box/scenes_000").name == "box__scenes_000.parquet"
    assert max(len(path.name.encode()) for path in paths) < 200
