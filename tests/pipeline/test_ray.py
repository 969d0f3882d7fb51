"""Ray runs the same function: same bytes, same errors, the same second try. One local instance for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.jobs import Task, tried, work
from tests.pipeline.same_bytes import content, small_build
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.executors import Engine, run

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def ray_engine() -> Iterator[Engine]:
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    yield Engine("ray", 2)
    ray.shutdown()


def two_errors(job: int) -> int:
    if job == 0:
        raise OSError(28, "No space left on device", "somewhere")
    return job


def test_ray_gives_the_same_bytes(
    ray_engine: Engine, reference: tuple[Path, dict[str, str]], raw_room: Path, tmp_path: Path
) -> None:
    small_build(raw_room, tmp_path / "b", ray_engine)
    assert content(tmp_path / "b") == reference[1]


def test_a_killed_ray_worker_costs_one_more_try_and_then_its_job(ray_engine: Engine, tmp_path: Path) -> None:
    tasks = [Task(tmp_path, 0, deaths=9), Task(tmp_path, 1, deaths=1), Task(tmp_path, 2)]
    done = dict(run(work, tasks, ray_engine, lost=lambda task, error: (-1, tried(task))))
    assert done == {0: (-1, 2), 1: (1, 2), 2: (2, 1)}


def test_what_a_job_raises_on_ray_is_raised_as_it_is(ray_engine: Engine) -> None:
    with pytest.raises(OSError, match="somewhere") as caught:
        list(run(two_errors, [0, 1], ray_engine))
    assert type(caught.value) is OSError
    assert caught.value.errno == 28


def test_a_node_with_another_folder_of_that_name_is_told(
    ray_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the build folder is not on shared storage: facts would be written where nobody looks for them."""
    pytest.importorskip("ray")
    from vgbench_gen.executors import ray as engine_module

    monkeypatch.setattr(engine_module, "_read_lock", lambda folder: b"held by somebody")
    with pytest.raises(VGBenchError, match=f"found no {tmp_path}, or another one.*every node sees under the same path"):
        list(run(abs, [1], ray_engine, [tmp_path]))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_does_not_answer_is_told_at_once(ray_engine: Engine, address: str) -> None:
    with pytest.raises(VGBenchError, match=f"{address}: found no Ray cluster .*ray start --head"):
        list(run(abs, [1], Engine("ray", 2, address)))
