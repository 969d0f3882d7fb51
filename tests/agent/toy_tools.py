"""A tool that keeps make-believe weights on a device, as an installed package would bring it."""

from __future__ import annotations

from pathlib import Path

SOURCE = r'''
import os, time
from functools import partial
from pathlib import Path
from typing import Annotated
from pydantic import Field
from vgbench_gen.agent.tool import ToolError, ToolOptions, tool
from vgbench_gen.core.errors import ConfigError


class Options(ToolOptions):
    log: str = ""
    device: str = "cuda:0"
    size: int = Field(default=4, ge=1)
    model: str = "small"

    def settle(self, tool_name, arguments):
        return self.model_copy(update={"model": f"/weights/{self.model}"})

    def prepare(self):
        if self.model == "/weights/gone":
            raise ConfigError("no weights there")
        self.write(f"load {os.getpid()}")

    def write(self, line):
        with Path(self.log).open("a") as file:
            file.write(line + "\n")


class NeededOptions(Options):
    weights: str


def double(
    how: Annotated[str, "what happens"] = "well",
    number: Annotated[int, "which call"] = 0,
    options: Options = Options(),
):
    """Doubles a number."""
    options.write("call")
    match how:
        case "crashes":
            os._exit(3)
        case "hangs":
            time.sleep(60)
        case "breaks":
            raise RuntimeError("memory is short")
        case "refuses":
            raise ToolError("no such number")
    time.sleep(0.02)
    return {"twice": 2 * number}


def count(number: Annotated[int, "which call"], options: NeededOptions):
    """Counts by weights; named as another one, and there only where it is set up."""
    return {"twice": number}


toy = partial(tool, tier="weights", runs="device", returns={"twice": "the number"}, timeout_s=0.4)
toy("Toy")(double)
toy("Toy2")(double)
toy("Calculate", key="ToyToSetUp")(count)
'''


def install_toys(folder: Path) -> None:
    """Write the package with its entry points, as an installer does."""
    (folder / "toy_weights.py").write_text(SOURCE)
    about = folder / "toy_weights-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.0\n")
    names = "\n".join(f"{name} = toy_weights" for name in ("Toy", "Toy2", "ToyToSetUp"))
    (about / "entry_points.txt").write_text(f"[vgbench_gen.tools]\n{names}\n")
