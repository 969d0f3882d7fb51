"""`agent:react+openai:gpt-4o?tools=classical`: an agent as a model that can be asked like any other.

    agent:KIND+CORE[?tools=TIER,TIER][&mode=sane|official][&turns=N][&setup=FILE]

KIND is `react` or `plan-execute`, CORE the spec of any model. Tools of the tier `utility` are always available;
`tools=none` leaves only these. The trace is part of the reply (`Reply.raw["trace"]`). Replies of the core model are
kept in its cache (`--cache`) and tool results in a second file next to it, so an interrupted agent repeats neither.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple
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
TOKENS = 2048  # the published limit for a reply of the core model; in mode `sane` the user may set a larger one


class AgentOptions(Config):
    """Options in an agent's spec, after the `?`."""

    tools: tuple[str, ...] = ("classical",)
    """Tiers of tools; `none` leaves only the tier `utility`."""
    mode: Mode = "sane"
    turns: int = Field(default=TURNS, ge=1, le=100)
    """The largest number of turns of ReAct."""
    setup: Path | None = None
    """TOML file with a table of options per tool: weights, devices, servers (`agent.setup`)."""


class AgentBackend(Backend):
    """A core model with tools. It answers in words; its reply carries the images that its tools made.

    Args:
        spec: as on the command line.
        kind: one of `KINDS`.
        core: the model that plans, calls tools and answers; closed with the agent.
        options: of the agent.
        cache: results of tools; None keeps none.

    `watch`, where set, is called with each step of each trace as it is added.
    """

    makes_images = False

    def __init__(
        self,
        spec: str,
        kind: Literal["react", "plan-execute"],
        core: Backend,
        options: AgentOptions,
        cache: ResultCache | None = None,
    ) -> None:
        self.spec, self.kind, self.core, self.options = spec, kind, core, options
        tiers = () if options.tools == ("none",) else options.tools
        self.tiers = tuple(tier for tier in tiers if tier != "utility")
        self._cache = cache
        self.watch: Watch | None = None
        setups = load_setup(options.setup) if options.setup is not None else {}
        chosen = choose_tools(self.tiers, options.mode, setups, self._list_remote_tools())
        self.toolbox = Toolbox(chosen, max(1, os.cpu_count() or 1), cache, setups)
        self.words = load_words(options.mode)
        used = {tool.key: setups[tool.key].model_dump(mode="json") for tool in chosen if tool.key in setups}
        configuration = format_canonical_json([kind, self._dump_options(), used, self.toolbox.describe()])
        # The name in tables: readable, and different for other tools and options.
        self.model = "+".join((kind, core.model, *(self.tiers or ("none",)), hash_stably(configuration, size=4)))
        self.reads_evidence = "oracle" in self.tiers
        self.images_in = core.images_in
        self.parallel, self.tally = core.parallel, core.tally

    def _dump_options(self) -> dict[str, Any]:
        return self.options.model_dump(mode="json", exclude={"setup"})  # the state of each tool covers its setup

    def _list_remote_tools(self) -> list[Tool]:
        if "remote" not in self.tiers:
            return []
        servers = load_servers(self.options.setup) if self.options.setup is not None else {}
        if not servers:
            raise ConfigError(
                f"{self.spec}: tools=remote: found no server; expected setup=FILE.toml with a table [remote.NAME] that "
                "has the url printed by `vgbench agent serve`"
            )
        from vgbench_gen.agent.mcp_client import connect

        return connect(servers)

    def describe_setup(self) -> Mapping[str, Any]:
        return {
            "kind": self.kind,
            "core": self.core.spec,
            **self._dump_options(),
            "tools_used": dict(self.toolbox.describe_state()),
            "read": hash_stably(self.toolbox.describe(), self.words.model_dump_json()),
        }

    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        return await self.ask_about(messages, settings, Background())

    async def ask_about(self, messages: Sequence[Message], settings: Settings, background: Background) -> Reply:
        """The agent's reply. The images of the messages are named image-0, image-1 and so on; their words are the
        question.

        Raises:
            BackendError: the core model gives no usable reply, or an image cannot be read.
        """
        started_s = time.monotonic()
        parts = [part for message in messages for part in message.parts]
        images = [part for part in parts if isinstance(part, ImagePart)]
        question = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        mode = self.options.mode
        trace = Trace(self.kind, mode, self.core.spec, self.tiers, question, watch=self.watch)
        try:
            run = AgentRun(
                question=question,
                source=background.source,
                book=await asyncio.to_thread(ImageBook, [part.source for part in images]),
                long_side_px=max((part.long_side_px for part in images), default=0),
                core=self.core,
                settings=_choose_settings(settings, mode),
                toolbox=self.toolbox,
                words=self.words,
                mode=mode,
                trace=trace,
                evidence=background.evidence if self.reads_evidence else {},
            )
            if self.kind == "react":
                trace.answer = await run_react(run, self.options.turns)
            else:
                trace.answer = await run_plan_execute(run)
        except (DatasetError, OSError) as error:
            raise BackendError("wrong_request", f"{self.spec}: {error}") from None
        return self._make_reply(run, time.monotonic() - started_s)

    def _make_reply(self, run: AgentRun, seconds: float) -> Reply:
        replies, answer = run.replies, run.trace.answer
        usages = [reply.usage for reply in replies if reply.usage is not None]
        costs = [reply.cost_usd for reply in replies]
        record = run.trace.to_json(run.book)
        return Reply(
            text=answer,
            finish_reason="stop" if answer or not replies else replies[-1].finish_reason,
            model=self.model,
            request_digest=hash_stably(format_canonical_json(record), size=16),
            usage=Usage(*map(sum, zip(*map(astuple, usages), strict=True))) if usages else None,
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            latency_s=round(seconds, 6),
            image_sizes_px=tuple(image.size_px for image in run.book if not image.made_by),
            images=tuple(image.data for image in run.book if image.made_by),
            cached=bool(replies) and all(reply.cached for reply in replies),
            attempts=sum(reply.attempts for reply in replies),
            raw={"trace": record},
        )

    def halt(self) -> None:
        self.core.halt()

    def is_sending(self, task: asyncio.Task[Any]) -> bool:
        return self.core.is_sending(task)

    async def rest(self) -> None:
        await self.core.rest()

    async def close(self) -> None:
        self.toolbox.close()
        if self._cache is not None:
            self._cache.close()
        await self.core.close()


