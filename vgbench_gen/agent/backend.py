"""`agent:react+openai:gpt-4o?tools=classical`: an agent as a model that can be asked like any other.

    agent:KIND+CORE[?tools=TIER,TIER][&mode=sane|official][&turns=N][&setup=FILE]

KIND is `react` or `plan-execute`, CORE the spec of any model. Tools that need nothing are always there; `tools=none`
leaves only these. The trace hangs on the reply (`Reply.raw["trace"]`). What the core model said is kept by its own
cache (`--cache`), results of tools in a file beside it, so that an agent that was stopped repeats neither.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl

from pydantic import Field

from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.plan_execute import run_plan_execute
from vgbench_gen.agent.react import TURNS, run_react
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.run import AgentRun
from vgbench_gen.agent.setup import load_servers, load_setup
from vgbench_gen.agent.tool import Mode, Tool
from vgbench_gen.agent.toolbox import Toolbox, choose_tools
from vgbench_gen.agent.trace import Trace, Watch
from vgbench_gen.agent.words import load_words
from vgbench_gen.backends.base import (
    Backend,
    BackendError,
    Background,
    Capabilities,
    ImagePart,
    Message,
    Reply,
    Settings,
    TextPart,
    Usage,
)
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, open_backend, providers
from vgbench_gen.core.config import Config, parse_config
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.rng import format_canonical_json, hash_stably

KINDS = {"react": run_react, "plan-execute": run_plan_execute}
TOKENS = 2048  # of a reply of the core model, as published; in mode `sane` a larger limit of the user's own stays


class AgentOptions(Config):
    """What stands after the `?` of an agent's name."""

    tools: tuple[str, ...] = ("classical",)
    """Tiers of tools; `none` for those that need nothing alone."""
    mode: Mode = "sane"
    """Correct texts, or the published prompts and limits word for word."""
    turns: int = Field(default=TURNS, ge=1, le=100)
    """Of ReAct."""
    setup: Path | None = None
    """TOML file with a table of options per tool: weights, devices, servers (`agent.setup`)."""


