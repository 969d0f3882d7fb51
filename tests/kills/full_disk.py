"""A disk that is full, a second writer and a clock that runs backwards: refused or not, the next run ends in the same
bytes.

Run by `test_full_disk.py` in a process of its own: these tests fork, and a fork of a process with threads, which any
other test may have started, can wait for ever.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kills.__main__ import VERBS
from tests.kills.harness import Verb, read_content
from vgbench_gen.core.errors import VGBenchError

FINE, REFUSED, DEFECT = 0, 3, 1
EACH = pytest.mark.parametrize("verb", sorted(VERBS))
pytestmark = pytest.mark.timeout(900)


def begin(act: Callable[[], object]) -> int:
    """The process in which something is done; what it prints is dropped."""
    pid = os.fork()
    if not pid:
        status = DEFECT
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            act()
            status = FINE
        except (OSError, VGBenchError):
            status = REFUSED
        except RuntimeError as error:  # of a command line, by its status
            status = REFUSED if str(error).endswith(("status 1", "status 2")) else DEFECT
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    return pid


def end(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def lay(verb: Verb, work: Path) -> tuple[Path, dict[str, str]]:
    """A folder in which the verb may begin, and what it makes where nothing disturbs it."""
    (work / "begin").mkdir()
    assert end(begin(lambda: verb.prepare(work / "begin"))) == FINE
    shutil.copytree(work / "begin", work / "tried", symlinks=True)
    assert end(begin(lambda: verb.act(work / "tried"))) == FINE
    expected = read_content(work / "tried", verb)
    shutil.rmtree(work / "tried")
    shutil.copytree(work / "begin", work / "tried", symlinks=True)
    return work / "tried", expected


@EACH
@pytest.mark.parametrize("most_bytes", [0, 3000])
def test_a_full_disk_ends_in_an_error_and_harms_nothing(tmp_path: Path, verb: str, most_bytes: int) -> None:
    """No file may become longer: the error is another than that of a full disk, and is met at the same places."""
    folder, expected = lay(VERBS[verb], tmp_path)

    def act() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
        VERBS[verb].act(folder)

    assert end(begin(act)) == REFUSED
    assert end(begin(lambda: VERBS[verb].act(folder))) == FINE
    assert read_content(folder, VERBS[verb]) == expected


@EACH
def test_two_at_once_do_not_mix(tmp_path: Path, verb: str) -> None:
    folder, expected = lay(VERBS[verb], tmp_path)
    both = [begin(lambda: VERBS[verb].act(folder)) for _ in range(2)]
    assert {end(pid) for pid in both} <= {FINE, REFUSED}
    assert end(begin(lambda: VERBS[verb].act(folder))) == FINE
    assert read_content(folder, VERBS[verb]) == expected


@EACH
def test_a_clock_that_runs_backwards_changes_nothing(tmp_path: Path, verb: str) -> None:
    folder, expected = lay(VERBS[verb], tmp_path)
    past = iter(range(2_000_000_000, 0, -3600))

    def act() -> None:
        time.time = lambda: float(next(past))
        VERBS[verb].act(folder)

    assert end(begin(act)) == FINE
    assert read_content(folder, VERBS[verb]) == expected


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where nobody may")
@EACH
def test_a_folder_that_may_not_be_written_is_an_error(tmp_path: Path, verb: str) -> None:
    folder, expected = lay(VERBS[verb], tmp_path)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    assert end(begin(lambda: VERBS[verb].act(folder))) == REFUSED
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert end(begin(lambda: VERBS[verb].act(folder))) == FINE
    assert read_content(folder, VERBS[verb]) == expected