def _choose_settings(settings: Settings, mode: Mode) -> Settings:
    """Settings of the core model: the published ones, or at least the published number of tokens.

    A model that takes no temperature is sent none in both modes.
    """
    if mode == "official":
        temperature = None if settings.temperature is None else 0.0
        return settings.model_copy(update={"max_tokens": TOKENS, "temperature": temperature})
    max_tokens = None if settings.max_tokens is None else max(TOKENS, settings.max_tokens)
    return settings.model_copy(update={"max_tokens": max_tokens})


@providers.register("agent")
class AgentProvider(Provider):
    """`agent:KIND+CORE?tools=...`."""

    def needs(self, name: str) -> Needs:
        return Needs("agent:react+openai:gpt-4o?tools=classical", needs_key=False, without_key="the key of its model")

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        spec = f"{name}:{model}"
        kind, plus, rest = model.partition("+")
        core, agent_options = _split_options(rest, spec)
        if kind not in KINDS or not plus or not core:
            raise ConfigError(
                f"{spec}: found no kind or no model; expected agent:KIND+MODEL with KIND one of {', '.join(KINDS)}, "
                "such as agent:react+openai:gpt-4o?tools=classical"
            )
        if core.startswith(("agent:", "baseline:")):
            raise ConfigError(
                f"{spec}: found {core.partition(':')[0]} as the core; expected a model that reads prompts"
            )
        path = options.cache
        cache = None if path is None else ResultCache(path.with_name(f"{path.name}.tools"))
        backend = AgentBackend(spec, kind, open_backend(core, options), agent_options, cache)  # type: ignore[arg-type]
        # The backend of the core has removed passwords from its spec.
        backend.spec = spec.replace(core, backend.core.spec)
        return backend


def _split_options(rest: str, spec: str) -> tuple[str, AgentOptions]:
    """(spec of the core, options). Options are NAME=VALUE&... after the last `?`, unless a `#` follows, as in a URL.

    Raises:
        ConfigError: an unknown option or an invalid value.
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
    """The parts of an agent's spec; see `AgentOptions` for the last three."""

    kind: str
    core: str
    tools: tuple[str, ...]
    mode: str
    turns: int


def read_agent_spec(spec: str) -> AgentSpec | None:
    """The parts of a spec; None if it is no agent's, or has options that this version does not know."""
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
    agent = read_agent_spec(spec)
    return spec.startswith("agent:") and "oracle" in (spec if agent is None else agent.tools)


def read_trace(reply: Reply) -> Mapping[str, Any] | None:
    """The trace of an agent's reply; None for any other reply."""
    trace = reply.raw.get("trace")
    return trace if isinstance(trace, Mapping) else None
