"""Tools on models of the real classes with random weights, loaded by our own code; they say nothing true, but all runs.

What a model's output means in the image is compared with transformers' own post-processing.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.agent import tiny_models
from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.models.boxes import FoundBox
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.setup import load_setup
from vgbench_gen.agent.tool import ToolInput, ToolOptions, tools
from vgbench_gen.agent.toolbox import Toolbox, choose_tools
from vgbench_gen.agent.weights import find_model
from vgbench_gen.agent.workers import Observation
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ColorArray
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.tasks.solving import Image

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
TALL, WIDE = (90, 50), (60, 100)
MAKERS = {
    "detector": tiny_models.make_detector,
    "segmenter": tiny_models.make_segmenter,
    "depth": tiny_models.make_depth_model,
    "matcher": tiny_models.make_matcher,
    "orientation": tiny_models.make_orientation_model,
}


def noise(name: str, size: tuple[int, int]) -> ColorArray:
    return rng_for(0, "weights", name).integers(0, 255, (*size, 3), dtype=np.uint8)


def square(size: tuple[int, int], box: tuple[int, int, int, int]) -> ColorArray:
    image = np.zeros((*size, 3), np.uint8)
    left, top, right, bottom = box
    image[top:bottom, left:right] = 255
    return image


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="no torch here; `make servers` makes the environment for these tests")
    folder = tmp_path_factory.mktemp("models")
    for name, make in MAKERS.items():
        make(folder / name)
    return folder


def make_setups(models: Path, folder: Path) -> dict[str, ToolOptions]:
    setup = folder / "setup.toml"
    lines = [f'{name} = "{models / name}"' for name in ("detector", "segmenter", "matcher", "orientation")]
    lines += [f'depth_{where} = "{models / "depth"}"' for where in ("indoor", "outdoor")]
    setup.write_text("[defaults]\ndevice = 'cpu'\nbox_score_min = 0.0\n" + "\n".join(lines) + "\n")
    return load_setup(setup)


def make_box(models: Path, folder: Path, kept: ResultCache | None = None) -> Toolbox:
    setups = make_setups(models, folder)
    return Toolbox(choose_tools(["weights"], setups=setups), 1, kept, setups)


def call(box: Toolbox, asked: Sequence[tuple[str, dict[str, Any]]]) -> list[Observation]:
    book = ImageBook([encode_jpeg(noise("one", WIDE)), encode_jpeg(noise("two", TALL))])

    async def call_one(name: str, arguments: dict[str, Any]) -> Observation:
        read = box.read(ToolCall(name, arguments), book)
        assert not isinstance(read, Observation), read
        return await box.call(*read, book)

    async def call_all() -> list[Observation]:
        return list(await asyncio.gather(*(call_one(*one) for one in asked)))

    return asyncio.run(call_all())


def list_states(box: Toolbox) -> dict[str, str]:
    """What results of each call hang on beside its arguments and images."""
    states = {}
    for name, arguments in CALLS:
        tool = box.tools[name]
        read = tool.Arguments.model_validate_json(json.dumps(arguments))
        states[name] = box._options[name].settle(name, read).describe_state()
    return states


OBJECTS = {"image": "image-0", "objects": ["red chair", "lamp"]}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("LocalizeObjects", OBJECTS),
    ("GetObjectMask", OBJECTS),
    ("EstimateObjectDepth", OBJECTS | {"indoor_or_outdoor": "indoor"}),
    ("EstimateObjectGeometryProperties", {"image": "image-1", "object_descs": ["dog"]}),
    ("EstimateRegionDepth", {"image": "image-1", "bboxes": [[5, 5, 20, 40]], "indoor_or_outdoor": "outdoor"}),
    ("DetectObjects", {"image": "image-0", "candidates": ["lamp", "dog"]}),
    ("MatchImages", {"image": ["image-0", "image-0"]}),
    ("GetObjectOrientation", OBJECTS),
]


def test_every_tool_runs_and_results_are_kept_by_the_weights(models: Path, tmp_path: Path) -> None:
    copied = tmp_path / "models"
    shutil.copytree(models, copied)
    kept = ResultCache(tmp_path / "kept")
    box = make_box(copied, tmp_path, kept)
    try:
        seen = call(box, CALLS)
        assert [one.failure for one in seen] == [""] * len(CALLS), seen
        for one, (name, _) in zip(seen, CALLS, strict=True):
            assert set(one.values) <= set(box.tools[name].returns), name
        assert seen[3].values["camera_parameters"]["intrinsic"] is None
        assert "one image has no pose" in seen[3].values["camera_parameters"]["pose"]
        assert seen[4].values["unit"] == "meters"
        assert {*seen[5].values["objects"], *seen[5].values["not_found"]} == {"lamp", "dog"}
        for uv1, uv2 in seen[6].values["matches"]:
            assert uv1 == uv2
        assert [one["object"] for one in seen[7].values["results"]] == OBJECTS["objects"]
        # The same calls are not made again, unless what the weights say has changed.
        again = make_box(models, tmp_path, kept)
        assert [one.values for one in call(again, CALLS)] == [one.values for one in seen]
        assert again.calls == 0
        before = list_states(box)
        settings = copied / "depth" / "preprocessor_config.json"
        settings.write_text(json.dumps(json.loads(settings.read_text()) | {"image_mean": [0.1, 0.1, 0.1]}))
        find_model.cache_clear()  # of each model once in a process
        after = list_states(box)
        assert {name for name in before if before[name] != after[name]} == {
            "EstimateRegionDepth",
            "EstimateObjectDepth",
            "EstimateObjectGeometryProperties",
        }
    finally:
        box.close()
        kept.close()


def run_here(models: Path, folder: Path, key: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a call gives, in this process."""
    tool = tools[key]
    read = tool.Arguments.model_validate_json(json.dumps(arguments))
    image = noise("one", WIDE) if arguments["image"] == "image-0" else noise("two", TALL)
    options = make_setups(models, folder)[key].settle(tool.name, read)
    return dict(tool.run(ToolInput(read, [Image(encode_jpeg(image))], options)).values)


