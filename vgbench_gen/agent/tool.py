"""What a tool is: a function whose arguments and results say frame, unit and sign, and a tier that says what it needs.

    @tool("Crop", tier="utility", returns={"rect_px": "…, pixels"}, example={"image": "image-0", "bbox": [0, 0, 1, 1]})
    def crop(image: OneImage, bbox: Annotated[Shares, "[left, top, right, bottom] as shares"]) -> ToolOutput:
        '''Cuts a rectangle out of an image and gives it as a new image.'''

The arguments' model is made from the signature and the text that a model reads from all of it
(`toolbox.describe_tool`). Tools of other packages register in the entry-point group `vgbench_gen.tools`.
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
"""What a tool needs: nothing, OpenCV, downloaded weights, a server, or the answer's own evidence."""
TIERS: tuple[Tier, ...] = get_args(Tier)

Place = Literal["process", "device", "here"]
"""In one of many processes for short calls, in the one process that keeps weights on a device, or in the event loop
because it takes no time or only waits for a server."""

Mode = Literal["sane", "official"]
"""Correct texts and what is missing, or the published prompts and limits word for word."""

ImageName = Annotated[str, Field(pattern=r"^image-[0-9]{1,2}$")]
OneImage = Annotated[Image, "name of the image"]
ImagePair = Annotated[tuple[Image, Image], "two image names, in order"]
Values = dict[str, Any]
"""What a tool gives where it makes no image."""
Point = tuple[float, float]
"""(u, v) in pixels: u to the right, v down, (0, 0) the centre of the top-left pixel."""
Matrix3 = tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]

# A function that takes opened images is called by their names.
_NAMES: Mapping[Any, Any] = {
    Image: ImageName,
    tuple[Image, Image]: tuple[ImageName, ImageName],
    tuple[Image, ...]: tuple[ImageName, ...],
}
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class ToolError(VGBenchError):
    """A tool cannot do what it was asked; the message is shown to the model."""


class PassingToolError(ToolError):
    """What may go well another time, such as a server that is down: the result is not kept."""


class ToolOptions(Config):
    """What a user sets up once for all calls of a tool, in the table of its name in the setup file of an agent."""

    def settle(self, tool_name: str, arguments: Config) -> ToolOptions:
        """The options as a call uses them, with what must be looked up outside: weights of the Hub are fetched.

        Args:
            tool_name: for messages.
            arguments: of the call; what it does not use is not fetched.

        Raises:
            ConfigError: something is not there.
        """
        return self

    def describe_state(self) -> str:
        """What results hang on beside version, arguments and images: settled options, and a digest of weights."""
        return self.model_dump_json()

    def prepare(self) -> None:
        """Load what calls with these settled options need. Tools on a device alone, in their process, before a call.

        Raises:
            ConfigError: it cannot be loaded.
        """


@dataclass(frozen=True, slots=True)
class ToolInput:
    """What a tool is given."""

    arguments: Any
    """Of the tool's own class `Arguments`."""
    images: Sequence[Image]
    """The images that the arguments name, in the order in which they name them."""
    options: ToolOptions = field(default_factory=ToolOptions)
    """Of the tool's own class `Options`: which weights, which device."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """How the row's answer came about, for the tier `oracle` alone; empty for every other tool."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gives."""

    values: Mapping[str, Any]
    """JSON-ready, with the keys of the tool's `returns`; `cannot_tell` in place of numbers that mean nothing."""
    images: tuple[bytes, ...] = field(default=())
    """Encoded images that it made; the run gives them names."""