class AgentBackend(Backend):
    """A core model with tools. It answers in words; images that its tools made hang on its reply for its trace.

    Args:
        spec: as on the command line.
        kind: of `KINDS`.
        core: who thinks; closed with the agent.
        options: of the agent.
        kept: results of tools; None keeps none.

    `watch`, where set, is called with each step of each trace as it is added.
    """

    makes_images = False

    def __init__(
        self,
        spec: str,
        kind: Literal["react", "plan-execute"],
        core: Backend,
        options: AgentOptions,
        kept: ResultCache | None = None,
    ) -> None:
        self.spec, self.kind, self.core, self.options = spec, kind, core, options
        tiers = () if options.tools == ("none",) else options.tools
        self.tiers = tuple(tier for tier in tiers if tier != "utility")
        self._kept = kept
        self.watch: Watch | None = None
        setups = load_setup(options.setup) if options.setup is not None else {}
        chosen = choose_tools(self.tiers, options.mode, setups, self._find_remote())
        self.toolbox = Toolbox(chosen, max(1, os.cpu_count() or 1), kept, setups)
        self.words = load_words(options.mode)
        asked = options.model_dump(mode="json", exclude={"setup"})
        used = {key: setups[key].model_dump(mode="json") for key in (tool.key for tool in chosen) if key in setups}
        told = format_canonical_json([kind, asked, used, self.toolbox.describe()])
        # Tables call it by this: readable, and another name for other tools and options.
        self.model = "+".join((kind, core.model, *(self.tiers or ("none",)), hash_stably(told, size=4)))
        self.reads_evidence = "oracle" in self.tiers
        self.capabilities = Capabilities(images_in=core.capabilities.images_in)
        self.parallel, self.tally = core.parallel, core.tally

    def _find_remote(self) -> list[Tool]:
        if "remote" not in self.tiers:
            return []
        servers = load_servers(self.options.setup) if self.options.setup is not None else {}
        if not servers:
            raise ConfigError(
                f"{self.spec}: tools=remote: found no server; expected setup=FILE.toml with a table [remote.NAME] and "
                "its url, which `vgbench agent serve` prints"
            )
        from vgbench_gen.agent.mcp_client import connect

        return connect(servers)

    def describe_setup(self) -> Mapping[str, Any]:
        """As `Backend.describe_setup`: kind and options, the core, each tool by its version and what its results hang
        on, and the digest of all that a model reads of them."""
        asked = self.options.model_dump(mode="json", exclude={"setup"})  # the tools' states say what the file says
        told = {"kind": self.kind, "core": self.core.spec, **asked}
        return told | {
            "tools_used": dict(self.toolbox.describe_state()),
            "read": hash_stably(self.toolbox.describe(), self.words.model_dump_json()),
        }

    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        """As `ask_about`, with nothing known of the question.

        Raises:
            BackendError: as `ask_about`.
        """
        return await self.ask_about(messages, settings, Background())

    async def ask_about(self, messages: Sequence[Message], settings: Settings, background: Background) -> Reply:
        """The agent's reply: the images of the messages in order become image-0 and so on, their words the question.

        Raises:
            BackendError: the core model gives no usable reply, or an image cannot be read.
        """
        started_s = time.monotonic()
        parts = [part for message in messages for part in message.parts]
        shown = [part for part in parts if isinstance(part, ImagePart)]
        question = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        try:
            book = await asyncio.to_thread(ImageBook, [part.source for part in shown])
        except DatasetError as error:
            raise BackendError("wrong_request", f"{self.spec}: {error}") from None
        trace = Trace(self.kind, self.options.mode, self.core.spec, self.tiers, question, watch=self.watch)
        most = max((part.long_side_px for part in shown), default=0)
        run = AgentRun(
            question=question,
            source=background.source,
            book=book,
            long_side_px=most,
            core=self.core,
            settings=_choose_settings(settings, self.options.mode),
            toolbox=self.toolbox,
            words=self.words,
            mode=self.options.mode,
            trace=trace,
            evidence=background.evidence if self.reads_evidence else {},
        )
        try:
            if self.kind == "react":
                trace.answer = await run_react(run, self.options.turns)
            else:
                trace.answer = await run_plan_execute(run)
        except (DatasetError, OSError) as error:  # an image that was there a moment ago
            raise BackendError("wrong_request", f"{self.spec}: {error}") from None
        return self._make_reply(trace, run, time.monotonic() - started_s)

    def _make_reply(self, trace: Trace, run: AgentRun, seconds: float) -> Reply:
        replies = run.replies
        used = [reply.usage for reply in replies if reply.usage is not None]
        costs = [reply.cost_usd for reply in replies]
        told = trace.to_json(run.book)
        last = replies[-1] if replies else None
        return Reply(
            text=trace.answer,
            finish_reason="stop" if last is None or trace.answer else last.finish_reason,
            model=self.model,
            request_digest=hash_stably(format_canonical_json(told), size=16),
            usage=Usage(
                sum(usage.prompt_tokens for usage in used),
                sum(usage.completion_tokens for usage in used),
                sum(usage.reasoning_tokens for usage in used),
                sum(usage.cached_tokens for usage in used),
            )
            if used
            else None,
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            latency_s=round(seconds, 6),
            image_sizes_px=tuple(image.size_px for image in run.book if not image.made_by),
            images=tuple(image.data for image in run.book if image.made_by),
            cached=bool(replies) and all(reply.cached for reply in replies),
            attempts=sum(reply.attempts for reply in replies),
            raw={"trace": told},
        )

    def halt(self) -> None:
        self.core.halt()

    def is_sending(self, task: asyncio.Task[Any]) -> bool:
        return self.core.is_sending(task)

    async def rest(self) -> None:
        await self.core.rest()

    async def close(self) -> None:
        """As `Backend.close`; ends the tools' processes."""
        self.toolbox.close()
        if self._kept is not None:
            self._kept.close()
        await self.core.close()


