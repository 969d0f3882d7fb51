"""The base class of backends that send requests: cache, retries, rate limits, budget, covering of keys.

A subclass only implements one attempt (`Served._send`).
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
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0  # waits between retries double from the first to the longest
LONGEST_PAUSE_S = 300.0  # a request fails if the provider asks for a longer wait
_SLOWER = 4  # waits after "too many requests" are longer by this factor, because limits are often per minute
_WARN_EVERY_S = 10.0  # the shortest time between warnings about waits
_UNKNOWN_ANSWER_TOKENS = 4096  # the estimated length of a reply without a limit


class Served(Backend):
    """Base of backends that send requests; subclasses implement `_send`, and `rest` if they keep connections.

    Args:
        spec: as on the command line.
        provider: name in the table of prices.
        model: name for replies, prices and cache keys.
        endpoint: address without credentials; part of the cache key.
        options: of requests.
        clock: the source of time.

    Raises:
        ConfigError: a budget in money for a model without a price.
    """

    edits = False  # whether `_send` supports `Call.edit`

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
        self._running: dict[str, asyncio.Future[Reply]] = {}
        self._for_all: Failed | None = None
        self._sending: set[asyncio.Task[Any] | None] = set()
        self._prompt_ratio = 1.0
        self._warned_at_s = float("-inf")

    @abc.abstractmethod
    async def _send(self, call: Call) -> Reply:
        """One attempt, without retries.

        Raises:
            Failed: no usable reply. Its message may contain keys, which are covered later.
        """

    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        return await self._serve(messages, settings)

    async def edit(self, images: Sequence[ImagePart], prompt: str, settings: Settings) -> Reply:
        return await self._serve((Message("user", (*images, TextPart(prompt))),), settings, self.edits)

    async def _serve(self, messages: Sequence[Message], settings: Settings, edit: bool = False) -> Reply:
        call = await self._prepare(messages, settings, edit)
        while True:
            if self._cache is not None and (kept := self._cache.get(call.digest)) is not None:
                return self._reuse(kept)
            if (other := self._running.get(call.digest)) is None:
                return await self._ask_first(call)
            if (shared := await _wait_for(other)) is not None:
                return self._reuse(shared)

    def _reuse(self, reply: Reply) -> Reply:
        """A reply to an earlier equal request, or to a simultaneous one of another caller."""
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
        """Send a request, and share its outcome with other callers of the same request."""
        outcome: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._running[call.digest] = outcome
        try:
            reply = await self._try_until_done(call)
            outcome.set_result(reply)
            self.tally.note(*find_shortfall(reply))
            return reply
        except BackendError as error:
            self.tally.note(error.kind, error.message)
            outcome.set_exception(error)
            outcome.exception()  # retrieve it, or asyncio warns if no other caller waits for it
            raise
        finally:
            del self._running[call.digest]
            outcome.cancel()

    async def _prepare(self, messages: Sequence[Message], settings: Settings, edit: bool) -> Call:
        if settings.system:
            messages = (Message.of("system", settings.system), *messages)
        turns = []
        for message in messages:
            parts = [
                await self._images.prepare(part) if isinstance(part, ImagePart) else part.text for part in message.parts
            ]
            turns.append(Turn(message.role, tuple(parts)))
        prompt = [
            [turn.role, [part if isinstance(part, str) else {"image": part.digest} for part in turn.parts]]
            for turn in turns
        ]
        content = [1, self.provider, self.endpoint, self.model, prompt, settings.model_dump(mode="json")]
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
            estimate = await self._budget.wait_for_room(lambda: self._estimate_usage(call))
            self._check_fits_a_minute(estimate)
            tries += 1
            outcome = await self._try_once(call, estimate, tries)
            if isinstance(outcome, Reply):
                return outcome
            if outcome.for_all:
                self._for_all = outcome
            wait_s = self._wait_s(call, outcome, tries)
            if outcome.again == "slower":
                self.tally.slowed += 1
                self._gate.slowed(outcome.started_s, 0.0)
            # Pauses without any success in between count for all requests, as if each had been retried as often.
            failures = max(tries, self._gate.pauses if outcome.again == "slower" else 0)
            if outcome.again == "never" or failures > self.options.retries or self._for_all is not None:
                count = f" Tried {tries} times." if tries > 1 else ""
                raise BackendError(outcome.kind, _end_sentence(outcome.message) + count)
            if wait_s > LONGEST_PAUSE_S:
                raise BackendError(
                    outcome.kind,
                    f"{_end_sentence(outcome.message)} It asks to wait {wait_s:.0f} s: run again then.",
                )
            self.tally.retried += 1
            if self._clock.now() >= self._warned_at_s + _WARN_EVERY_S:
                self._warned_at_s = self._clock.now()
                _log.warning("waiting: %s; next try in %.2g s", outcome.message.rstrip("."), wait_s)
            if outcome.again == "slower":
                self._gate.slowed(outcome.started_s, wait_s)  # other requests wait too
            else:
                await self._clock.sleep(wait_s)

    async def _try_once(self, call: Call, estimate: Usage, attempt: int) -> Reply | Failed:
        with self._budget.reserve(estimate) as reserved:
            async with self._gate.slot(reserved.tokens):
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
                    # Nothing is awaited from here on, so that a received reply is kept even if the task is cancelled.
                    self._gate.succeeded()
                    reply = self._accept(call, answer, attempt, self._clock.now() - started_s)
                    usage = answer.usage or replace(estimate, completion_tokens=len(answer.text.encode()) // 3)
                    reserved.settle(usage.prompt_tokens + usage.completion_tokens, self._find_cost(answer, usage))
                    self._gate.tokens.correct(reserved.spent_tokens - reserved.tokens)
                    return reply
                finally:
                    self._sending.discard(sender)
                # The frames of a traceback keep the images of the call: 5,000 failures would keep gigabytes.
                failed.__traceback__ = failed.__context__ = None
                if failed.charged:
                    reserved.settle(reserved.tokens, reserved.usd)
                else:
                    self._gate.tokens.correct(-reserved.tokens)
                failed.started_s = started_s
                return failed

    def _accept(self, call: Call, answer: Reply, attempt: int, latency_s: float) -> Reply:
        """The complete reply with keys covered. It is put into the cache, unless it is empty or filtered."""
        if answer.usage is not None:
            self._budget.usage_known = True
            ratio = answer.usage.prompt_tokens / _estimate_prompt_tokens(call)
            self._prompt_ratio = max(self._prompt_ratio, ratio)
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
        """The largest likely usage of a request, corrected by the largest ratio of real to estimated prompt tokens."""
        prompt = int(_estimate_prompt_tokens(call) * self._prompt_ratio) + 1
        return Usage(prompt, call.settings.max_tokens or _UNKNOWN_ANSWER_TOKENS)

    def _check_fits_a_minute(self, estimate: Usage) -> None:
        tokens, most = estimate.prompt_tokens + estimate.completion_tokens, self.options.tpm
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
        # The jitter keeps requests that failed together from being retried together.
        jitter = float(rng_for(0, "retry", call.digest, str(tries)).random())
        return min(_LONGEST_WAIT_S, first_s * 2.0 ** min(tries - 1, 16)) * (0.5 + 0.5 * jitter)


def _end_sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?", "…")) else f"{message}."


def _estimate_prompt_tokens(call: Call) -> int:
    """An estimate: a token per 3 bytes of text (English has about 4, Chinese one character) and per 700 pixels."""
    pixels = sum(width * height for width, height in (image.size_px for image in call.images))
    return len(call.text.encode()) // 3 + pixels // 700 + 100 * len(call.images) + 8 * len(call.turns) + 1


async def _wait_for(other: asyncio.Future[Reply]) -> Reply | None:
    """The reply to the same request of another caller; None if that caller was cancelled."""
    await asyncio.wait([other])
    if other.cancelled():
        return None
    if (error := other.exception()) is not None:
        # A new exception, because one that is raised by several callers would collect their tracebacks.
        raise BackendError(error.kind, error.message) if isinstance(error, BackendError) else error
    return other.result()
