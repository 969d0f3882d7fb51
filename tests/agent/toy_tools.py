"""A tool that keeps make-believe weights on a device, as an installed package would bring it."""

from __future__ import annotations

from pathlib import Path

SOURCE = '''
import os, time
from pathlib import Path
from pydantic import Field
from vgbench_gen.agent.tool import Tool, ToolError, ToolOutput, tools
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import ConfigError


class Options(Config):
    log: str = ""
    device: str = "cuda:0"
    batch_size: int = Field(default=4, ge=1)
    model: str = "small"


class Arguments(Config):
    how: str = Field(default="well", description="what happens")
    number: int = Field(default=0, description="which call")


class Toy(Tool):
    name, tier, runs, does = "Toy", "weights", "device", "Doubles a number."
    Options, Arguments, returns, timeout_s = Options, Arguments, {"twice": "the number"}, 0.4

    def settle_options(self, options, arguments):
        return options.model_copy(update={"model": f"/weights/{options.model}"})

    def prepare(self, options):
        if options.model == "/weights/gone":
            raise ConfigError("no weights there")
        self.write(options, f"load {self.name} {os.getpid()}")

    def write(self, options, line):
        with Path(options.log).open("a") as file:
            file.write(line + "\\n")

    def run_batch(self, given):
        self.write(given[0].options, f"pass {len(given)}")
        if any(one.arguments.how == "breaks" for one in given):
            raise RuntimeError("the batch does not fit")
        return super().run_batch(given)

    def run(self, given):
        match given.arguments.how:
            case "crashes":
                os._exit(3)
            case "hangs":
                time.sleep(60)
            case "refuses":
                raise ToolError("no such number")
        time.sleep(0.02)
        return ToolOutput({"twice": 2 * given.arguments.number})


tools.register("Toy")(Toy)


@tools.register("Toy2")
class Toy2(Toy):
    name = "Toy2"


class NeededOptions(Options):
    weights: str


@tools.register("ToyToSetUp")
class ToyToSetUp(Toy):
    """Named as another one, and there only where it is set up."""

    Options = NeededOptions
    name, tier, does = "Calculate", "weights", "Counts by weights."
'''


def install_toys(folder: Path) -> None:
    """Write the package with its entry points, as an installer does."""
    (folder / "toy_weights.py").write_text(SOURCE)
    about = folder / "toy_weights-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.0\n")
    names = "\n".join(f"{name} = toy_weights" for name in ("Toy", "Toy2", "ToyToSetUp"))
    (about / "entry_points.txt").write_text(f"[vgbench_gen.tools]\n{names}\n")
