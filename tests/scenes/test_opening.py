"""A loader that breaks its contract costs its scenes, in one line that names the attribute."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.scene_factory import RoomScene, room_scene
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.registry import Registry
from vgbench_gen.scenes import base
from vgbench_gen.scenes.opening import open_scene
from vgbench_gen.scenes.view import SceneView

SCENE_ATTRIBUTES = (
    *("dataset", "id", "split", "frames", "objects", "up_world", "depth_kind"),
    *("licence", "source_digest", "issues", "total_frames"),
)
FRAME_ATTRIBUTES = ("id", "timestamp_s", "camera", "depth_camera", "world_from_camera", "pose_deviation")


def forget(name: str) -> Callable[[RoomScene], None]:
    return lambda scene: delattr(scene if name in SCENE_ATTRIBUTES else scene.frames[0], name)


def say(name: str, value: Any) -> Callable[[RoomScene], None]:
    return lambda scene: setattr(scene, name, value)


def name_frame(value: Any) -> Callable[[RoomScene], None]:
    return lambda scene: setattr(scene.frames[2], "id", value)


def give_float64(scene: RoomScene) -> None:
    depth = np.ones((72, 96), np.float64)
    for frame in scene.frames:
        vars(frame)["depth_m"] = lambda: depth


class Rooms:
    """A loader of two rooms, "good" and "spoilt"."""

    version, is_general, spoil = 1, False, staticmethod(forget("split"))

    def discover(self, root: Path) -> Iterator[base.SceneRef]:
        for name in ("good", "spoilt"):
            yield base.SceneRef("rooms", name, root)

    def open(self, ref: base.SceneRef) -> base.Scene:
        scene = room_scene(frames=3, width=96, height=72, dataset="rooms")
        scene.id = ref.scene_id
        if ref.scene_id == "spoilt":
            type(self).spoil(scene)
        return scene


@pytest.fixture(autouse=True)
def rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    registry: Registry[Any] = Registry("dataset", "vgbench_gen.core")  # a folder without loaders
    registry.register("rooms")(Rooms)
    monkeypatch.setattr(base, "loaders", registry)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        *((forget(name), f"RoomScene: found no attribute {name};") for name in SCENE_ATTRIBUTES),
        *((forget(name), f"RenderedFrame: found no attribute {name};") for name in FRAME_ATTRIBUTES if name != "id"),
        (say("split", "training"), "RoomScene.split: found 'training'; expected one of train, val, test, unknown."),
        (say("depth_kind", "kinect"), "RoomScene.depth_kind: found 'kinect'; expected one of sensor, laser."),
        (say("source_digest", b"12"), "RoomScene.source_digest: found b'12'; expected text."),
        (say("dataset", "room"), "RoomScene.dataset: found 'room'; expected 'rooms'."),
        (say("id", "good"), "RoomScene.id: found 'good'; expected 'spoilt'."),
        (name_frame(2), "RenderedFrame.id: found 2; expected text."),
        (name_frame(""), "RenderedFrame.id: found ''; expected text."),
        (name_frame("0"), "RenderedFrame.id: found '0' twice; expected an id of its own."),
    ],
)
def test_what_is_forgotten_or_unknown_is_named(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[[RoomScene], None], told: str
) -> None:
    monkeypatch.setattr(Rooms, "spoil", staticmethod(spoil))
    with pytest.raises(SceneError) as error:
        open_scene(base.SceneRef("rooms", "spoilt", Path()))
    assert told in str(error.value)


@pytest.mark.parametrize("spoil", [forget("total_frames"), give_float64])
def test_the_other_scenes_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spoil: Any
) -> None:
    monkeypatch.setattr(Rooms, "spoil", staticmethod(spoil))
    assert main(["scenes", str(tmp_path), "--json"]) == 1
    good, bad = json.loads(capsys.readouterr().out)
    assert not good["verdict"].startswith("bad")
    assert bad["verdict"].startswith("bad: R")
    assert "Mend the loader" in bad["verdict"]


def test_depth_of_another_type_costs_the_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rooms, "spoil", staticmethod(give_float64))
    scene = open_scene(base.SceneRef("rooms", "spoilt", Path()))
    with pytest.raises(SceneError, match=r"depth_m\(\) of frame 0: found numbers of type float64; expected float32"):
        SceneView(scene, Gates())
