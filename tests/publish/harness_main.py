"""Starts another program inside its own environment: `python harness_main.py MODULE_OR_FILE ARGUMENTS…`.

The public wheel of torchvision is built for CUDA. Beside torch for the CPU its operators are missing, and for want of
two of them it cannot even be imported, which both harnesses do; neither calls them.
"""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path


def make_torchvision_importable() -> None:
    import torch

    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        operators = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")


if __name__ == "__main__":
    program = sys.argv[1]
    make_torchvision_importable()
    sys.argv = sys.argv[1:]
    if Path(program).is_file():
        sys.path[0] = str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
