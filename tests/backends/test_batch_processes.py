"""Programs that ask are killed, stopped and run again; the server counts what they asked."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.fixtures import picture, request
from tests.backends.server import Play, failing, refusal, reply, serving, serving_apart, wait_until
from vgbench_gen.backends._call import Call
from vgbench_gen.backends.base import BackendError, ImagePart, Reply
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, open_backend

NUMBER, AT_ONCE = 120, 8


def asking(url: str, cache: Path, number: int = NUMBER) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.backends.asker", f"vllm:{url}#m", str(cache), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_program_goes_on_where_it_was(tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    with serving(lambda seen: Play(body=reply().body, delay_s=0.02)) as server:
        with asking(server.url, cache) as first:
            assert first.stdout is not None
            for _ in range(30):
                first.stdout.readline()
            first.kill()
            told = 30 + sum(line.endswith("\n") for line in first.stdout)
        assert 30 <= told < NUMBER
        wait_until(lambda: server.under_way == 0)
        sent = server.requests
        with asking(server.url, cache) as second:
            out, errors = second.communicate(timeout=300)
        assert second.returncode == 0, errors
        assert out.rstrip().endswith(f" {NUMBER}")
    # What was told had been stored, and none of it was asked again. What was not can only have been under way.
    assert len(server.asked) == NUMBER
    assert sent - told <= AT_ONCE
    assert server.requests - NUMBER <= sent - told


def test_a_stopped_batch_ends_soon_and_keeps_what_came(tmp_path: Path) -> None:
    requests = [request(f"question {i}") for i in range(60)]
    options, told = BackendOptions(cache=tmp_path / "cache.sqlite", concurrency=AT_ONCE), set()

    def stop(index: int, outcome: object) -> None:
        told.add(index)
        if len(told) == 20:
            signal.raise_signal(signal.SIGINT)

    with serving(lambda seen: Play(body=reply().body, delay_s=0.01)) as server:
        backend = open_backend(f"vllm:{server.url}#m", options)
        with pytest.raises(KeyboardInterrupt):
            ask_all(backend, requests, on_reply=stop)
        assert 20 <= len(told) <= 20 + AT_ONCE
        wait_until(lambda: server.under_way == 0)
        sent = server.requests
        outcomes = ask_all(open_backend(f"vllm:{server.url}#m", options), requests)
    assert {i for i, outcome in enumerate(outcomes) if isinstance(outcome, Reply) and outcome.cached} >= told
    # On a busy machine the server may come to what the stopped batch had sent only after `sent` was read.
    missing = len(requests) - sum(isinstance(o, Reply) and o.cached for o in outcomes)
    assert missing <= server.requests - sent <= missing + AT_ONCE


def test_processes_share_one_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    with serving() as server:
        programs = [asking(server.url, cache, 60) for _ in range(2)]
        for program in programs:
            out, errors = program.communicate(timeout=300)
            assert (program.returncode, errors) == (0, "")
            assert out.rstrip().endswith(" 60")
        asked = server.requests
        backend = open_backend(f"vllm:{server.url}#m", BackendOptions(cache=cache))
        outcomes = ask_all(backend, [request(f"question {i}") for i in range(60)])
    assert all(isinstance(outcome, Reply) and outcome.cached for outcome in outcomes)
    assert server.requests == asked


def test_many_requests_with_images_under_random_failures(tmp_path: Path) -> None:
    number, paths = 300, [tmp_path / f"{k}.jpg" for k in range(30)]
    for k, path in enumerate(paths):
        path.write_bytes(picture(320, 240, shade=k))
    requests = [request(f"{i}?", ImagePart(paths[i % 30])) for i in range(number)]
    options = BackendOptions(cache=tmp_path / "cache.sqlite", concurrency=64)
    with serving() as server:
        server.behave = failing(0.05, seed=3, delay_s=0.005)
        outcomes = ask_all(open_backend(f"vllm:{server.url}#m", options), requests)
        assert all(isinstance(outcome, Reply) for outcome in outcomes)
        counts = server.counts()
        assert counts["requests"] >= number + 5  # some did fail
        assert (counts["answered"], counts["answered_again"]) == (number, 0)
        assert 16 < server.most_under_way <= 64
        ask_all(open_backend(f"vllm:{server.url}#m", options), requests)
        assert server.counts() == counts


def test_failures_do_not_keep_their_images() -> None:
    with serving(lambda seen: refusal(400)) as server:
        outcomes = ask_all(open_backend(f"vllm:{server.url}#m"), [request("x", ImagePart(picture()))])
    assert isinstance(outcomes[0], BackendError)
    assert (outcomes[0].__traceback__, outcomes[0].__context__, outcomes[0].__cause__) == (None, None, None)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if type(thing) is Call]


def test_memory_stays_flat(tmp_path: Path) -> None:
    # 120 requests of 1.6 MB each (image and data URL, besides the body) would be 200 MB if they were made at once.
    paths = [tmp_path / f"{k}.png" for k in range(120)]
    for k, path in enumerate(paths):
        path.write_bytes(picture(64, 48, "PNG", shade=k))
        os.truncate(path, 700_000)  # zeros behind the image
    requests = [request(f"{i}?", ImagePart(path)) for i, path in enumerate(paths)]
    with serving_apart() as server:
        backend = open_backend(f"vllm:{server.url}#m", BackendOptions(concurrency=8))
        ask_all(backend, requests[:40])
        gc.collect()
        early_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ask_all(backend, requests)
        assert server.counts()["requests"] == 160
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early_kb < 60_000
