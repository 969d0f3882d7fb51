from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.scene_factory import room_scene
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Fact
from vgbench_gen.distractors.base import strategies
from vgbench_gen.pipeline.measure import measure_task
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store import pictures
from vgbench_gen.tasks._homographies.evidence import WarpedImageEvidence
from vgbench_gen.tasks.homography_to_image import HomographyToImage
from vgbench_gen.tasks.homography_to_matrix import HomographyToMatrix
from vgbench_gen.tasks.records import make_camera_record
from vgbench_gen.tasks.solving.seen import read_corner_moves
from vgbench_gen.text.lint import lint
from vgbench_gen.text.render import load_phrasings, render

TASK = HomographyToImage()
NAME = "0" * 32 + ".png"


@pytest.fixture(scope="module")
def view() -> SceneView:
    return SceneView(room_scene(frames=2, width=480, height=360), Gates())


@pytest.fixture(scope="module")
def facts(view: SceneView) -> list[Fact]:
    kept, dropped = measure_task(TASK, view, 0, 10)
    assert not dropped
    return [
        replace(
            fact,
            pictures={fact.frame_ids[0]: NAME},
            cameras={fact.frame_ids[0]: make_camera_record(view.frame(fact.frame_ids[0]).wide_camera)},
        )
        for fact in kept
    ]


def test_candidates_stand_in_the_order_of_the_options(view: SceneView, facts: list[Fact]) -> None:
    """Only the picture that the answer names is the source warped by the matrix of the question."""
    assert len(facts) == 2 * len(view.frames)
    places = set()
    for turn, fact in enumerate(facts):
        image = pictures.decode(view.frame(fact.frame_ids[0]).base_image(wide=True)[0])
        options = strategies["set_first"].options(fact, TASK, rng_for(turn, "o"))
        shown = TASK.choice(fact, options, rng_for(0, "c"))
        assert shown.options == ("image 2", "image 3", "image 4", "image 5")
        first = pictures.apply(shown.pictures[0], image).astype(np.float32)
        height, width = first.shape[:2]
        corners = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], dtype=float)
        (moves,) = read_corner_moves(shown.slots["corners"])
        H, _ = cv2.findHomography(corners, corners + moves)
        assert (width, height) == WarpedImageEvidence.of(fact).size
        # Looked up pixel by pixel in the crop, unlike the warp of the pictures, which draws from the frame.
        v, u = np.mgrid[:height, :width].astype(np.float64)
        source = np.stack([u, v, np.ones_like(u)], axis=-1) @ np.linalg.inv(H).T
        x, y = (source[..., k] / source[..., 2] for k in (0, 1))
        expected = cv2.remap(first, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR)
        seen = (x > 0) & (x < width - 1) & (y > 0) & (y < height - 1)
        assert seen.mean() > 0.4
        differences = [
            float(np.abs(pictures.apply(p, image).astype(float) - expected)[seen].mean()) for p in shown.pictures[1:]
        ]
        assert int(np.argmin(differences)) == options.truth
        # Image 1 is blurred once, and what is looked up in it again by the warp.
        assert 3 * differences[options.truth] < min(d for i, d in enumerate(differences) if i != options.truth)
        assert {pictures.find_size(p, (480, 360)) for p in shown.pictures} == {(width, height)}
        assert (shown.slots["width"], shown.slots["height"]) == (str(width), str(height))
        places.add(options.truth)
        for phrasing in load_phrasings(TASK.name, "multi-choice", "words"):
            question, context = render(phrasing, shown.slots)
            assert lint(question, context, shown.options, phrasing.states) == []
    assert len(places) > 1


def test_the_two_directions_ask_about_other_warps(view: SceneView, facts: list[Fact]) -> None:
    others, _ = measure_task(HomographyToMatrix(), view, 0, 10)
    assert {f.truth_candidate.key for f in others}.isdisjoint(f.truth_candidate.key for f in facts)
