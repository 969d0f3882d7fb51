from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.quality.solvers.drawn_rooms import shot
from tests.quality.text_questions import question
from tests.store.examples import make_item, textured
from vgbench_gen.core.types import LETTERS, Item
from vgbench_gen.quality import solvers
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.quality.rules import PIXELS
from vgbench_gen.quality.solvers import (
    Kind,
    SolverJob,
    SolverOutcome,
    make_findings,
    plan_solvers,
    run_solvers,
    share_credit,
)
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture, apply, encode_jpeg
from vgbench_gen.store.shards import write_items
from vgbench_gen.text import numbers

WIDTH, HEIGHT = 96, 72
FEATURES = "features and a robust fit"


def outcomes(kind: Kind, name: str, task: str, credit: list[float], read: bool = True) -> list[SolverOutcome]:
    asked = [question(f"i{k:03d}", list("abcd"), 0, task=task, scene=f"s{k % 20}") for k in range(len(credit))]
    shown = [f"s{(k + (kind == 'wrong image')) % 20}" for k in range(len(credit))]
    return [SolverOutcome(kind, name, one, c, read, scene) for one, c, scene in zip(asked, credit, shown, strict=True)]


@pytest.mark.parametrize(
    ("kind", "right", "n", "verdict"),
    [
        ("solver", 97, 100, "passed"),
        ("solver", 80, 100, "failed"),
        ("solver", 93, 100, "not judged"),  # below its goal by no more than luck
        ("solver", 40, 40, "not judged"),
        ("wrong image", 26, 100, "passed"),
        ("wrong image", 60, 100, "failed"),
        ("wrong image", 2, 100, "failed"),
        ("wrong image", 30, 100, "not judged"),
        ("image rule", 29, 100, "passed"),
        ("image rule", 0, 100, "passed"),
        ("image rule", 34, 100, "not judged"),
        ("image rule", 60, 100, "failed"),
        ("image rule", 12, 40, "not judged"),
    ],
)
def test_verdicts(kind: Kind, right: int, n: int, verdict: str) -> None:
    rng = np.random.default_rng(0)
    credit = rng.permutation([1.0] * right + [0.0] * (n - right)).tolist()
    (line,) = make_findings(outcomes(kind, FEATURES, "homography_to_image", credit))
    assert (line.kind, line.n, line.verdict) == (kind, n, verdict)
    assert line.value == pytest.approx(100 * right / n)
    assert line.low <= line.value <= line.high
    assert line.chance == 25
    behind = [f"i{k:03d}" for k, c in enumerate(credit) if (c < 1) == (kind == "solver")]
    assert sorted(line.items) == behind


