from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quality.review.people import lines
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.quality.review.lines import ReviewError, keep_last
from vgbench_gen.quality.review.log import VerdictLog, read_logs

WRITER = """
import sys
from pathlib import Path
from tests.quality.review.people import lines
from vgbench_gen.quality.review.log import VerdictLog
log = VerdictLog(Path(sys.argv[1]), "ann")
for n in range(10**6):
    for line in lines("ann", f"item{n}", "valid"):
        log.append(line)
    print(n, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(100):
            last = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    kept = read_logs(tmp_path)["ann"]
    assert len(kept) >= 2 * (last + 1)
    assert [line.item for line in kept[: 2 * (last + 1)]] == [f"item{n // 2}" for n in range(2 * (last + 1))]
    # The kill leaves no lock behind, and the next line stands on a line of its own.
    log = VerdictLog(tmp_path, "ann")
    log.append(lines("ann", "next", "valid")[0])
    log.close()
    assert read_logs(tmp_path)["ann"][-1].item == "next"


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_torn_last_line_is_ignored_and_cut(tmp_path: Path, cut: int) -> None:
    log = VerdictLog(tmp_path, "ann")
    for line in lines("ann", "one", "valid"):
        log.append(line)
    log.close()
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-cut])
    torn = log.path.read_bytes()
    assert [line.stage for line in read_logs(tmp_path)["ann"]] == ["answer"]
    assert log.path.read_bytes() == torn  # a reader does not write
    again = VerdictLog(tmp_path, "ann")
    assert [line.stage for line in again.lines] == ["answer"]
    again.append(lines("ann", "two", "invalid")[1])
    again.close()
    assert [(line.item, line.stage) for line in read_logs(tmp_path)["ann"]] == [("one", "answer"), ("two", "verdict")]


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = VerdictLog(tmp_path, "ann")
    first, second = lines("ann", "one", "valid")
    log.append(first)
    before = log.path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space") as caught:
            log.append(second)
    assert caught.value.filename == str(log.path)
    assert log.path.read_bytes() == before
    log.append(second)
    assert [line.stage for line in read_logs(tmp_path)["ann"]] == ["answer", "verdict"]
    log.close()


def test_one_process_writes_for_one_reviewer(tmp_path: Path) -> None:
    log = VerdictLog(tmp_path, "ann")
    with pytest.raises(ReviewError, match="has it open"):
        VerdictLog(tmp_path, "Ann")
    log.close()
    VerdictLog(tmp_path, "ann").close()


@pytest.mark.parametrize("name", ["", "..", "a/b", "a.b", "-a", "ä", "a" * 33, "a b", "a\x00", "a\nb"])
def test_names_are_safe_file_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReviewError, match="reviewer name"):
        VerdictLog(tmp_path / "review", name)
    assert not (tmp_path / "review").exists()


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("")
    (tmp_path / "review").mkdir()
    (tmp_path / "review" / "ann.jsonl").symlink_to(outside)
    with pytest.raises(OSError, match="symbolic"):
        VerdictLog(tmp_path / "review", "ann")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [(b'"valid"', b'"fine"', "verdict"), (b'"schema":1', b'"schema":2', "schema"), (b"{", b"[", "line"),
     (b'"note":""', b'"note":"","more":1', "more")],
)  # fmt: skip
def test_a_damaged_line_is_named(tmp_path: Path, old: bytes, new: bytes, says: str) -> None:
    good = b"".join(line.to_bytes() for line in lines("ann", "one", "valid"))
    bad = lines("ann", "two", "valid")[1].to_bytes().replace(old, new, 1)
    (tmp_path / "ann.jsonl").write_bytes(good + bad + good)
    with pytest.raises(DatasetError, match=rf"ann\.jsonl, line 3: found no record \({says}"):
        read_logs(tmp_path)


def test_a_file_under_another_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bob.jsonl").write_bytes(lines("ann", "one", "valid")[0].to_bytes())
    with pytest.raises(DatasetError, match="found reviewer 'ann'"):
        read_logs(tmp_path)


def test_the_last_line_of_a_key_wins() -> None:
    first, second = lines("ann", "one", "valid"), lines("ann", "one", "invalid", flags=["unclear"])
    held = keep_last([*first, *second])
    assert [line.stage for line in held] == ["answer", "verdict"]
    assert held[1].verdict == "invalid"
    assert len(keep_last([*first, *lines("ann", "one", "valid", planted="flipped")])) == 4