def _choose_settings(settings: Settings, mode: Mode) -> Settings:
    """How the core model answers: as published, or with room for its thoughts.

    A model that takes no temperature is sent none in both modes.
    """
    if mode == "official":
        heat = None if settings.temperature is None else 0.0
        return settings.model_copy(update={"max_tokens": TOKENS, "temperature": heat})
    most = None if settings.max_tokens is None else max(TOKENS, settings.max_tokens)
    return settings.model_copy(update={"max_tokens": most})


@providers.register("agent")
class AgentProvider(Provider):
    """`agent:KIND+CORE?tools=...`."""

    def needs(self, name: str) -> Needs:
        return Needs("agent:react+openai:gpt-4o?tools=classical", needs_key=False, without_key="the key of its model")

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        spec = f"{name}:{model}"
        kind, plus, rest = model.partition("+")
        core, own = _split_options(rest, spec)
        if kind not in KINDS or not plus or not core:
            raise ConfigError(
                f"{spec}: found no agent; expected agent:KIND+MODEL with KIND one of {', '.join(KINDS)}, such as "
                "agent:react+openai:gpt-4o?tools=classical"
            )
        if core.startswith(("agent:", "baseline:")):
            raise ConfigError(
                f"{spec}: found {core.partition(':')[0]} as the core; expected a model that reads prompts"
            )
        kept = None
        if options.cache is not None:
            kept = ResultCache(options.cache.with_name(f"{options.cache.name}.tools"))
        backend = AgentBackend(spec, kind, open_backend(core, options), own, kept)  # type: ignore[arg-type]
        # The core's own spelling of its spec holds no password.
        backend.spec = spec.replace(core, backend.core.spec)
        return backend


def _split_options(rest: str, spec: str) -> tuple[str, AgentOptions]:
    """(spec of the core, options): NAME=VALUE&... behind the last `?`, unless a `#` shows that it is of an address.

    Raises:
        ConfigError: an option is none of an agent, or has a value that makes no sense.
    """
    core, mark, tail = rest.rpartition("?")
    pairs = dict(parse_qsl(tail, keep_blank_values=True)) if mark and "#" not in tail else {}
    if not pairs:
        return rest, AgentOptions()
    values: dict[str, Any] = dict(pairs)
    if "tools" in pairs:
        values["tools"] = [name for name in pairs["tools"].split(",") if name]
    if "turns" in pairs:
        number = pairs["turns"]
        values["turns"] = int(number) if number.isdecimal() and len(number) < 10 else number
    return core, parse_config(values, AgentOptions, f"{spec:.300}")


class AgentSpec(NamedTuple):
    """What the name of an agent says."""

    kind: str
    """Of `KINDS`."""
    core: str
    tools: tuple[str, ...]
    """Tiers of its tools; ("none",) for those that need nothing alone."""
    mode: str
    """sane or official."""
    turns: int
    """Of ReAct."""


def read_agent_spec(spec: str) -> AgentSpec | None:
    """What a spec says of an agent; None where it names none, or one of another version."""
    if not spec.startswith("agent:"):
        return None
    kind, _, rest = spec.removeprefix("agent:").partition("+")
    try:
        core, options = _split_options(rest, spec)
    except ConfigError:
        return None
    return AgentSpec(kind, core, options.tools, options.mode, options.turns)


def uses_oracle(spec: str) -> bool:
    """Whether a spec is that of an agent with oracle tools, whose scores are an upper bound."""
    if not spec.startswith("agent:"):
        return False
    agent = read_agent_spec(spec)
    return "oracle" in (spec if agent is None else agent.tools)


def read_trace(reply: Reply) -> Mapping[str, Any] | None:
    """The trace of an agent's reply; None of every other reply."""
    trace = reply.raw.get("trace")
    return trace if isinstance(trace, Mapping) else None