def test_what_two_scenes_show_each_other_is_one_observation() -> None:
    """14 of 25 pairs of scenes agree, two questions in each; by 50 scenes on their own that would be no luck."""
    asked = outcomes("wrong image", FEATURES, "homography_to_image", [float(k // 4 < 14) for k in range(100)])
    swapped = [
        replace(o, question=replace(o.question, scene=f"s{k // 2}"), shown=f"s{(k // 2) ^ 1}")
        for k, o in enumerate(asked)
    ]
    apart = [replace(o, shown=f"t{k // 2}") for k, o in enumerate(swapped)]
    (together,), (alone,) = make_findings(swapped), make_findings(apart)
    assert (round(together.value), together.verdict, alone.verdict) == (56, "not judged", "failed")


def test_a_solver_without_a_goal_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = replace(solvers.find_solvers("homography_to_image")[0], goal=float("nan"))
    monkeypatch.setattr(solvers, "find_solvers", lambda task: (declared,))
    (line,) = make_findings(outcomes("solver", FEATURES, "homography_to_image", [0.0] * 30))
    assert (line.verdict, line.value) == ("reported", 0)


def test_what_was_not_read_is_said() -> None:
    (line,) = make_findings(outcomes("solver", FEATURES, "homography_to_image", [0.25] * 60, read=False))
    assert "60 not read" in line.detail
    assert line.failed


def test_credit_is_shared_among_ties() -> None:
    assert share_credit(np.array([0.2, 0.7, 0.1]), 1) == 1
    assert share_credit(np.array([0.7, 0.7, 0.1]), 1) == 0.5
    assert share_credit(np.array([0.2, 0.7, 0.1]), 0) == 0
    assert share_credit(np.array([-np.inf] * 4), 2) == 0.25
    assert share_credit(np.array([np.nan, 0.1]), 1) == 1
    assert share_credit(np.array([np.nan, 0.1]), 0) == 0


# --- a small dataset on disk ----------------------------------------------------------------------------------------


def view_items(media: MediaStore, count: int, planted: bool) -> list[Item]:
    """Candidates that are noise; planted: the right one is the first image, a little brighter."""
    made = []
    for n in range(count):
        source, truth = textured(WIDTH, HEIGHT, seed=5 * n), (7 * n) % 4
        shown = [textured(WIDTH, HEIGHT, seed=5 * n + 1 + k) for k in range(4)]
        if planted:
            shown[truth] = np.clip(source.astype(np.int64) + 6, 0, 255).astype(np.uint8)
        names = [media.put(encode_jpeg(image), "jpg") for image in (source, *shown)]
        options = tuple(f"image {k + 2}" for k in range(4))
        made.append(row(n, "view_after_motion", names, options, truth, f"scene{n % 15}"))
    return made


def depth_items(media: MediaStore, count: int, planted: bool) -> list[Item]:
    """Four rectangles of four heights; planted: the right one is the top-most."""
    name = media.put(encode_jpeg(textured(WIDTH, HEIGHT)), "jpg")
    rng = np.random.default_rng(3)
    made = []
    for n in range(count):
        tops = rng.permutation([4, 20, 36, 52])
        options = tuple(f"the {color} region" for color in ("orange", "yellow", "blue", "pink"))
        rects = [[5 + 20 * k, int(top), 15 + 20 * k, int(top) + 10] for k, top in enumerate(tops)]
        marks = zip(rects, ("orange", "yellow", "blue", "pink"), strict=True)
        ops = [{"op": "region", "rect": rect, "color": color} for rect, color in marks]
        truth = int(tops.argmin()) if planted else n % 4
        one = row(n, "relative_depth", [name], options, truth, f"scene{n % 15}")
        pictures = [{"base": "0" * 32 + ".png", "ops": ops}]
        made.append(replace(one, ask="deepest", evidence={"pictures": pictures, "cameras": {}, "bases": {}}))
    return made


def warp_items(media: MediaStore, count: int) -> list[Item]:
    """Turns of rendered frames about their middle, of which a part is shown."""
    made = []
    for n in range(count):
        image = shot(1 + n % 2, (2, 4, 5)[n // 2 % 3])[0]
        Hs = []
        for k in range(4):
            c, s = np.cos(0.12 * (k - 1.5) + 0.01 * n), np.sin(0.12 * (k - 1.5) + 0.01 * n)
            matrix = np.array([[c, -s, 100 - 100 * c + 75 * s], [s, c, 75 - 100 * s - 75 * c], [0, 0, 1.0]])
            Hs.append(np.array([[float(numbers.format_significant(x)) for x in line] for line in matrix]))
        truth = (3 * n) % 4
        op = {"op": "warp", "H": Hs[truth].ravel().tolist(), "rect": [60, 45, 200, 150], "size": [200, 150]}
        crop = {"op": "crop_resize", "rect": [60, 45, 200, 150], "size": [200, 150]}
        shown = [apply(Picture("0" * 32 + ".png", (each,)), image) for each in (crop, op)]
        names = [media.put(encode_jpeg(x), "jpg") for x in shown]
        options = tuple(numbers.format_matrix(H, numbers.format_significant) for H in Hs)
        made.append(row(n, "homography_to_matrix", names, options, truth, f"scene{n % 2}"))
    return made


def row(n: int, task: str, images: list[str], options: Sequence[str], truth: int, scene: str) -> Item:
    changes = {
        "id": f"{task}{n:04d}",
        "group_id": f"{task}{n}",
        "task": task,
        "scene_id": scene,
        "options": tuple(options),
    }
    return make_item(n, images, **changes, answer=LETTERS[truth], context="")


def written(folder: Path, make: Callable[[MediaStore], list[Item]]) -> tuple[str, list[Question]]:
    media = MediaStore(folder / "media")
    items = make(media)
    write_items(folder / "items", items, media)
    return str(folder), [read_question(item) for item in items]


def encode_soft(seed: int, softness_px: float) -> bytes:
    """A picture with grain, blurred by so many pixels."""
    image = textured(WIDTH, HEIGHT, seed) + np.random.default_rng(seed).normal(0, 20, (HEIGHT, WIDTH, 1))
    blurred = cv2.GaussianBlur(image, (0, 0), softness_px) if softness_px else image
    return encode_jpeg(np.clip(blurred, 0, 255).astype(np.uint8))


def soft_views(media: MediaStore, count: int, planted: bool) -> list[Item]:
    """Five pictures, of which the options are four; planted: the right one is the sharpest."""
    made = []
    for n in range(count):
        truth = (7 * n) % 4
        names = [media.put(encode_soft(5 * n + k, 0.5 * (planted and k != truth + 1)), "jpg") for k in range(5)]
        made.append(row(n, "view_after_motion", names, [f"image {k + 2}" for k in range(4)], truth, f"scene{n % 30}"))
    return made


def soft_depths(media: MediaStore, count: int, planted: bool) -> list[Item]:
    """Single pictures of four softnesses with four values each; planted: the softer, the larger is the right one."""
    rng, made = np.random.default_rng(4), []
    for n in range(count):
        soft, values, order = int(rng.integers(4)), rng.uniform(0.9, 1.1) * 1.4 ** np.arange(4), rng.permutation(4)
        truth = int(np.flatnonzero(order == soft)[0]) if planted else n % 4
        name = media.put(encode_soft(n, 0.4 * (1 + soft)), "jpg")
        made.append(row(n, "metric_depth", [name], [f"{values[k]:.2f} m" for k in order], truth, f"scene{n % 30}"))
    return made


@pytest.mark.parametrize("planted", [False, True])
def test_planted_sharpness_is_caught(planted: bool, tmp_path: Path) -> None:
    """The right picture is the sharpest, or the right number is the one that such pictures usually have."""
    folder, questions = written(
        tmp_path, lambda media: soft_views(media, 60, planted) + soft_depths(media, 120, planted)
    )
    ruled = [job for job in plan_solvers(questions, folder) if job.kind == "rules"]
    found = {line.task: line for line in make_findings(outcome for job in ruled for outcome in run_solvers(job))}
    assert {task: line.failed for task, line in found.items()} == {
        "metric_depth": planted,
        "view_after_motion": planted,
    }
    if planted:
        assert found["view_after_motion"].name in {f"largest {name}" for name in PIXELS}
        assert found["view_after_motion"].value > 95
        assert (found["metric_depth"].name, found["metric_depth"].value > 60) == ("smallest unusual for images", True)


def test_a_damaged_picture_costs_its_question_alone(tmp_path: Path) -> None:
    def make(media: MediaStore) -> list[Item]:
        made = soft_depths(media, 52, False)
        name = media.put(b"\xff\xd8\xff no picture", "jpg")
        return [row(52, "metric_depth", [name], ["1 m", "2 m", "3 m", "4 m"], 0, "scene0"), *made]

    folder, questions = written(tmp_path, make)
    (line,) = make_findings(outcome for job in plan_solvers(questions, folder) for outcome in run_solvers(job))
    assert (line.kind, line.n, line.verdict) == ("image rule", 52, "passed")


@pytest.mark.parametrize("planted", [False, True])
def test_a_planted_cue_is_caught(planted: bool, tmp_path: Path) -> None:
    def make(media: MediaStore) -> list[Item]:
        return view_items(media, 52, planted) + depth_items(media, 52, planted)

    folder, questions = written(tmp_path, make)
    ruled = [job for job in plan_solvers(questions, folder) if job.kind == "rules"]
    found = {line.task: line for line in make_findings(outcome for job in ruled for outcome in run_solvers(job))}
    assert {line.kind for line in found.values()} == {"image rule"}
    assert {task: line.failed for task, line in found.items()} == {
        "relative_depth": planted,
        "view_after_motion": planted,
    }
    if planted:
        assert found["relative_depth"].name == "top-most region"
        assert found["view_after_motion"].name.startswith("most similar image")
        assert found["view_after_motion"].value == 100
        assert found["view_after_motion"].items


def test_from_files_to_figures(tmp_path: Path) -> None:
    folder, questions = written(tmp_path, lambda media: warp_items(media, 6))
    work = plan_solvers(questions, folder)
    answered = [outcome for job in work for outcome in run_solvers(job)]
    # One solver stands for a task that declares two.
    assert {outcome.name for outcome in answered if outcome.kind != "image rule"} == {FEATURES}
    lines = make_findings(answered)
    solver, control = (next(line for line in lines if line.kind == kind) for kind in ("solver", "wrong image"))
    assert (solver.name, solver.value, control.name) == (FEATURES, 100, FEATURES)
    assert control.n == 6  # each with the images of the three of the other scene
    assert control.value <= 60  # of 18 guesses
    assert lines == make_findings(outcome for job in reversed(work) for outcome in run_solvers(job))


def test_the_plan_is_a_fixed_sample_with_whole_groups() -> None:
    questions = [
        replace(read_question(make_item(n, ["x.jpg"], task="point_tracking")), group=f"g{n // 2}", form="judgment")
        for n in range(90)
    ] + [replace(read_question(make_item(n, ["x.jpg"], task="metric_depth"))) for n in range(9)]
    work = plan_solvers(questions, "d", per_cell=21, rules_per_cell=0)
    solved = [q for job in work if job.kind == "solve" for q in job.questions]
    assert {q.task for q in solved} == {"point_tracking"}  # depth has no solver
    assert len(solved) == 22
    assert len({q.group for q in solved}) == 11
    assert sum(len(job.questions) for job in work if job.kind == "rules") == 90 + 9
    again = plan_solvers(questions[::-1], "d", per_cell=21, rules_per_cell=0)
    assert {q.id for job in again if job.kind == "solve" for q in job.questions} == {q.id for q in solved}
    assert all(isinstance(pickle.loads(pickle.dumps(job)), SolverJob) for job in work)
