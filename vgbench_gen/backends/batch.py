"""Many requests from code that is not asynchronous: bounded, in order, and nothing lost when it is stopped."""

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
    """Ask every request and return what came of each, in the order of the requests.

    As many are under way as the backend says is worth having; images are read when their turn comes. The backend stays
    open and may be asked again. Ctrl-C cancels what is under way; replies that came are in the cache and were given to
    `on_reply`.

    Args:
        backend: who is asked.
        requests: what is asked.
        progress: called with (done, all) after each.
        on_reply: called with the request's index and what came of it, as it comes. What it raises stops everything.

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
        for index in waiting:  # shared by all workers: each request goes to the one that is free
            request = requests[index]
            outcome: Outcome
            try:
                outcome = await backend.ask(request.messages, request.settings)
            except BackendError as error:
                # A traceback holds its frames, and those the images of the request.
                outcome = error.with_traceback(None)
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
