"""Defines tools: functions whose arguments and results state frame, unit and sign, in tiers by what they need::

    @tool("Crop", tier="utility", returns={"rect_px": "…, pixels"}, example={"image": "image-0", "bbox": [0, 0, 1, 1]})
    def crop(image: OneImage, bbox: Annotated[Shares, "[left, top, right, bottom] as shares"]) -> ToolOutput:
        '''Cuts a rectangle out of an image and gives it as a new image.'''

The pydantic model of the arguments is made from the signature; `toolbox.describe_tool` writes the description for
language models. Other packages register tools in the entry-point group `vgbench_gen.tools`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import Field, create_model

from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.registry import Registry
from vgbench_gen.tasks.solving import Image

Tier = Literal["utility", "classical", "weights", "remote", "oracle"]
"""What a tool needs: nothing (utility), OpenCV, downloaded weights, a server, or the evidence of the row's answer."""
TIERS: tuple[Tier, ...] = get_args(Tier)

Place = Literal["process", "device", "here"]
"""Where a tool runs: in one of several processes for short calls, in the process that keeps weights on a device, or in
the event loop (`here`), if it takes no time or only waits for a server."""

Mode = Literal["sane", "official"]
"""Corrected prompts and tools, or the published prompts and limits word for word."""

ImageName = Annotated[str, Field(pattern=r"^image-[0-9]{1,2}$")]
OneImage = Annotated[Image, "name of the image"]
ImagePair = Annotated[tuple[Image, Image], "two image names, in order"]
Values = dict[str, Any]
"""The result of a tool that makes no image."""
Point = tuple[float, float]
"""(u, v) in pixels: u to the right, v down, (0, 0) the centre of the top-left pixel."""
Matrix3 = tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]

# A tool's function takes opened images; in the arguments of a call they are names.
_NAMES: Mapping[Any, Any] = {
    Image: ImageName,
    tuple[Image, Image]: tuple[ImageName, ImageName],
    tuple[Image, ...]: tuple[ImageName, ...],
}
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class ToolError(VGBenchError):
    """A tool cannot do what it was asked; the message is shown to the model."""


class PassingToolError(ToolError):
    """The same call may succeed later, for example once a server is back; its result is not kept."""


class ToolOptions(Config):
    """A tool's options, set once for all calls in the table of the tool's name in an agent's setup file."""

    def settle(self, tool_name: str, arguments: Config) -> ToolOptions:
        """The options for one call, with models of the Hub fetched and replaced by their folders.

        Args:
            tool_name: for messages.
            arguments: of the call; models that it does not use are not fetched.

        Raises:
            ConfigError: a model cannot be found.
        """
        return self

    def describe_state(self) -> str:
        """What results depend on besides version, arguments and images: settled options, and a digest of weights."""
        return self.model_dump_json()

    def prepare(self) -> None:
        """Load models, in the process of a device, before the first call with these settled options.

        Raises:
            ConfigError: a model cannot be loaded.
        """


@dataclass(frozen=True, slots=True)
class ToolInput:
    """The input of a tool."""

    arguments: Any
    """An instance of the tool's class `Arguments`."""
    images: Sequence[Image]
    """The images that the arguments name, in that order."""
    options: ToolOptions = field(default_factory=ToolOptions)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """The evidence of the row's answer, for the tier `oracle`; empty for every other tool."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a tool."""

    values: Mapping[str, Any]
    """JSON-ready, with the keys of the tool's `returns`; `cannot_tell` replaces numbers without meaning."""
    images: tuple[bytes, ...] = field(default=())
    """New encoded images; the run names them."""


