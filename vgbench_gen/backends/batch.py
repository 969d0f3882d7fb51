"""Runs many requests, from synchronous or asynchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from vgbench_gen.backends.base import Backend, BackendError, Reply, Request

Outcome = Reply | BackendError


def ask_all(
    backend: Backend,
    requests: Sequence[Request],
    *,
    progress: Callable[[int, int], None] | None = None,
    on_reply: Callable[[int, Outcome], None] | None = None,
) -> list[Outcome]:
    """Send all requests and return their replies or errors, in the order of the requests.

    At most `Backend.parallel` requests run at once; images are read when their request starts. The backend stays open.
    Ctrl-C cancels running requests; finished replies are in the cache and were passed to `on_reply`.

    Args:
        backend: the model.
        requests: any number of them.
        progress: called with (done, all) after each request.
        on_reply: called with the index and the outcome of each finished request. An exception of it stops all requests.

    Raises:
        KeyboardInterrupt: on Ctrl-C.
        RuntimeError: an event loop runs in this thread; `await ask_each(...)` there.
    """

    async def run() -> list[Outcome]:
        try:
            return await ask_each(backend, requests, progress=progress, on_reply=on_reply)
        finally:
            await backend.rest()

    return asyncio.run(run())


async def ask_each(
    backend: Backend,
    requests: Sequence[Request],
    *,
    progress: Callable[[int, int], None] | None = None,
    on_reply: Callable[[int, Outcome], None] | None = None,
) -> list[Outcome]:
    """As `ask_all`, from within an event loop."""
    outcomes: list[Outcome | None] = [None] * len(requests)
    waiting = iter(range(len(requests)))
    done = 0

    async def work() -> None:
        nonlocal done
        for index in waiting:  # all workers share the iterator, so each request goes to a free worker
            request = requests[index]
            outcome: Outcome
            try:
                outcome = await backend.ask(request.messages, request.settings)
            except BackendError as error:
                outcome = error.with_traceback(None)  # the frames of a traceback keep the images in memory
            outcomes[index] = outcome
            done += 1
            if on_reply is not None:
                on_reply(index, outcome)
            if progress is not None:
                progress(done, len(requests))

    workers = [asyncio.create_task(work()) for _ in range(min(backend.parallel, len(requests)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [outcome for outcome in outcomes if outcome is not None]
