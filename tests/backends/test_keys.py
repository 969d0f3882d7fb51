"""No key reaches a message, a log, a traceback or a file, whatever a server does with it."""

from __future__ import annotations

import base64
import copy
import os
import pickle
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.backends.fixtures import request
from tests.backends.server import Play, Seen, refusal, reply, serving
from vgbench_gen.backends import _keys
from vgbench_gen.backends._keys import Key, find_key, redact, strip_url
from vgbench_gen.backends.base import BackendError, Reply
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError

SENTINEL = "sk-sentinel/+4f9c2e77=key"
FORMS = (SENTINEL, quote(SENTINEL, safe=""), base64.b64encode(SENTINEL.encode()).decode().rstrip("="))


def echo(seen: Seen) -> Play:
    """Gives the key back in every place a server can."""
    key = seen.headers["authorization"].removeprefix("Bearer ")
    said = f"no access with {key}, {quote(key, safe='')} or {base64.b64encode(key.encode()).decode()}"
    plays = [
        refusal(400, said, param=key, code=key),
        refusal(500, said, headers={"x-echo": key}),
        Play(307, headers={"location": f"http://127.0.0.1:9/{key}"}),
        reply(said, system_fingerprint=said, model=key),
        reply(choices=[{"message": {"role": "assistant", "content": said, "reasoning_content": said}}]),
        Play(body=said.encode(), headers={"content-type": f"text/{key}"}),
        reply(error={"message": said}),
        refusal(401, said),
    ]
    return plays[seen.number % 8]


def test_a_key_shows_itself_only_when_asked() -> None:
    key = Key(SENTINEL, "HERE")
    assert key.reveal() == SENTINEL
    for shown in (repr(key), str(key), f"{key}", f"{key!r:>10}", repr({"key": key}), str([key])):
        assert SENTINEL not in shown
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled") as caught:
            leak(key)
        assert SENTINEL not in str(caught.value)
    assert [redact(f"<{form}>") for form in FORMS] == ["<[key]>"] * 3


@pytest.mark.parametrize("bad", ["", "  ", "two words-sentinel", "line\nbreak-sentinel", "schlüssel-sentinel"])
def test_what_no_header_takes_is_refused_without_showing_it(bad: str) -> None:
    with pytest.raises(ConfigError, match="HERE") as caught:
        Key(bad, "HERE")
    assert "sentinel" not in str(caught.value)


def test_keys_come_from_the_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("A_KEY", "from-environment")
    assert find_key(("NONE", "A_KEY"), None).reveal() == "from-environment"  # type: ignore[union-attr]
    assert find_key(("NONE",), None) is None
    path = tmp_path / "key"
    for text in (
        "from-the-file\n",
        "# mine\nexport A_KEY='from-the-file'\nB_KEY=other\n",
        'B=1\nA_KEY = "from-the-file"',
    ):
        path.write_text(text)
        path.chmod(0o600)
        assert find_key(("A_KEY",), path).reveal() == "from-the-file"  # type: ignore[union-attr]
    assert not caplog.records
    path.chmod(0o644)
    find_key(("A_KEY",), path)
    assert "chmod 600" in caplog.text
    for data in (b"B_KEY=sentinel-1", b"sentinel-1\nsentinel-2", b"\xff\xfesentinel", b"x" * 70_000, b""):
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=str(path)) as caught:
            find_key(("A_KEY",), path)
        assert "sentinel" not in "".join(traceback.format_exception(caught.value))


def test_addresses_lose_their_passwords() -> None:
    assert strip_url("https://user:pass-word-1@host:8/v1/?key=query-secret#x") == "https://host:8/v1"
    assert redact("pass-word-1 query-secret") == "[key] [key]"
    for bad in ("host/v1", "ftp://user:pass-word-2@host", "http://user:pass-word-2@host:port"):
        with pytest.raises(ConfigError) as caught:
            strip_url(bad)
        assert "pass-word-2" not in str(caught.value)