class Tool:
    """A plug-in: one instance per registered name, without state, made by the decorator `tool`."""

    key: ClassVar[str]
    """The unique name under which it is registered."""
    name: ClassVar[str]
    """The name that models write; tools of several tiers may share one."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that published prompts use for it."""
    argument_aliases: ClassVar[Mapping[str, str]] = {}
    """Published name of an argument -> its name here."""
    tier: ClassVar[Tier]
    version: ClassVar[int] = 1
    """Raise it when the same call gives another result; it is part of the key under which results are kept."""
    does: ClassVar[str]
    """One or two sentences for a model: the first paragraph of the function's docstring."""
    Options: ClassVar[type[ToolOptions]] = ToolOptions
    """The class of the function's parameter `options`."""
    runs: ClassVar[Place] = "process"
    Arguments: ClassVar[type[Config]]
    """The model of the function's other parameters; those without a description are hidden from models."""
    returns: ClassVar[Mapping[str, str]]
    """Key of the result -> its meaning: frame, unit, axis sign."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Arguments of an example call, shown to models."""
    timeout_s: ClassVar[float] = 20.0
    """A longer call fails with a timeout."""
    modes: ClassVar[tuple[Mode, ...]] = ("sane", "official")
    """The modes of agents that have it; two tools of one name are versions of it for different modes."""
    by_core: ClassVar[bool] = False
    """Whether the agent's loop handles it (ends the run or asks the core model); `run` is then never called."""
    core_query: ClassVar[str] = ""
    """A question to the core model about the images of a call that leaves `core_argument` empty; "" for none."""
    core_argument: ClassVar[str] = ""
    """The argument that is filled with `read_core` of the core model's reply."""
    read_core: ClassVar[Callable[[str], Any]]
    extra: ClassVar[str] = ""
    """The extra of this package that installs `packages`."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Optional packages that `run` imports."""
    function: ClassVar[Callable[..., Mapping[str, Any] | ToolOutput]]
    parameters: ClassVar[frozenset[str]] = frozenset()
    """The names of the function's parameters."""
    opens_images: ClassVar[bool] = False
    """Whether the function gets opened images as `image`; else it gets their names."""

    def describe_state(self, options: ToolOptions) -> str:
        """What results depend on besides version, arguments and images."""
        return options.describe_state()

    def run(self, inputs: ToolInput) -> ToolOutput:
        """The result of a call; the same input gives the same output.

        Raises:
            ToolError: the tool cannot do what the call asks.
        """
        arguments = inputs.arguments
        passed = {name: getattr(arguments, name) for name in type(arguments).model_fields}
        if self.opens_images:
            passed["image"] = inputs.images[0] if isinstance(arguments.image, str) else tuple(inputs.images)
        for name in self.parameters & {"options", "evidence"}:
            passed[name] = getattr(inputs, name)
        result = type(self).function(**passed)
        return result if isinstance(result, ToolOutput) else ToolOutput(result)

    async def run_here(self, inputs: ToolInput) -> ToolOutput:
        """As `run`, for tools that run in the event loop; it must not block.

        Raises:
            ToolError: as `run`.
            TimeoutError: it takes longer than the tool's limit.
        """
        return self.run(inputs)


tools: Registry[Tool] = Registry("tool", "vgbench_gen.agent.tools")


def tool(
    name: str, *, tier: Tier, returns: Mapping[str, str], key: str = "", **more: Any
) -> Callable[[FunctionT], FunctionT]:
    """Decorator that makes a function a tool.

    The first paragraph of the docstring becomes `Tool.does`. Each parameter is an argument; a string in its `Annotated`
    is the description. A parameter `image`, of the type `Image` or a tuple of these, gets the images that a model
    names. Two parameters are no arguments: `options`, of a subclass of `ToolOptions`, and `evidence`, the row's, for
    oracle tools. The function returns its values, or a `ToolOutput` if it makes images, or raises `ToolError`.

    Args:
        name: see `Tool.name`.
        tier: see `Tier`.
        returns: see `Tool.returns`.
        key: see `Tool.key`; `name` by default.
        more: other attributes of `Tool`, such as `example`.

    Raises:
        TypeError: `Tool` has no such attribute.
    """
    if unknown := sorted(set(more) - set(Tool.__annotations__)):
        raise TypeError(f"tool {name}: found {', '.join(unknown)}; expected attributes of Tool")

    def register(function: FunctionT) -> FunctionT:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
        fields: dict[str, Any] = {
            parameter: _make_field(hints[parameter], details.default)
            for parameter, details in parameters.items()
            if parameter not in ("options", "evidence")
        }
        does = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
        members: dict[str, Any] = {"key": key or name, "name": name, "tier": tier, "does": does, "returns": returns}
        members |= {"function": staticmethod(function), "parameters": frozenset(parameters), **more}
        members |= {"__module__": function.__module__, "__qualname__": function.__qualname__}
        if "options" in parameters:
            members["Options"] = hints["options"]
        members["opens_images"] = "image" in hints and _split_annotated(hints["image"])[0] in _NAMES
        members["Arguments"] = create_model(f"{function.__name__}_arguments", __base__=Config, **fields)
        if callable(more.get("read_core")):
            members["read_core"] = staticmethod(more["read_core"])
        tools.register(members["key"])(type(function.__name__, (Tool,), members))
        return function

    return register


def _split_annotated(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """(type, metadata of `Annotated`)."""
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _make_field(hint: Any, default: Any) -> tuple[Any, Any]:
    kind, metadata = _split_annotated(hint)
    metadata = tuple(Field(description=each) if isinstance(each, str) else each for each in metadata)
    kind = _NAMES.get(kind, kind)
    return Annotated[(kind, *metadata)] if metadata else kind, ... if default is inspect.Parameter.empty else default


def list_image_names(arguments: Config) -> tuple[str, ...]:
    """The images that a call names, in order."""
    names = getattr(arguments, "image", None) or ()
    return (names,) if isinstance(names, str) else tuple(names)
