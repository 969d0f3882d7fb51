"""What every backend does around the one call that differs: cache, retries, limits, budget, keys kept out.

A backend of this kind says how one attempt is made (`Served._send`); everything else happens here, once.
"""

from __future__ import annotations

import abc
import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vgbench_gen.backends._budget import Budget, find_price
from vgbench_gen.backends._cache import ReplyCache, reply_from_json, reply_to_json
from vgbench_gen.backends._call import Call, Failed, Turn
from vgbench_gen.backends._images import ImageCache
from vgbench_gen.backends._keys import redact, redact_tree
from vgbench_gen.backends._limits import Clock, RateGate
from vgbench_gen.backends.base import (
    Backend,
    BackendError,
    ImagePart,
    Message,
    Reply,
    Settings,
    Tally,
    TextPart,
    Usage,
    find_shortfall,
)
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.core.rng import format_canonical_json, hash_stably, rng_for

__all__ = ["LONGEST_PAUSE_S", "Call", "Failed", "Served", "Turn"]

_log = logging.getLogger("vgbench_gen.backends")
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0  # of waits that double
LONGEST_PAUSE_S = 300.0  # a provider that asks for more has closed for the day
_SLOWER = 4  # so much longer are they after "too many requests": limits are often those of a minute
_TELL_EVERY_S = 10.0  # that it waits, and why
_UNKNOWN_ANSWER_TOKENS = 4096  # thought of an answer without a limit


