"""No key reaches a message, a log, a traceback or a file, whatever a server does with it."""

from __future__ import annotations

import base64
import copy
import logging
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
from vgbench_gen.backends._keys import Key, find_key, guard_logs, redact, strip_url
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
        for encoding in ("utf-8", "utf-8-sig", "utf-16"):
            path.write_text(text, encoding, newline="\r\n")
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
            "--check",
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


LONG_KEY = "sk-proj-Zk3v9QmT2bXw8RfL5nYh7cJd1sGa4eUp6iW"


def wrap(text: str) -> str:
    return "\n    ".join(text[k : k + 15] for k in range(0, len(text), 15))


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "shown",
    [
        wrap(LONG_KEY),
        "\r".join(LONG_KEY),
        repr(wrap(LONG_KEY)),
        encode(f"Bearer {LONG_KEY}"),
        encode(f"Authorization: Bearer {LONG_KEY}\r\nHost: x"),
        base64.urlsafe_b64encode(f"u:{LONG_KEY}".encode()).decode(),
        base64.encodebytes(f"Authorization: Bearer {LONG_KEY}, once more {LONG_KEY}".encode()).decode(),
        LONG_KEY[:40],
        f"{LONG_KEY[:30]}…",
    ],
    ids=["wrapped", "one-a-line", "escaped", "header", "headers", "urlsafe", "mime", "cut", "shortened"],
)
def test_keys_are_covered_however_they_are_written(shown: str) -> None:
    Key(LONG_KEY, "HERE")
    left = redact(f"before {shown} behind").replace("[key]", "")
    joined = "".join(left.split()).replace("\\n", "")
    # Also of what base64 makes of it, wherever it begins.
    for text in (LONG_KEY, *(encode("x" * offset + LONG_KEY)[4:-4] for offset in range(3))):
        assert not [text[k : k + 8] for k in range(len(text) - 7) if text[k : k + 8] in joined]


@pytest.mark.parametrize("shown_by", ["library", "nobody"])
def test_a_library_that_logs_a_traceback_does_not_show_the_key(
    shown_by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a handler of its own, or by the one that Python has for those that nobody configured."""
    Key(LONG_KEY, "HERE")
    guard_logs("some.library")
    library, handler = logging.getLogger("some.library" if shown_by == "library" else "other"), logging.lastResort
    assert handler is not None
    library.propagate = False
    if shown_by == "library":
        handler = logging.StreamHandler(sys.stderr)
        library.addHandler(handler)
    try:
        raise ValueError(f"no access with {LONG_KEY}")
    except ValueError:
        library.exception("asked with %s", LONG_KEY)
    library.handlers.clear()
    told = capsys.readouterr().err
    assert "asked with [key]" in told
    assert "ValueError: no access with [key]" in told


@pytest.mark.parametrize("lead", range(240, 301, 5))
def test_a_key_is_covered_before_a_message_is_cut(lead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", LONG_KEY)
    with serving(lambda seen: refusal(400, "x" * lead + f" {LONG_KEY} was refused")) as server:
        options = BackendOptions(base_url=server.url, retries=0)
        (outcome,) = ask_all(open_backend("openai:m", options), [request(f"cut {lead}")])
    assert isinstance(outcome, BackendError)
    assert LONG_KEY[:6] not in outcome.message


def test_covering_leaves_valid_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text's line break and the key's first letter look like one escape in JSON."""
    key = "nine-lives-of-a-key"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with serving(lambda seen: reply(f"the key:\n{key[1:]} and {key}\n")) as server:
        options = BackendOptions(base_url=server.url, retries=0)
        (outcome,) = ask_all(open_backend("openai:m", options), [request("json")])
    assert isinstance(outcome, Reply)
    assert outcome.text == f"the key:\n{key[1:]} and [key]\n"


@pytest.mark.parametrize(
    "part", ["sk-4f9c2e77a1", "0b5f9a52-77aa-4c1e-9d55-3f7a1c2b9e10", "Zk3v9QmT2bXw8RfL5nYh", "token_abcdef123"]
)
def test_keys_in_the_path_of_an_address_are_covered(part: str, tmp_path: Path) -> None:
    one, other = strip_url(f"https://host/{part}/v1"), strip_url(f"https://host/{part}9/v1")
    assert part not in one
    assert one != other  # replies of different addresses stay apart
    assert part not in redact(f"POST https://host/{part}/v1/chat/completions")
    with serving(lambda seen: refusal(404, f"no such path: {seen.path}")) as server:
        start = server.url.removesuffix("/v1")
        (outcome,) = ask_all(open_backend(f"vllm:{start}/{part}/v1#m", BackendOptions(retries=0)), [request("path")])
        assert server.seen[0].path == f"/{part}/v1/chat/completions"
    assert part not in repr(outcome)
    assert "404" in repr(outcome)


def test_usual_paths_of_addresses_are_shown() -> None:
    for path in (
        "v1",
        "openai/deployments/gpt-4o-2024-11-20",
        "gcr/shared",
        "inference/v1beta/models",
        "compatible-mode/v1",
    ):
        assert strip_url(f"https://host/{path}") == f"https://host/{path}"


@pytest.mark.parametrize("sign", ["\n", "\r\nX: y", "\t", "\x00", "\x1b[2J", "\x7f", "\u2028", " ", "\udcff"])
@pytest.mark.parametrize("place", ["http://{}127.0.0.1:1/v1", "http://127.0.0.1:1/{}v1", "http://127.0.0.1:1/v1{}"])
def test_an_address_with_a_character_that_none_holds_is_refused_in_one_line(place: str, sign: str) -> None:
    url = place.format(sign)
    for spec, options in ((f"vllm:{url}#m", BackendOptions()), ("vllm:m", BackendOptions(base_url=url))):
        with pytest.raises(ConfigError, match="expected an address") as caught:
            open_backend(spec, options)
        assert str(caught.value).isprintable()
        assert ("--base-url" in str(caught.value)) == bool(options.base_url)


@pytest.mark.parametrize(
    "bad", ["http://h:99999/v1", "http://[::1/v1", "http://1.2.3.999/v1", "http:///v1", "HTTP://:80"]
)
def test_an_address_that_the_client_refuses_is_refused_before(bad: str) -> None:
    with pytest.raises(ConfigError, match="THERE"):
        strip_url(bad, "THERE")
