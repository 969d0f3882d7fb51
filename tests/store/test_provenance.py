from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import vgbench_gen
from tests.store.examples import make_item
from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.core.types import Distractor, Item
from vgbench_gen.store import provenance
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import BuildLock, BuildLocked, dataset_fingerprint, row_fingerprint
from vgbench_gen.store.shards import write_items

ROOT = Path(__file__).parents[2]


def test_manifest_there_and_back(tmp_path: Path) -> None:
    manifest = {"seed": 3, "counts": {"b": 1, "a": [1.5, None]}, "name": "ü"}
    path = provenance.write_manifest(tmp_path / "new", manifest)
    assert provenance.read_manifest(tmp_path / "new") == manifest
    assert path.read_text("utf-8").index('"a"') < path.read_text("utf-8").index('"b"')
    assert [p.name for p in path.parent.iterdir()] == ["manifest.json"]
    with pytest.raises(ValueError, match="JSON"):
        provenance.write_manifest(tmp_path / "new", {"x": float("nan")})
    assert provenance.read_manifest(tmp_path / "new") == manifest


@pytest.mark.parametrize(
    "content",
    [None, b"{", b"[]", b"\xff", b"[" * 10**5]
    + [b'{"a": Infinity}', b'{"a": [-Infinity]}', b'{"a": NaN}', b'{"a": 1e999}', b'{"a": %s}' % (b"9" * 5000)],
)
def test_a_bad_manifest(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(DatasetError, match=r"manifest\.json: found .* expected"):
        provenance.read_manifest(tmp_path)


def test_fingerprint_is_independent_of_the_files(tmp_path: Path, media: MediaStore, jpegs: list[str]) -> None:
    items = [make_item(k, [jpegs[k % 4]], tolerance=float("nan")) for k in range(9)]
    expected = dataset_fingerprint(items)
    for shards in (2, 5):
        write_items(tmp_path / "items", items, media, rows_per_shard=shards)
        assert dataset_fingerprint(load(tmp_path)) == expected
    assert dataset_fingerprint([*items[1:], items[0]]) != expected
    assert dataset_fingerprint(items[:-1]) != expected


CHANGES: dict[str, Any] = {
    "question_type": "judgment",
    "answer_value": (2.4000000000000004,),
    "tolerance": -0.0,
    "convention": {"frame": "world"},
    "evidence": {"z_m": 2.4},
    "distractors": (Distractor("set_first", "region:1,2,3,4", 1.5), Distractor("set_first", "", 2.5)),
}


@pytest.mark.parametrize("name", [f.name for f in fields(Item)])
def test_every_field_counts(name: str) -> None:
    item = make_item(images=("0" * 32 + ".jpg",), tolerance=0.0)
    old = getattr(item, name)
    if name in CHANGES:
        new = CHANGES[name]
    else:
        new = (*old, old[0] if old else 1) if isinstance(old, tuple) else old + type(old)("1")
    changed = make_item(**{"images": item.images, "tolerance": 0.0, name: new})
    assert row_fingerprint(changed) != row_fingerprint(item)


def test_code_version_follows_source_and_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "vgbench_gen"
    shutil.copytree(ROOT / "vgbench_gen" / "core", package / "core", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text("")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "a.toml").write_text("x = 1")
    monkeypatch.setattr(vgbench_gen, "__file__", str(package / "__init__.py"))

    def source() -> str:
        provenance.code_version.cache_clear()
        return provenance.code_version()["source"]

    seen = [source()]
    assert provenance.code_version()["version"] == vgbench_gen.__version__
    (package / "core" / "note.txt").write_text("no code")
    (tmp_path / "templates" / "__pycache__").mkdir()
    (tmp_path / "templates" / "__pycache__" / "a.pyc").write_text("who imports a template leaves it")
    assert source() == seen[0]
    for path, text in ((tmp_path / "templates" / "a.toml", "x = 2"), (package / "core" / "rng.py", "# changed")):
        path.write_text(text)
        seen.append(source())
    (package / "core" / "rng.py").rename(package / "core" / "rng2.py")
    seen.append(source())
    assert len(set(seen)) == 4
    provenance.code_version.cache_clear()


def test_one_builder_at_a_time(tmp_path: Path) -> None:
    with BuildLock(tmp_path / "build"):
        with pytest.raises(BuildLocked, match=rf"process {os.getpid()} on .* delete .*build\.lock") as caught:
            BuildLock(tmp_path / "build").__enter__()
        assert isinstance(caught.value, VGBenchError)
        with BuildLock(tmp_path / "other"):
            pass
    with BuildLock(tmp_path / "build"):
        pass
    assert list((tmp_path / "build").iterdir()) == []


def test_the_lock_of_a_living_process_holds(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from vgbench_gen.store.provenance import BuildLock
with BuildLock(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    with pytest.raises(BuildLocked, match=f"process {holder.pid}"):
        BuildLock(tmp_path).__enter__()
    holder.kill()
    holder.communicate()
    with BuildLock(tmp_path):  # left behind by a killed process: taken over
        assert json.loads((tmp_path / provenance.LOCK).read_bytes())["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ({}, True),
        ({"started": 1}, False),  # the number of a dead process, used again
        ({"pid": 2**22 + 5}, False),
        ({"pid": "x"}, False),
        ({"host": "elsewhere", "pid": 2**22 + 5}, True),
    ],
)
def test_when_a_lock_is_stale(tmp_path: Path, changes: dict[str, Any], held: bool) -> None:
    lock = BuildLock(tmp_path)
    with lock:
        mine = json.loads(lock.path.read_bytes())
    assert mine["host"] == socket.gethostname()
    lock.path.write_text(json.dumps(mine | changes))
    if held:
        with pytest.raises(BuildLocked):
            lock.__enter__()
    else:
        with lock:
            assert json.loads(lock.path.read_bytes()) == mine


def test_a_torn_lock_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / provenance.LOCK).write_text('{"pid": 1')
    with BuildLock(tmp_path):
        pass


def test_a_flocked_lock_holds_whatever_its_words(tmp_path: Path) -> None:
    """In another container the process that holds it has a number that means nothing here."""
    with BuildLock(tmp_path) as lock:
        mine = json.loads(lock.path.read_bytes())
        lock.path.write_text(json.dumps(mine | {"pid": 2**22 + 5}))
        with pytest.raises(BuildLocked):
            BuildLock(tmp_path).__enter__()
        lock.path.write_text(json.dumps(mine))
    with BuildLock(tmp_path):
        pass


def test_deep_json_in_a_lock_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / provenance.LOCK).write_text("[" * 4000)
    with BuildLock(tmp_path):
        pass


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / provenance.LOCK)
    with pytest.raises(DatasetError, match=r"found a pipe.*Delete .*build\.lock"):
        BuildLock(tmp_path).__enter__()
