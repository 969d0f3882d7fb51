"""A program that asks a server many things, for tests that kill it or read what it writes: SPEC CACHE NUMBER."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.backends.fixtures import request
from vgbench_gen.backends.base import BackendError, Reply
from vgbench_gen.backends.batch import Outcome, ask_all
from vgbench_gen.backends.spec import BackendOptions, open_backend


def main() -> None:
    spec, cache, number = sys.argv[1:]
    requests = [request(f"question {i}") for i in range(int(number))]
    backend = open_backend(spec, BackendOptions(cache=Path(cache), concurrency=8, retries=1))

    def told(index: int, outcome: Outcome) -> None:
        print(index, outcome if isinstance(outcome, BackendError) else outcome.text, flush=True)

    outcomes = ask_all(backend, requests, on_reply=told)
    print(backend.tally, sum(isinstance(outcome, Reply) for outcome in outcomes))


if __name__ == "__main__":
    main()