class Tool:
    """A plug-in: one instance per registered name, without state, made by the decorator `tool`."""

    key: ClassVar[str]
    """The name under which it is registered, which no other one shares."""
    name: ClassVar[str]
    """As models write it; tools of several tiers may share one."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that published material uses for it."""
    argument_aliases: ClassVar[Mapping[str, str]] = {}
    """Other names of arguments, as published demonstrations have them."""
    tier: ClassVar[Tier]
    version: ClassVar[int] = 1
    """Raised whenever the same call gives something else; part of the key under which results are kept."""
    does: ClassVar[str]
    """What it does, in one or two sentences for a model: the first paragraph of the function's docstring."""
    Options: ClassVar[type[ToolOptions]] = ToolOptions
    """The class of the function's parameter `options`."""
    runs: ClassVar[Place] = "process"
    """Where `run` is called."""
    Arguments: ClassVar[type[Config]]
    """Of the function's other parameters; those without a description are not for models."""
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
    """What the core model is asked about the images of a call that leaves `core_argument` empty; "" for nothing."""
    core_argument: ClassVar[str] = ""
    """The argument that `read_core` of the core model's reply fills."""
    read_core: ClassVar[Callable[[str], Any]]
    extra: ClassVar[str] = ""
    """The extra of this package that brings `packages`."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages that `run` imports and that may be missing."""
    function: ClassVar[Callable[..., Mapping[str, Any] | ToolOutput]]
    parameters: ClassVar[frozenset[str]] = frozenset()
    """Those of the function."""
    opens_images: ClassVar[bool] = False
    """Whether its argument `image` is opened; else the function gets the names."""

    def describe_state(self, options: ToolOptions) -> str:
        """All that results hang on beside version, arguments and images."""
        return options.describe_state()

    def needs_core(self, arguments: Config) -> bool:
        """Whether `core_query` is asked before this call."""
        return bool(self.core_query) and not getattr(arguments, self.core_argument)

    def hear(self, arguments: Config, reply: str) -> Config:
        """The arguments with what the core model replied to `core_query`."""
        return arguments.model_copy(update={self.core_argument: type(self).read_core(reply)})

    def run(self, given: ToolInput) -> ToolOutput:
        """What the call gives; the same input gives the same output.

        Raises:
            ToolError: it cannot be done.
        """
        arguments = given.arguments
        passed = {name: getattr(arguments, name) for name in type(arguments).model_fields}
        if self.opens_images:
            passed["image"] = given.images[0] if isinstance(arguments.image, str) else tuple(given.images)
        more = {"options": given.options, "evidence": given.evidence}
        made = type(self).function(**passed, **{name: more[name] for name in more if name in self.parameters})
        return made if isinstance(made, ToolOutput) else ToolOutput(made)

    async def run_here(self, given: ToolInput) -> ToolOutput:
        """As `run`, for tools that run in the event loop; it must not block.

        Raises:
            ToolError: it cannot be done.
            TimeoutError: it takes longer than this tool's own limit.
        """
        return self.run(given)


tools: Registry[Tool] = Registry("tool", "vgbench_gen.agent.tools")


def tool(
    name: str, *, tier: Tier, returns: Mapping[str, str], key: str = "", **more: Any
) -> Callable[[FunctionT], FunctionT]:
    """Decorator that makes a function a tool.

    Its docstring's first paragraph is what the tool does. Each parameter is an argument; a text in its `Annotated` is
    the description, and one of the type `Image`, or a tuple of these, is called `image` and gets the images that a
    model names. Not arguments are `options` (of a class of `ToolOptions`) and `evidence` (of the row, for oracle
    tools). It returns its values, or a `ToolOutput` where it makes images, or raises `ToolError`.

    Args:
        name: as models write it.
        tier: what it needs.
        returns: key of the result -> what it is: frame, unit, axis sign.
        key: under which it is registered; `name` where empty.
        more: other attributes of `Tool`, such as `example`.

    Raises:
        TypeError: `Tool` has no such attribute.
    """
    if unknown := sorted(set(more) - set(Tool.__annotations__)):
        raise TypeError(f"tool {name}: found {', '.join(unknown)}; expected attributes of Tool")

    def keep(function: FunctionT) -> FunctionT:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
        fields = {each: _make_field(hints[each], about.default) for each, about in parameters.items()}
        does = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
        members: dict[str, Any] = {"key": key or name, "name": name, "tier": tier, "does": does, "returns": returns}
        members |= {"function": staticmethod(function), "parameters": frozenset(parameters), **more}
        members |= {"__module__": function.__module__, "__qualname__": function.__qualname__}
        if "options" in parameters:
            members["Options"] = hints["options"]
        members["opens_images"] = "image" in hints and _strip(hints["image"])[0] in _NAMES
        told: dict[str, Any] = {each: fields[each] for each in fields if each not in ("options", "evidence")}
        members["Arguments"] = create_model(f"{function.__name__}_arguments", __base__=Config, **told)
        if callable(more.get("read_core")):
            members["read_core"] = staticmethod(more["read_core"])
        tools.register(members["key"])(type(function.__name__, (Tool,), members))
        return function

    return keep


def _strip(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """(type, what stands after it in `Annotated`)."""
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _make_field(hint: Any, default: Any) -> tuple[Any, Any]:
    kind, about = _strip(hint)
    about = tuple(Field(description=one) if isinstance(one, str) else one for one in about)
    kind = _NAMES.get(kind, kind)
    return Annotated[(kind, *about)] if about else kind, ... if default is inspect.Parameter.empty else default


def list_image_names(arguments: Config) -> tuple[str, ...]:
    """The images that a call names, in order."""
    given = getattr(arguments, "image", None) or ()
    return (given,) if isinstance(given, str) else tuple(given)
