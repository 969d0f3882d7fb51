"""What a tool is: typed arguments and results that say frame, unit and axis sign, and a tier that says what it needs.

A tool is one file of `tools/`, or a plug-in of the entry-point group `vgbench_gen.tools`. The text that a model
reads of it is generated from its fields (`toolbox.describe_tool`).
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Literal, get_args

from pydantic import Field
from typing_extensions import TypeVar

from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.registry import Registry
from vgbench_gen.tasks.solving import Image

Tier = Literal["utility", "classical", "weights", "remote", "oracle"]
"""What a tool needs: nothing, OpenCV, downloaded weights, a server, or the answer's own evidence."""
TIERS: tuple[Tier, ...] = get_args(Tier)

Place = Literal["process", "device", "here"]
"""In one of many processes for short calls, in the one process that keeps weights on a device, or awaited in the event
loop (`run_here`) because it only waits for somebody else."""

Mode = Literal["sane", "official"]
"""Correct texts and what is missing, or the published prompts and limits word for word."""

ImageName = Annotated[str, Field(pattern=r"^image-[0-9]{1,2}$")]
ImagePair = Annotated[tuple[ImageName, ImageName], Field(description="two image names, in order")]
Point = tuple[float, float]
"""(u, v) in pixels: u to the right, v down, (0, 0) the centre of the top-left pixel."""
Matrix3 = tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]


ArgumentsT = TypeVar("ArgumentsT", bound=Config, default=Any)
"""The class `Arguments` of a tool."""


class ToolError(VGBenchError):
    """A tool cannot do what it was asked; the message is shown to the model."""


class PassingToolError(ToolError):
    """What may go well another time, such as a server that is down: the result is not kept."""


class NoArguments(Config):
    """For tools that are given nothing."""


class NoOptions(Config):
    """For tools that need no setup."""


@dataclass(frozen=True, slots=True)
class ToolInput(Generic[ArgumentsT]):
    """What a tool is given."""

    arguments: ArgumentsT
    """Of the tool's own class `Arguments`."""
    images: Sequence[Image]
    """The images that the arguments name, in the order in which they name them."""
    options: Config = field(default_factory=NoOptions)
    """Of the tool's own class `Options`: which weights, which device, which server."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """How the row's answer came about, for the tier `oracle` alone; empty for every other tool."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gives."""

    values: Mapping[str, Any]
    """JSON-ready, with the keys of the tool's `returns`; `cannot_tell` in place of numbers that mean nothing."""
    images: tuple[bytes, ...] = field(default=())
    """Encoded images that it made; the run gives them names."""


class Tool(abc.ABC, Generic[ArgumentsT]):
    """A plug-in: one instance per registered name, without state; of the class of its arguments."""

    name: ClassVar[str]
    """As models write it."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that published material uses for it."""
    argument_aliases: ClassVar[Mapping[str, str]] = {}
    """Other names of arguments, as published demonstrations have them."""
    tier: ClassVar[Tier]
    """What it needs."""
    version: ClassVar[int] = 1
    """Raised whenever the same call gives something else; part of the key under which results are kept."""
    does: ClassVar[str]
    """What it does, in one or two sentences for a model."""
    Options: ClassVar[type[Config]] = NoOptions
    """What a user sets up once for all calls, in the table of this tool's name in the setup file of an agent."""
    runs: ClassVar[Place] = "process"
    """Where `run` is called."""
    Arguments: ClassVar[type[Config]] = NoArguments
    """What it is given, of `Tool[Arguments]`; every field has a description that says frame and unit."""
    returns: ClassVar[Mapping[str, str]]
    """Key of the result -> what it is: frame, unit, axis sign."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Arguments of a call, for the text that a model reads."""
    timeout_s: ClassVar[float] = 20.0
    """A call that takes longer costs its observation."""
    modes: ClassVar[tuple[Mode, ...]] = ("sane", "official")
    """The modes of an agent that has it; two tools of one name are the same one in different modes."""
    by_core: ClassVar[bool] = False
    """Whether the loop itself answers it (ends the run, asks the core model); `run` is then never called."""
    core_query: ClassVar[str] = ""
    """What the core model is asked about the images of a call before `run`, see `hear`; "" for nothing."""
    extra: ClassVar[str] = ""
    """The extra of this package that brings `packages`."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages that `run` imports and that may be missing."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # `Tool[Arguments]` names the class once
        given = [one for base in cls.__dict__.get("__orig_bases__", ()) for one in get_args(base)]
        cls.Arguments = next((one for one in given if isinstance(one, type)), cls.Arguments)

    def describe_state(self, options: Config) -> str:
        """All that results hang on beside version, arguments and images: settled options, and a digest of weights."""
        return options.model_dump_json()

    def settle_options(self, options: Config, arguments: ArgumentsT) -> Config:
        """The options as this call uses them, with what must be looked up outside: weights of the Hub are fetched.

        Args:
            options: of this tool.
            arguments: of the call; what it does not use is not fetched.

        Raises:
            ConfigError: something is not there.
        """
        return options

    def needs_core(self, arguments: ArgumentsT) -> bool:
        """Whether `core_query` is asked before this call."""
        return bool(self.core_query)

    def hear(self, arguments: ArgumentsT, reply: str) -> ArgumentsT:
        """The arguments with what the core model replied to `core_query`."""
        return arguments

    def prepare(self, options: Config) -> None:
        """Load what calls with these settled options need. Tools on a device alone, in their process, before a call.

        Raises:
            ConfigError: it cannot be loaded.
        """

    def run_batch(self, given: Sequence[ToolInput[ArgumentsT]]) -> list[ToolOutput | ToolError]:
        """What calls that waited together give, in their order. All have the same settled options.

        Tools on a device alone; one after the other unless a tool can do better.
        """
        outcomes: list[ToolOutput | ToolError] = []
        for one in given:
            try:
                outcomes.append(self.run(one))
            except ToolError as error:
                outcomes.append(error)
        return outcomes

    async def run_here(self, given: ToolInput[ArgumentsT]) -> ToolOutput:
        """As `run`, for tools that run in the event loop; it must not block.

        Raises:
            ToolError: it cannot be done.
            TimeoutError: it takes longer than this tool's own limit.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def run(self, given: ToolInput[ArgumentsT]) -> ToolOutput:
        """What the call gives. Runs in another process; the same input gives the same output.

        Raises:
            ToolError: it cannot be done.
        """


tools: Registry[Tool] = Registry("tool", "vgbench_gen.agent.tools")


def find_key(tool: Tool) -> str:
    """The name under which a tool is registered, which no other one shares; its own name where it is not registered."""
    return next((name for name in tools.names() if tools[name] is tool), f"{tool.tier}:{tool.name}")


def list_image_names(arguments: Config) -> tuple[str, ...]:
    """The images that a call names, in order."""
    given = getattr(arguments, "image", None) or ()
    return (given,) if isinstance(given, str) else tuple(given)
