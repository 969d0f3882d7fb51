"""RAFT of torchvision with random weights, loaded from a folder as users make it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from vgbench_gen.agent.tool import ToolError, ToolInput, tools
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ColorArray
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.tasks.solving import Image

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def torchvision() -> Iterator[None]:
    """torchvision, from a folder of its own where its build does not fit this torch: RAFT is all Python."""
    torch = pytest.importorskip("torch", reason="no torch here; `make servers` makes the environment for these tests")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(sys.prefix) / "torchvision")
        try:
            import torchvision  # noqa: F401
        except ImportError:
            pytest.skip("no torchvision here")
        except RuntimeError:
            for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
            declared = torch.library.Library("torchvision", "FRAGMENT")
            for name in ("nms", "qnms"):
                declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, torchvision: None) -> Path:
    import torch
    from safetensors.torch import save_file
    from torchvision.models.optical_flow import raft_small

    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("raft")
    save_file(raft_small(weights=None).state_dict(), made / "model.safetensors")
    (made / "config.json").write_text('{"model_type": "raft_small"}')
    return made


def noise(name: str, size: tuple[int, int]) -> ColorArray:
    return rng_for(0, "raft", name).integers(0, 255, (*size, 3), dtype=np.uint8)


@pytest.mark.parametrize("size", [(61, 203), (1500, 700)])
def test_flow_comes_back_in_pixels_of_the_image(size: tuple[int, int]) -> None:
    import torch

    from vgbench_gen.agent.models.flow import choose_size, prepare_image, restore_flow

    working, padded = choose_size(size)
    ready = prepare_image(noise("one", size), size)
    assert tuple(ready.shape) == (3, *padded)
    assert torch.equal(ready[:, :, working[1] - 1], ready[:, :, -1])
    # A square at a known place moves by a known step at the working size.
    flow = torch.zeros(2, *padded)
    flow[0], flow[1] = 3.0, -2.0
    back = restore_flow(flow, working, size)
    assert back.shape == (*size, 2)
    assert back[0, 0] == pytest.approx([3 * size[1] / working[1], -2 * size[0] / working[0]])
    bright = np.zeros((*size, 3), np.uint8)
    bright[20:40, 30:60] = 255
    rows, columns = np.nonzero(prepare_image(bright, size)[0].numpy() > 0)
    scale = working[1] / size[1]
    assert (rows.min(), columns.min()) == pytest.approx((20 * scale, 30 * scale), abs=1)


def test_raft_is_loaded_from_safetensors(folder: Path) -> None:
    from vgbench_gen.agent.models.flow import RaftFlow

    model = RaftFlow(folder, "cpu", "float32")
    assert model.measure_flow(noise("a", (128, 160)), noise("b", (128, 160))).shape == (128, 160, 2)
    assert model.measure_flow(noise("c", (130, 140)), noise("d", (130, 140))).shape == (130, 140, 2)


def test_the_tool_says_signs_as_its_mode_does_and_refuses_other_sizes(folder: Path) -> None:
    sane, official = (tools[f"EstimateOpticalFlowRaft{end}"] for end in ("", "Official"))
    options = sane.Options.model_validate({"flow": str(folder), "device": "cpu"})
    images = [Image(encode_jpeg(noise(name, (128, 160)))) for name in "ab"]
    arguments = sane.Arguments.model_validate({"image": ("image-0", "image-1")})
    forward = sane.run(ToolInput(arguments, images, options))
    swapped = official.run(ToolInput(arguments, images[::-1], options))
    assert set(forward.values) == set(sane.returns)
    assert forward.values["mean_flow_x"] == pytest.approx(swapped.values["mean_flow_x"], abs=0.02)
    with pytest.raises(ToolError, match="two of one size"):
        sane.run(ToolInput(arguments, [images[0], Image(encode_jpeg(noise("c", (130, 160))))], options))


def test_a_folder_without_raft_is_refused(folder: Path, tmp_path: Path) -> None:
    from vgbench_gen.agent.models.flow import RaftFlow

    (tmp_path / "config.json").write_text(json.dumps({"model_type": "raft_large"}))
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    with pytest.raises(ConfigError, match="cannot be loaded as raft_large"):
        RaftFlow(tmp_path, "cpu", "float32")
    (tmp_path / "config.json").write_text('{"model_type": "dis"}')
    with pytest.raises(ConfigError, match="expected raft_large or raft_small"):
        RaftFlow(tmp_path, "cpu", "float32")