def test_the_published_camera_is_given_in_official_mode_alone(models: Path, tmp_path: Path) -> None:
    seen = run_here(models, tmp_path, "EstimateObjectGeometryPropertiesWeightsOfficial", CALLS[3][1])
    assert seen["camera_parameters"]["extrinsic"] == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_boxes_are_those_of_transformers_own_post_processing(models: Path, size: tuple[int, int]) -> None:
    import torch

    from vgbench_gen.agent.models.boxes import OpenDetector, choose_boxes

    detector = OpenDetector(models / "detector", "cpu", "float32")
    rng = rng_for(0, "boxes")
    logits = rng.normal(size=(1, 6, 2))
    boxes = np.concatenate([rng.uniform(0.1, 0.3, (1, 6, 2)), rng.uniform(0.05, 0.1, (1, 6, 2))], axis=-1)
    out = SimpleNamespace(logits=torch.tensor(logits), pred_boxes=torch.tensor(boxes))
    (theirs,) = detector._images.post_process_object_detection(out, threshold=0.0, target_sizes=[size])
    ours = choose_boxes(logits[0], boxes[0], 2, (max(size), max(size)), size)
    for k, found in enumerate(ours):
        best = int(logits[0, :, k].argmax())
        assert np.array(found.box) + 0.5 == pytest.approx(theirs["boxes"][best].numpy(), abs=1e-4)
        assert found.score == pytest.approx(1 / (1 + np.exp(-logits[0, best, k])))


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_the_detector_sees_a_place_where_its_boxes_say_it_is(models: Path, size: tuple[int, int]) -> None:
    from vgbench_gen.agent.models.boxes import OpenDetector, to_pixels

    images = OpenDetector(models / "detector", "cpu", "float32")._images
    box = (10, 30, 26, 50)
    pixels = images(images=[square(size, box)], return_tensors="pt")["pixel_values"][0, 0].numpy()
    rows, columns = np.nonzero(pixels > pixels.max() / 2 + pixels.min() / 2)
    side, padded = len(pixels), (max(size), max(size))
    seen = np.array([(columns.min() + columns.max() + 1) / 2, (rows.min() + rows.max() + 1) / 2]) / side
    left, top, right, bottom = to_pixels(np.array([*seen, 0.1, 0.1]), padded, size)
    assert ((left + right) / 2, (top + bottom) / 2) == pytest.approx((17.5, 39.5), abs=max(size) / side)


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_the_segmenter_sees_a_box_where_it_is_put_and_masks_come_back(models: Path, size: tuple[int, int]) -> None:
    from vgbench_gen.agent.models.loading import resize_and_normalise
    from vgbench_gen.agent.models.masks import bound_mask, enlarge_mask, scale_box

    box = (10, 30, 26, 50)
    pixels = resize_and_normalise(square(size, box), (128, 128), {"image_mean": [0.0] * 3, "image_std": [1.0] * 3})
    edges = tuple(np.array(box) - 0.5)
    seen = bound_mask(pixels[0, 0].numpy() > 0.5)
    assert seen == pytest.approx(scale_box(edges, size, 128), abs=1)
    back = enlarge_mask(pixels[0, 0] - 0.5, size)
    assert bound_mask(back) == pytest.approx(edges, abs=1)


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_depth_pro_gives_meters_of_the_image_and_its_focal_length(size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    from vgbench_gen.agent.models.depth import invert_depth

    # A camera of 90 degrees has half its width as focal length; the raw values are focal / (width depth).
    depth = torch.linspace(1, 5, 40)[None].expand(30, 40)
    found = invert_depth(0.5 / depth, 90.0, size)
    assert found.focal_px == pytest.approx(size[1] / 2)
    assert found.depth_m.shape == size
    assert found.depth_m[0, 0] == pytest.approx(1, rel=0.03)
    assert found.depth_m[-1, -1] == pytest.approx(5, rel=0.03)
    assert invert_depth(1 / depth, None, size).focal_px is None


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_depth_comes_back_at_the_images_size_without_the_rim(size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    from vgbench_gen.agent.models.depth import restore_depth

    rows, columns = (torch.arange(side, dtype=torch.float32) for side in (size[0] + 20, size[1] + 12))
    whole = 1 + 0.1 * rows[:, None] + 0.01 * columns[None]
    back = restore_depth(whole, size, (10, 6))
    assert back == pytest.approx(whole[10:-10, 6:-6].numpy(), abs=1e-4)
    mirrored = restore_depth(whole.flip(1), size, (10, 6))
    assert mirrored == pytest.approx(back[:, ::-1], abs=1e-4)


def test_every_kind_of_depth_model_loads(models: Path, tmp_path: Path) -> None:
    from vgbench_gen.agent.models.depth import DepthModel

    zoe = tiny_models.make_zoe_depth_model(tmp_path / "zoe")
    pro = tiny_models.make_pro_depth_model(tmp_path / "pro")
    for folder, knows_focal in ((models / "depth", False), (zoe, False), (pro, True)):
        model = DepthModel(folder, "cpu", "float32")
        maps = [model.measure_depth(noise(name, size)) for name, size in (("one", WIDE), ("two", TALL))]
        assert [one.depth_m.shape for one in maps] == [WIDE, TALL]
        assert all(np.isfinite(one.depth_m).all() for one in maps)
        assert all((one.focal_px is not None) == knows_focal for one in maps)


def test_other_kinds_of_model_are_refused_with_what_was_expected(models: Path, tmp_path: Path) -> None:
    from vgbench_gen.agent.models.boxes import OpenDetector
    from vgbench_gen.agent.models.depth import DepthModel
    from vgbench_gen.agent.models.masks import BoxSegmenter
    from vgbench_gen.agent.models.matches import PairMatcher

    relative = tiny_models.make_depth_model(tmp_path / "relative", "relative")
    with pytest.raises(ConfigError, match="found a model of relative depth; expected a metric one"):
        DepthModel(relative, "cpu", "float32")
    for kind, folder in ((DepthModel, "matcher"), (BoxSegmenter, "depth"), (PairMatcher, "segmenter")):
        with pytest.raises(ConfigError, match=r"found a model of type \w+; expected"):
            kind(models / folder, "cpu", "float32")
    with pytest.raises(ConfigError, match="found 0 GPUs"):
        DepthModel(models / "depth", "cuda:7", "float32")
    pickled = tmp_path / "pickled"
    shutil.copytree(models / "detector", pickled)
    import torch

    (pickled / "model.safetensors").unlink()
    torch.save({}, pickled / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="safetensors"):
        OpenDetector(pickled, "cpu", "float32")


def test_grounding_dino_finds_the_tokens_of_each_name(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from vgbench_gen.agent.models.boxes import OpenDetector, find_tokens, join_names

    detector = OpenDetector(tiny_models.make_grounding_detector(tmp_path), "cpu", "float32")
    text, places = join_names(["red chair", "lamp"])
    told = detector._tokenizer([text, "dog."], padding=True)
    rows = find_tokens(told.token_to_chars, 0, sum(told["attention_mask"][0]), places)
    assert [detector._tokenizer.convert_ids_to_tokens([told["input_ids"][0][k] for k in row]) for row in rows] == [
        ["red", "chair"],
        ["lamp"],
    ]
    found = [
        detector.find_boxes(noise("one", WIDE), ["red chair", "lamp"]),
        detector.find_boxes(noise("two", TALL), ["dog"]),
    ]
    assert [len(own) for own in found] == [2, 1]
    for own, (height, width) in zip(found, (WIDE, TALL), strict=True):
        for one in own:
            left, top, right, bottom = one.box
            assert -0.5 <= left < right <= width - 0.5
            assert -0.5 <= top < bottom <= height - 0.5


def test_matches_are_where_the_stretched_pair_shows_them(models: Path) -> None:
    from vgbench_gen.agent.models.matches import PairMatcher

    matcher = PairMatcher(models / "matcher", "cpu", "float32")
    found = matcher.match_pair(noise("one", WIDE), noise("two", TALL))
    assert len(found.uv1) == len(found.uv2) == len(found.scores)
    assert np.all(np.diff(found.scores) <= 0)
    for uv, (height, width) in ((found.uv1, WIDE), (found.uv2, TALL)):
        assert np.all((uv > -0.5) & (uv < [width - 0.5, height - 0.5]))


def test_angles_are_those_of_the_heads_classes(models: Path, tmp_path: Path) -> None:
    """Names of the published file are those of an older transformers; both are read, and each head has its range."""
    import torch
    from safetensors.torch import load_file, save_file

    from vgbench_gen.agent.models.orientations import OrientationModel

    weights = load_file(models / "orientation" / "model.safetensors")
    assert any(".attention.attention.query." in name for name in weights)
    for count, half in ((722, 90), (902, 180), (602, 30)):
        folder = tiny_models.make_orientation_model(tmp_path / str(count), count)
        found = OrientationModel(folder, "cpu", "float32")
        for azimuth, polar, rotation, sure in ((7, 100, half + 5, 4.0), (359, 0, 0, -4.0)):
            head = torch.full((count,), -9.0)
            head[[azimuth, 360 + polar, 540 + rotation]] = 9.0
            head[-2], head[-1] = sure, 0.0
            found._head["net2"][1].weight.data.zero_()
            found._head["net2"][1].bias.data.copy_(head)
            told = found.measure_orientation(noise("one", WIDE))
            assert (told.azimuth_deg, told.polar_deg, told.rotation_deg) == (azimuth, polar, rotation - half)
            assert told.confidence == pytest.approx(1 / (1 + np.exp(-sure)), rel=1e-4)
    one = OrientationModel(models / "orientation", "cpu", "float32")
    tensors = one._encoder.state_dict()
    assert torch.equal(
        tensors["encoder.layer.0.attention.q_proj.weight"],
        weights["dinov2.encoder.layer.0.attention.attention.query.weight"],
    )
    broken = tmp_path / "broken"
    shutil.copytree(models / "orientation", broken)
    for name in ("dinov2.layernorm.weight", "down_sampler.net1.0.weight"):
        save_file({key: value for key, value in weights.items() if key != name}, broken / "model.safetensors")
        with pytest.raises(ConfigError, match="cannot be loaded as Orient-Anything"):
            OrientationModel(broken, "cpu", "float32")
    with pytest.raises(ConfigError, match="found a model of type depth_anything; expected dinov2"):
        OrientationModel(models / "depth", "cpu", "float32")


def test_each_object_that_has_a_box_has_angles(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = [FoundBox((-9.0, 5.0, 40.0, 70.0), 0.8), None]
    monkeypatch.setattr("vgbench_gen.agent.tools.objects.find_objects", lambda image, names, options: boxes)
    found, missing = run_here(models, tmp_path, "GetObjectOrientationWeights", OBJECTS)["results"]
    assert (found["object"], found["score"], found["error"]) == ("red chair", 0.8, None)
    for name, low, high in (("azimuth", 0, 360), ("polar", 0, 180), ("rotation", -90, 90), ("confidence", 0, 1)):
        assert low <= found[name] <= high
        assert missing[name] is None
    assert "lamp was not found" in missing["error"]


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_no_end_of_an_object_is_cut_off(size: tuple[int, int]) -> None:
    from vgbench_gen.agent.models.orientations import center_on_square

    made = center_on_square(np.full((*size, 3), 255, np.uint8))
    rows, columns = np.nonzero(made[..., 0])
    side = len(made)
    assert made.shape == (side, side, 3)
    assert max(size) / side == pytest.approx(0.85, abs=0.01)
    assert (rows.max() - rows.min() + 1, columns.max() - columns.min() + 1) == size
    assert abs(rows.min() - (side - 1 - rows.max())) <= 1