class Served(Backend):
    """Base of backends: subclasses say how one attempt is made and how connections are dropped.

    Args:
        spec: as on the command line.
        provider: name for the tables of prices.
        model: name for replies, prices and cache keys.
        endpoint: where it is served, without credentials; part of the cache key.
        options: how requests are sent.
        clock: where waiting and time come from.

    Raises:
        ConfigError: a budget in money for a model without a price.
    """

    edits = False  # whether `_send` knows what to do with `Call.edit`

    def __init__(
        self, spec: str, provider: str, model: str, endpoint: str, options: BackendOptions, clock: Clock | None = None
    ) -> None:
        self.spec, self.provider, self.model, self.endpoint, self.options = spec, provider, model, endpoint, options
        self.parallel = options.concurrency
        self.tally = Tally()
        self._clock = clock or Clock()
        self._price = find_price(provider, model, options.prices)
        self._budget = Budget(options.budget_usd, options.budget_tokens, self._price, self.tally, spec)
        self._cache = ReplyCache(options.cache) if options.cache is not None else None
        self._images = ImageCache()
        self._gate = RateGate(options.concurrency, self._clock, options.rpm, options.tpm)
        self._under_way: dict[str, asyncio.Future[Reply]] = {}
        self._for_all: Failed | None = None
        self._sending: set[asyncio.Task[Any] | None] = set()
        self._prompt_ratio = 1.0
        self._told_s = float("-inf")

    @abc.abstractmethod
    async def _send(self, call: Call) -> Reply:
        """One attempt, without retries.

        Raises:
            Failed: no usable answer. Messages may hold keys; they are covered on the way out.
        """

    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        return await self._serve(messages, settings)

    async def edit(self, images: Sequence[ImagePart], prompt: str, settings: Settings) -> Reply:
        return await self._serve((Message("user", (*images, TextPart(prompt))),), settings, self.edits)

    async def _serve(self, messages: Sequence[Message], settings: Settings, edit: bool = False) -> Reply:
        call = await self._call(messages, settings, edit)
        while True:
            if self._cache is not None and (kept := self._cache.get(call.digest)) is not None:
                return self._hand_on(kept)
            if (other := self._under_way.get(call.digest)) is None:
                return await self._ask_first(call)
            if (shared := await _outcome(other)) is not None:
                return self._hand_on(shared)

    def _hand_on(self, reply: Reply) -> Reply:
        """A reply to a request that was answered before, or at the same time for another caller."""
        self.tally.cached += 1
        self.tally.note(*find_shortfall(reply))
        return replace(reply, cached=True)

    def halt(self) -> None:
        self._for_all = self._for_all or Failed("cancelled", f"{self.spec}: interrupted before it was sent.")

    def is_sending(self, task: asyncio.Task[Any]) -> bool:
        return task in self._sending

    async def close(self) -> None:
        await self.rest()
        if self._cache is not None:
            self._cache.close()
        if not self.tally.reported:
            for line in self.tally.list_shortfalls(self.spec):
                _log.warning("%s", line)
            self.tally.reported = True

    async def _ask_first(self, call: Call) -> Reply:
        """Ask, and let those who ask the same meanwhile share the outcome."""
        outcome: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._under_way[call.digest] = outcome
        try:
            reply = await self._try_until_done(call)
            outcome.set_result(reply)
            self.tally.note(*find_shortfall(reply))
            return reply
        except BackendError as error:
            self.tally.note(error.kind, error.message)
            outcome.set_exception(error)
            outcome.exception()  # looked at, so that nobody complains where no one shares it
            raise
        finally:
            del self._under_way[call.digest]
            outcome.cancel()

    async def _call(self, messages: Sequence[Message], settings: Settings, edit: bool) -> Call:
        if settings.system:
            messages = (Message.of("system", settings.system), *messages)
        turns = []
        for message in messages:
            parts = [
                await self._images.prepare(part) if isinstance(part, ImagePart) else part.text for part in message.parts
            ]
            turns.append(Turn(message.role, tuple(parts)))
        asked = [
            [turn.role, [part if isinstance(part, str) else {"image": part.digest} for part in turn.parts]]
            for turn in turns
        ]
        content = [1, self.provider, self.endpoint, self.model, asked, settings.model_dump(mode="json")]
        if edit:
            content.append("edit")
        try:
            return Call(tuple(turns), settings, hash_stably(format_canonical_json(content), size=16), edit)
        except ValueError as exc:
            raise BackendError(
                "wrong_request",
                f"{self.spec}: the request is no valid Unicode or JSON ({type(exc).__name__}).",
            ) from None

    async def _try_until_done(self, call: Call) -> Reply:
        tries = 0
        while True:
            if self._for_all is not None:
                raise BackendError(self._for_all.kind, self._for_all.message)
            thought = await self._budget.room_for(lambda: self._estimate_usage(call))
            self._check_fits_a_minute(thought)
            tries += 1
            outcome = await self._try_once(call, thought, tries)
            if isinstance(outcome, Reply):
                return outcome
            if outcome.for_all:
                self._for_all = outcome
            wait_s = self._wait_s(call, outcome, tries)
            if outcome.again == "slower":
                self.tally.slowed += 1
                self._gate.slowed(outcome.started_s, 0.0)
            # Where nobody was answered in so many pauses, nobody need find that out by tries of its own.
            worn = max(tries, self._gate.pauses if outcome.again == "slower" else 0) > self.options.retries
            if outcome.again == "never" or worn or self._for_all is not None:
                told = f" Tried {tries} times." if tries > 1 else ""
                raise BackendError(outcome.kind, _end_sentence(outcome.message) + told)
            if wait_s > LONGEST_PAUSE_S:
                raise BackendError(
                    outcome.kind,
                    f"{_end_sentence(outcome.message)} It asks to wait {wait_s:.0f} s: run again then.",
                )
            self.tally.retried += 1
            self._tell_wait(outcome.message, wait_s)
            if outcome.again == "slower":
                self._gate.slowed(outcome.started_s, wait_s)  # nobody else is sent meanwhile
            else:
                await self._clock.sleep(wait_s)

    def _tell_wait(self, why: str, wait_s: float) -> None:
        if self._clock.now() >= self._told_s + _TELL_EVERY_S:
            self._told_s = self._clock.now()
            _log.warning("waiting: %s; next try in %.2g s", why.rstrip("."), wait_s)

    async def _try_once(self, call: Call, thought: Usage, attempt: int) -> Reply | Failed:
        with self._budget.hold(thought) as held:
            async with self._gate.slot(held.tokens):
                self.tally.requests += 1
                started_s = self._clock.now()
                self._sending.add(sender := asyncio.current_task())
                try:
                    async with asyncio.timeout(self.options.timeout_s):
                        answer = await self._send(call)
                except TimeoutError:
                    failed = Failed(
                        "timeout", f"{self.spec}: no answer in {self.options.timeout_s:g} s.", "later", charged=True
                    )
                except Failed as exc:
                    failed = exc
                else:
                    # No waiting from here on: an answer that is here is kept, whoever is cancelled.
                    self._gate.succeeded()
                    reply = self._accept(call, answer, attempt, self._clock.now() - started_s)
                    used = answer.usage or replace(thought, completion_tokens=len(answer.text.encode()) // 3)
                    held.settle(used.prompt_tokens + used.completion_tokens, self._find_cost(answer, used))
                    self._gate.tokens.correct(held.spent_tokens - held.tokens)
                    return reply
                finally:
                    self._sending.discard(sender)
                # Tracebacks hold frames, and those the images of this call: 5,000 failures would keep gigabytes.
                failed.__traceback__ = failed.__context__ = None
                if failed.charged:
                    held.settle(held.tokens, held.usd)
                else:
                    self._gate.tokens.correct(-held.tokens)
                failed.started_s = started_s
                return failed

    def _accept(self, call: Call, answer: Reply, attempt: int, latency_s: float) -> Reply:
        """The reply, with keys covered, kept where it is worth keeping."""
        if answer.usage is not None:
            thought = _estimate_prompt_tokens(call)
            self._budget.told = True
            self._prompt_ratio = max(self._prompt_ratio, answer.usage.prompt_tokens / thought)
        cost_usd = self._find_cost(answer, answer.usage)
        self.tally.uncosted += cost_usd is None
        reply = replace(
            answer,
            request_digest=call.digest,
            cost_usd=cost_usd,
            latency_s=round(latency_s, 6),
            image_sizes_px=tuple(image.size_px for image in call.images),
            attempts=attempt,
        )
        record = reply_to_json(reply)
        if redact(text := record.decode()) != text:
            record = format_canonical_json(redact_tree(json.loads(record))).encode()
            reply = reply_from_json(record)
        worth_keeping = (answer.text.strip() or answer.images) and answer.finish_reason != "content_filter"
        if self._cache is not None and worth_keeping:
            self._cache.write(call.digest, record)
        return reply

    def _find_cost(self, answer: Reply, usage: Usage | None) -> float | None:
        if answer.cost_usd is not None:
            return answer.cost_usd
        return None if self._price is None or usage is None else self._price.usd(usage)

    def _estimate_usage(self, call: Call) -> Usage:
        """What the request may use at most: words and pixels by rule of thumb, mended by what was seen so far."""
        prompt = int(_estimate_prompt_tokens(call) * self._prompt_ratio) + 1
        return Usage(prompt, call.settings.max_tokens or _UNKNOWN_ANSWER_TOKENS)

    def _check_fits_a_minute(self, thought: Usage) -> None:
        tokens, most = thought.prompt_tokens + thought.completion_tokens, self.options.tpm
        if most and tokens > most:
            raise BackendError(
                "wrong_request",
                f"{self.spec}: one request may take {tokens} tokens, and --tpm lets {most} through in a minute. Raise "
                "--tpm, or let replies and images be smaller (--max-tokens, --long-side).",
            )

    def _wait_s(self, call: Call, failed: Failed, tries: int) -> float:
        if failed.wait_s is not None:
            return failed.wait_s
        first_s = _FIRST_WAIT_S * (_SLOWER if failed.again == "slower" else 1)
        # Jitter, so that requests that failed together do not come back together.
        drawn = rng_for(0, "retry", call.digest, str(tries)).random()
        return min(_LONGEST_WAIT_S, first_s * 2.0 ** min(tries - 1, 16)) * (0.5 + 0.5 * float(drawn))


def _end_sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?", "…")) else f"{message}."


def _estimate_prompt_tokens(call: Call) -> int:
    """By bytes of text (3 a token: English has about 4, Chinese one character) and pixels (700 a token)."""
    pixels = sum(width * height for width, height in (image.size_px for image in call.images))
    return len(call.text.encode()) // 3 + pixels // 700 + 100 * len(call.images) + 8 * len(call.turns) + 1


async def _outcome(other: asyncio.Future[Reply]) -> Reply | None:
    """What the same request by another caller brought; None where that caller was cancelled."""
    await asyncio.wait([other])
    if other.cancelled():
        return None
    if (error := other.exception()) is not None:
        # A new one: one exception raised in many places would gather all their tracebacks.
        raise BackendError(error.kind, error.message) if isinstance(error, BackendError) else error
    return other.result()
