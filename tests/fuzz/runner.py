"""Runs cases in forked processes that have little memory and little time, and says what became of each."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.mutations import mutate
from tests.fuzz.plain import choose
from tests.fuzz.targets import TARGETS
from tests.fuzz.verbs import COUNTED, FINE, REFUSED, BrokenPromiseError, Target
from tests.kills.harness import load_modules
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.rng import rng_for

MAX_PEAK_MB = 1000
"""What a process may hold at once, with the program itself."""
MAX_S = 60
"""Of processor time, so that what else the machine does makes no case slow."""
MAX_CLOCK_S = 600
"""By the clock, for what waits and for programs that are called."""
GOOD = (FINE, COUNTED, REFUSED)
BAD = ("unexpected exception", "broken promise", "memory", "time", "died")
_CASES_PER_FORK = 20
_ROOM = 4 << 30  # of addresses, beside what is mapped: what takes more than this is refused by the system
_OWN_FAULT = 70
_COUNT_OF_DAMAGE = (1, 1, 1, 2, 3)


@dataclass(frozen=True)
class Case:
    """One damaged input; the same three numbers give the same bytes."""

    target: str
    seed: int
    number: int


@dataclass(frozen=True)
class Result:
    """What became of a case."""

    case: Case
    outcome: str
    """One of `GOOD` or `BAD`."""
    damage: str = ""
    """What was done to the data."""
    told: str = ""
    """For what is bad: the last lines of the traceback, or why."""
    peak_mb: float = 0.0
    """The most that the process held since it began, megabytes."""


def make_cases(count: int, seed: int, targets: Sequence[Target] = TARGETS) -> list[Case]:
    """Cases of all targets in turn."""
    return [Case(targets[k % len(targets)].name, seed, k // len(targets)) for k in range(count)]


def run_cases(
    cases: Iterable[Case], work: Path, targets: Sequence[Target] = TARGETS, lanes: int = 2
) -> Iterator[Result]:
    """Run cases, `lanes` at once, and yield their results as they come.

    The sound data are written and used first, once; data that are not fine when they are whole prove nothing.

    Args:
        cases: what to run. work: an empty folder. lanes: processes at once.

    Raises:
        RuntimeError: sound data are not fine.
    """
    by_name = {target.name: target for target in targets}
    waiting = list(cases)
    _prepare([by_name[name] for name in dict.fromkeys(case.target for case in waiting)], work)
    running: dict[int, tuple[list[Case], Path]] = {}
    forks = 0
    while waiting or running:
        while waiting and len(running) < lanes:
            mine, waiting = waiting[:_CASES_PER_FORK], waiting[_CASES_PER_FORK:]
            log = work / f"{forks}.jsonl"
            forks += 1
            running[_fork(mine, by_name, work, log)] = (mine, log)
        pid, status = os.waitpid(-1, 0)
        mine, log = running.pop(pid)
        done = [Result(**{**line, "case": case}) for line, case in zip(_read(log), mine, strict=False)]
        if len(done) < len(mine) and not (done and done[-1].outcome == "memory"):
            done.append(_describe_death(mine[len(done)], status))
        waiting = mine[len(done) :] + waiting
        yield from done


def _describe_death(case: Case, status: int) -> Result:
    number = os.waitstatus_to_exitcode(status)
    if number == _OWN_FAULT:
        raise RuntimeError(f"the fuzzer itself failed at {case}")
    outcome = "time" if -number in (signal.SIGPROF, signal.SIGALRM) else "died"
    how = {-signal.SIGPROF: f"over {MAX_S} s of processor time", -signal.SIGALRM: f"over {MAX_CLOCK_S} s by the clock"}
    return Result(case, outcome, told=how.get(number, f"exit status {number}"), damage="run it alone to see")


def _prepare(targets: Sequence[Target], work: Path) -> None:
    """Write the sound data and use them, in a fork; then load here what that loaded, which spares it other forks."""
    log = work / "loaded.json"
    pid = os.fork()
    if not pid:
        status = 1
        with suppress(BaseException):
            told = [f"{target.name}: {problem}" for target in targets if (problem := _try_sound(target, work))]
            log.write_text(json.dumps([told, list(sys.modules)]))
            status = 0
        os._exit(status)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError("the process that tries the sound data died")
    told, loaded = json.loads(log.read_text())
    if told:
        raise RuntimeError(f"sound data are not fine: {'; '.join(told)}")
    load_modules(loaded)


def _try_sound(target: Target, work: Path) -> str:
    folder = work / "sound" / target.name
    folder.mkdir(parents=True)
    try:
        target.write(folder / "data")
        trial = work / "trial" / target.name
        shutil.copytree(folder, trial)
        outcome = target.use(trial)
        shutil.rmtree(trial)
    except Exception:
        return traceback.format_exc()
    return "" if outcome != REFUSED else outcome


def _fork(cases: Sequence[Case], targets: dict[str, Target], work: Path, log: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)  # ends the process also within a library
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + _ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with log.open("a") as file:
            for case in cases:
                result = asdict(run_case(case, targets[case.target], work))
                print(json.dumps(result), file=file, flush=True)
                if result["outcome"] == "memory":
                    break  # the peak of this process tells nothing about the next case
        os._exit(0)
    except BaseException:  # of the harness
        traceback.print_exc()
        os._exit(_OWN_FAULT)


def run_case(case: Case, target: Target, work: Path, keep: bool = False) -> Result:
    """Damage a copy of the sound data and use it, in this process.

    keep: leave the folder of the case in `work`.
    """
    folder = work / f"case {case.target} {case.seed} {case.number}"
    shutil.copytree(work / "sound" / case.target, folder)
    (folder / "precious").write_text("precious")
    rng = rng_for(case.seed, "fuzz", case.target, str(case.number))
    damage: list[str] = []
    outcome, told = "", ""
    signal.setitimer(signal.ITIMER_PROF, MAX_S)
    signal.setitimer(signal.ITIMER_REAL, MAX_CLOCK_S)
    try:
        for k in range(choose(rng, _COUNT_OF_DAMAGE)):
            hurt = folder / "data" / target.hurt
            if hurt.exists():
                damage.append(mutate(hurt, rng, folder / f"elsewhere{k}", target.stays))
        try:
            outcome = target.use(folder)
        except VGBenchError:
            outcome = REFUSED
        _see_that_nothing_escaped(folder)
    except BrokenPromiseError as error:
        outcome, told = "broken promise", str(error)
    except MemoryError:
        outcome, told = "memory", "more addresses than there is room for"
    except BaseException:
        outcome, told = "unexpected exception", "\n".join(traceback.format_exc().splitlines()[-15:])
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    if peak_mb > MAX_PEAK_MB:
        outcome, told = "memory", f"{peak_mb:.0f} MB"
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(case, outcome, "; ".join(damage), told, peak_mb)


def _see_that_nothing_escaped(folder: Path) -> None:
    written = sorted(path.name for path in folder.iterdir() if not path.name.startswith("elsewhere"))
    if (folder / "precious").read_text() != "precious" or set(written) - {"data", "out", "precious"}:
        raise BrokenPromiseError(f"written outside: {written}")


def _read(log: Path) -> list[dict[str, Any]]:
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines]


def format_table(results: Sequence[Result]) -> str:
    """Outcomes by target, and the most memory that a process of each held."""
    shown = [*GOOD, *BAD]
    counts = {
        name: Counter(r.outcome for r in results if r.case.target == name)
        for name in sorted({r.case.target for r in results})
    }
    lines = [" | ".join(["target", "cases", *shown, "peak MB"])]
    lines.append("---|" * (len(shown) + 2) + "---")
    for name, count in [*counts.items(), ("all", Counter(r.outcome for r in results))]:
        peak = max(r.peak_mb for r in results if name in ("all", r.case.target))
        lines.append(" | ".join([name, str(count.total()), *(str(count[word]) for word in shown), f"{peak:.0f}"]))
    return "\n".join(lines)
