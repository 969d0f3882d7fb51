"""`scripted:FILE`: replies and failures from a file, sent through `Served` as those of every other backend.

One JSON object per line, tried from the top; the first entry that matches answers:

    {"match": "Reword", "reply": "{\\"question\\": \\"…\\"}"}
    {"failure": "429", "retry_after_s": 2, "times": 1}
    {"reply": "B", "delay_s": 0.1}

Entries without `match` match every prompt and are used once each, in order; those with `match` match prompts that
contain that text and may be used any number of times. `times` overrides both (0: any number).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from vgbench_gen.backends._call import Call, Failed
from vgbench_gen.backends._limits import Clock
from vgbench_gen.backends.base import Backend, FinishReason, Reply, Usage
from vgbench_gen.backends.served import Served
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.core.config import Config, parse_config
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_text

_MAX_BYTES = 64 << 20
_AGAIN: dict[str, Literal["later", "slower"]] = {"500": "later", "cut": "later", "bad_reply": "later", "429": "slower"}
_KINDS = {"400": "wrong_request", "401": "refused_key", "timeout": "timeout", "bad_reply": "bad_reply"}


class ScriptLine(Config):
    """One line of a script: a reply or a failure, and the prompts that it answers."""

    match: str = ""
    """Text that a prompt must contain; "" matches every prompt."""
    reply: str = ""
    finish_reason: FinishReason = "stop"
    failure: Literal["", "400", "401", "429", "500", "cut", "timeout", "bad_reply"] = ""
    """A failure in place of the reply, such as an HTTP status; "" for none."""
    retry_after_s: float | None = Field(default=None, ge=0)
    """The wait that a failure asks for; None if it asks for none."""
    delay_s: float = Field(default=0.0, ge=0)
    """Delay of the reply or the failure."""
    times: int | None = Field(default=None, ge=0)
    """How often the line may be used, 0 for any number; None for once without `match` and any number with it."""
    usage: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | None = None
    """(prompt, completion) tokens that the reply reports; None if it reports none."""


class Scripted(Served):
    """A backend whose replies come from a function.

    Args:
        spec: for messages.
        model: for replies and cache keys.
        play: returns the entry for an attempt; called once per attempt, in the order of sending.
        options: of requests.
        clock: the source of time.
        version: of the script, part of the cache key.
    """

    def __init__(
        self,
        spec: str,
        model: str,
        play: Callable[[Call], ScriptLine],
        options: BackendOptions | None = None,
        clock: Clock | None = None,
        version: str = "",
    ) -> None:
        super().__init__(spec, "scripted", model, version, options or BackendOptions(), clock)
        self._play = play

    async def _send(self, call: Call) -> Reply:
        entry = self._play(call)
        await asyncio.sleep(entry.delay_s)
        if entry.failure == "timeout":
            raise TimeoutError
        if entry.failure:
            raise Failed(
                _KINDS.get(entry.failure, "api_error"),
                f"{self.spec}: scripted failure {entry.failure}.",
                _AGAIN.get(entry.failure, "never"),
                entry.retry_after_s,
                for_all=entry.failure == "401",
            )
        usage = None if entry.usage is None else Usage(*entry.usage)
        return Reply(entry.reply, entry.finish_reason, self.model, usage=usage, raw={"scripted": True})


def _make_player(spec: str, entries: list[ScriptLine]) -> Callable[[Call], ScriptLine]:
    """A function that returns the first entry that matches a call and may still be used."""
    uses = [(None if entry.match else 1) if entry.times is None else entry.times or None for entry in entries]

    def play(call: Call) -> ScriptLine:
        text = call.text
        for number, (entry, left) in enumerate(zip(entries, uses, strict=True)):
            if left != 0 and entry.match in text:
                uses[number] = None if left is None else left - 1
                return entry
        hint = 'a line without "match" answers once, with "times": 0 any number of times'
        raise Failed("wrong_request", f"{spec}: no entry is left that fits ({hint}): {text[-200:]!r}")

    return play


@providers.register("scripted")
class ScriptedProvider(Provider):
    """`scripted:FILE`."""

    def needs(self, name: str) -> Needs:
        return Needs(f"{name}:FILE", needs_key=False)

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        spec, path = f"{name}:{model}", Path(model)
        expected = 'JSON lines such as {"match": "left of", "reply": "Yes"} (docs/tables.md)'
        text = read_text(path, expected, config_error, _MAX_BYTES)
        play = _make_player(spec, _parse_entries(path, text))
        return Scripted(spec, path.name, play, options, version=digest_bytes(text.encode()))


def _parse_entries(path: Path, text: str) -> list[ScriptLine]:
    entries = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            record = parse_json(line, "keep")
        except ValueError as exc:
            raise config_error(where, f"no JSON ({exc})", "one object per line", "Correct that line.") from exc
        if not isinstance(record, dict):
            raise config_error(where, "no object", "one per line", "Correct that line.")
        entries.append(parse_config(record, ScriptLine, where))
    return entries