def test_no_reply_error_or_traceback_holds_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SENTINEL)
    with serving(echo) as server:
        for number in range(8):
            options = BackendOptions(base_url=server.url, cache=tmp_path / "cache.sqlite", retries=0)
            (outcome,) = ask_all(open_backend("openai:m", options), [request(f"echo {number}")])
            assert isinstance(outcome, Reply) == (number in (3, 4))
            shown = repr(outcome)
            if isinstance(outcome, BackendError):
                # The whole chain, as a program that lets the error through would print it.
                shown += "".join(traceback.format_exception(outcome)) + repr(outcome.args)
                assert outcome.__cause__ is None
            assert not [form for form in FORMS if form in shown]
            assert "[key]" in shown or number == 5, shown
        assert server.requests == 8


@pytest.mark.parametrize(("first", "as_json", "apart"), [(0, (), False), (3, (), True), (3, ("--json",), False)])
def test_the_program_does_not_show_the_key(
    tmp_path: Path, first: int, as_json: tuple[str, ...], apart: bool,
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes],
) -> None:  # fmt: skip
    """apart: in a process of its own, as users run it; the others share this one, in which no key is known yet."""
    monkeypatch.setattr(_keys, "_known", set())
    monkeypatch.setattr(_keys, "_pattern", None)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "key"
    path.write_text(f"OPENAI_API_KEY={SENTINEL}\n")
    with serving(lambda seen: echo(replace(seen, number=seen.number + first))) as server:
        arguments = [
            "models",
            "openai:m",
            "--retries",
            "1",
            *as_json,
            "--base-url",
            server.url,
            "--key-file",
            str(path),
        ]
        if apart:
            command = [sys.executable, "-m", "vgbench_gen.cli", *arguments]
            done = subprocess.run(command, capture_output=True, timeout=300, check=False, env=here())
            said, errors = done.stdout, done.stderr
        else:
            main(arguments)
            said, errors = capfdbinary.readouterr()
        assert server.requests >= (2 if first else 1)
        assert {seen.headers["authorization"] for seen in server.seen} == {f"Bearer {SENTINEL}"}
    assert b"[key]" in said + errors
    assert b"Traceback" not in errors
    assert not [form for form in FORMS if form.encode() in said + errors]
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["key"]


def here() -> dict[str, str]:
    """The environment, with this checkout found from any folder."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.parametrize("how", ["environment", "address"])
def test_nothing_a_program_writes_holds_the_key(tmp_path: Path, how: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    # Libraries told to log all they do, and Python told to show all it can.
    environment = os.environ | {"OPENAI_LOG": "debug", "PYTHONFAULTHANDLER": "1", "HOME": str(home)}
    program = (
        "import logging, sys; logging.basicConfig(level=0); from tests.backends import asker; "
        "sys.argv = ['asker', *sys.argv[1:]]; asker.main()"
    )
    with serving(lambda seen: echo(seen) if how != "address" else reply(seen.headers["authorization"])) as server:
        spec = f"vllm:{server.url}#m"
        if how == "address":
            spec = spec.replace("http://", f"http://user:{quote(SENTINEL, safe='')}@")
        else:
            environment["VLLM_API_KEY"] = SENTINEL
        command = [sys.executable, "-c", program, spec, str(home / "cache.sqlite"), "16"]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=300, check=False)
        assert server.requests >= 6
        assert SENTINEL.encode() in b"".join(
            base64.b64decode(value.removeprefix("Basic ")) if value.startswith("Basic ") else value.encode()
            for value in (seen.headers["authorization"] for seen in server.seen)
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (home / "cache.sqlite").stat().st_size > 0
    written = [done.stdout, done.stderr, *(path.read_bytes() for path in home.rglob("*") if path.is_file())]
    assert len(written) >= 3
    forms = [*FORMS, base64.b64encode(f"user:{SENTINEL}".encode()).decode()]
    assert not [form for form in forms for text in written if form.encode() in text]
    assert b"HTTP" in done.stderr  # the libraries did log
