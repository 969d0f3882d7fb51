"""Where boxes, masks, points, flow and depths of models lie in the image; no weights, no torch."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.agent.cores import END, Core, ask, make_agent, step
from vgbench_gen.agent.backend import read_trace
from vgbench_gen.agent.models.boxes import choose_boxes, find_tokens, join_names, to_pixels
from vgbench_gen.agent.models.flow import choose_size
from vgbench_gen.agent.models.loading import check_files
from vgbench_gen.agent.models.masks import bound_mask, scale_box
from vgbench_gen.agent.models.matches import to_image_pixels
from vgbench_gen.agent.tool import ToolError, tools
from vgbench_gen.agent.toolbox import choose_tools, describe_tool
from vgbench_gen.agent.tools.depths import describe_depth
from vgbench_gen.agent.tools.objects import cover_box, read_names
from vgbench_gen.agent.weights import DetectorOptions, OrientationOptions
from vgbench_gen.core.errors import ConfigError

TALL, WIDE = (90, 50), (60, 100)  # (height, width)


@pytest.mark.parametrize(
    ("data", "said"),
    [(None, "no regular file"), (b"", "an empty file"), (b"version https://git-lfs.github.com/spec/v1\n", "pointer")],
)
def test_what_lies_in_the_place_of_weights_is_named_before_it_is_waited_for(
    data: bytes | None, said: str, tmp_path: Path
) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    check_files(tmp_path)
    place = tmp_path / "model-2.safetensors"
    if data is None:
        os.mkfifo(place)
    else:
        place.write_bytes(data)
    with pytest.raises(ConfigError, match=f"{place}: found .*{said}"):
        check_files(tmp_path)


def mirror(box: tuple[float, ...], width: int) -> tuple[float, ...]:
    left, top, right, bottom = box
    return width - 1 - right, top, width - 1 - left, bottom


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_a_box_of_shares_mirrors_with_the_image(size: tuple[int, int]) -> None:
    shares = np.array([0.3, 0.6, 0.2, 0.1])
    flipped = shares * [-1, 1, 1, 1] + [1, 0, 0, 0]
    assert to_pixels(flipped, size, size) == pytest.approx(mirror(to_pixels(shares, size, size), size[1]))
    assert to_pixels(np.array([0.5, 0.5, 1, 1]), size, size) == (-0.5, -0.5, size[1] - 0.5, size[0] - 0.5)


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_boxes_in_an_image_padded_to_a_square_are_shares_of_the_square(size: tuple[int, int]) -> None:
    side = max(size)
    # The image's own lower right quarter, and the whole square, of which the image is a part.
    quarter = [0.75 * size[1] / side, 0.75 * size[0] / side, 0.5 * size[1] / side, 0.5 * size[0] / side]
    boxes = np.array([[0.5, 0.5, 1, 1], quarter])
    found = choose_boxes(np.array([[3.0, -3, 9], [-3.0, 3, 9]]), boxes, 2, (side, side), size)
    height, width = size
    assert found[0].box == (-0.5, -0.5, width - 0.5, height - 0.5)
    assert found[1].box == pytest.approx((width / 2 - 0.5, height / 2 - 0.5, width - 0.5, height - 0.5))
    assert [one.score for one in found] == pytest.approx([1 / (1 + np.exp(-3))] * 2)


def test_names_are_told_apart_in_the_sentence_of_grounding_dino() -> None:
    text, places = join_names(["Red chair", "lamp.", "  "])
    assert text == "red chair. lamp. object."
    assert [text[start:end] for start, end in places] == ["red chair", "lamp", "object"]
    words = [(0, 3), (4, 9), (9, 10), (11, 15), (15, 16), (17, 23), (23, 24)]
    spans = [None, *(SimpleNamespace(start=start, end=end) for start, end in words), None]
    assert find_tokens(lambda row, token: spans[token], 0, len(spans), places) == [[1, 2], [4], [6]]


@pytest.mark.parametrize("size", [TALL, WIDE])
def test_a_box_goes_into_the_stretched_square_of_sam_edge_to_edge(size: tuple[int, int]) -> None:
    height, width = size
    assert scale_box((-0.5, -0.5, width - 0.5, height - 0.5), size, 128) == [-0.5, -0.5, 127.5, 127.5]
    assert scale_box(mirror((3, 4, 20, 30), width), size, 128) == pytest.approx(
        mirror(tuple(scale_box((3, 4, 20, 30), size, 128)), 128)
    )


def test_the_bounds_of_a_mask_are_its_edges() -> None:
    mask = np.zeros(TALL, dtype=bool)
    assert bound_mask(mask) is None
    mask[10:12, 5:9] = True
    assert bound_mask(mask) == (4.5, 9.5, 8.5, 11.5)
    assert bound_mask(mask[:, ::-1]) == mirror((4.5, 9.5, 8.5, 11.5), TALL[1])


def test_keypoints_of_a_stretched_copy_keep_their_fractions_and_mirror() -> None:
    copy, shares = (48, 64), np.array([[10 / 64, 20 / 48], [63 / 64, 0.0]])
    found = to_image_pixels(shares, copy, TALL)
    assert found[0] == pytest.approx([(10.5 * 50 / 64) - 0.5, (20.5 * 90 / 48) - 0.5])
    flipped = np.column_stack([63 / 64 - shares[:, 0], shares[:, 1]])
    assert to_image_pixels(flipped, copy, TALL)[:, 0] == pytest.approx(49 - found[:, 0])


@pytest.mark.parametrize(
    ("size", "working", "padded"),
    [
        ((480, 640), (480, 640), (480, 640)),
        ((61, 203), (61, 203), (128, 208)),
        ((3000, 1500), (1024, 512), (1024, 512)),
    ],
)
def test_flow_is_computed_at_a_bounded_size_of_whole_blocks(
    size: tuple[int, int], working: tuple[int, int], padded: tuple[int, int]
) -> None:
    assert choose_size(size) == (working, padded)


def test_a_region_is_the_pixels_whose_centres_lie_in_the_box() -> None:
    depth = np.arange(90 * 50, dtype=np.float64).reshape(TALL)
    rows, columns = cover_box((4.5, 9.5, 8.5, 11.5), TALL)
    assert (rows, columns) == (slice(10, 12), slice(5, 9))
    assert cover_box((-100, -100, 1000, 1000), TALL) == (slice(0, 90), slice(0, 50))
    assert cover_box((7.2, 3.1, 7.4, 3.2), TALL) == (slice(3, 4), slice(7, 8))
    inner = cover_box((9.5, 19.5, 29.5, 39.5), TALL, share=0.5)
    assert inner == (slice(25, 35), slice(15, 25))
    told = describe_depth(depth, (rows, columns))
    assert told == {"depth": float(np.median(depth[10:12, 5:9])), "spread_m": pytest.approx(24.625, abs=2)}
    for outside in ((60, 0, 70, 10), (-9, 0, -3, 10), (20, 10, 10, 20), (0, 90, 10, 95)):
        with pytest.raises(ToolError, match="found no part of an image of 50 x 90 pixels"):
            cover_box(outside, TALL)


def test_names_are_read_from_whatever_list_a_model_writes() -> None:
    text = (
        '1. Red chair\n- "lamp"\n* red chair\ntable, dog;\n\nIn this image I can see a lot of different things\n•cat.'
    )
    assert read_names(text) == ("Red chair", "lamp", "table", "dog", "cat")
    assert read_names("") == ()
    assert len(read_names("\n".join(f"thing {k}x" for k in range(99)))) == 30


def test_arguments_are_read_as_models_write_them_and_hidden_ones_are_not_shown() -> None:
    arguments = tools["EstimateRegionDepthWeights"].Arguments
    told = '{"image": "image-0", "indoor_or_outdoor": "indoor", "bboxes": [1, 2, 3, 4]}'
    assert arguments.model_validate_json(told).model_dump()["bboxes"] == ((1, 2, 3, 4),)
    one = tools["LocalizeObjectsWeights"].Arguments.model_validate_json('{"image": "image-0", "objects": "dog"}')
    assert one.model_dump()["objects"] == ("dog",)
    assert "candidates:" not in describe_tool(tools["DetectObjectsWeights"])
    assert "image: name of the image" in describe_tool(tools["DetectObjectsWeights"])


def test_all_fourteen_published_tools_are_there_in_both_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgbench_gen.agent.toolbox.check_packages", lambda *_: None)
    published = {
        "DetectObjects", "LocalizeObjects", "GetObjectMask", "EstimateObjectGeometryProperties", "EstimateRegionDepth",
        "EstimateObjectDepth",
    }  # fmt: skip
    published |= {
        "GetObjectOrientation", "EstimateOpticalFlow", "MatchImagesSIFT", "EstimateHomographyMatrix", "Calculate",
        "Crop", "SelfThinking", "Terminate",
    }  # fmt: skip
    assert len(published) == 14
    setups = {"GetObjectOrientationWeights": OrientationOptions(orientation="x")}
    for mode in ("sane", "official"):
        assert published <= {tool.name for tool in choose_tools(["weights", "classical"], mode, setups)}
    chosen = {tool.name: tool for tool in choose_tools(["weights", "classical"])}
    assert chosen["EstimateOpticalFlow"].tier == "classical"  # RAFT has to be set up


def test_the_core_model_names_what_a_detector_looks_for_and_the_trace_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = [SimpleNamespace(score=0.4), None, SimpleNamespace(score=0.9)]
    detect = type(tools["DetectObjectsWeights"])
    monkeypatch.setattr("vgbench_gen.agent.toolbox.check_packages", lambda *_: None)
    monkeypatch.setattr(detect, "runs", "here")
    monkeypatch.setattr("vgbench_gen.agent.tools.objects.find_objects", lambda image, names, options: boxes)
    monkeypatch.setattr(DetectorOptions, "settle", lambda self, name, arguments: self)
    core = Core([step("DetectObjects", image="image-0"), "- Red chair\n- lamp\n- dog", END])
    trace = read_trace(ask(make_agent("react", core, tools=("weights",))))
    assert trace is not None
    assert [each.get("role", each.get("name")) for each in trace["steps"]][:3] == ["react"] + ["DetectObjects"] * 2
    seen = trace["steps"][2]
    assert seen["arguments"]["candidates"] == ["Red chair", "lamp", "dog"]
    assert seen["values"]["objects"] == ["dog", "Red chair"]
    assert seen["values"]["not_found"] == ["lamp"]
    assert seen["values"]["named_by"] == "the core model"
    assert detect.core_query in core.prompts[1]
    assert "RAM" not in str(trace)
