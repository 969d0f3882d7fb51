"""`vgbench models` against a server that plays models of all kinds."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.backends.server import Play, Seen, Server, refusal, reply, serving
from vgbench_gen.cli.main import main
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.text.render import find_templates_root, load_words

KEY = "sk-cli-0c1d2e3f4a5b6c7d"
WORDS = load_words(find_templates_root() / "prompts" / "check.toml")
COLOURS = {"yellow": (0, 220, 255), "green": (40, 150, 0)}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def check(server: Server, *more: str) -> int:
    return main(["models", "--check", "openai:played", "--base-url", server.url, "--retries", "0", *more])


def good(seen: Seen) -> Play:
    """A model that does as it is told and looks at what it is shown."""
    asked = seen.json
    answers: dict[str, Callable[[], str]] = {
        WORDS["text.ask"]: lambda: "Harbour.",
        WORDS["image.ask"]: lambda: looked(seen),
        WORDS["json.ask"]: lambda: '{"place": "harbour"}',
        WORDS["draw.ask"]: lambda: hash_stably(str(asked["seed"] if asked["temperature"] else 0)),
    }
    return reply(answers[seen.text]())


def looked(seen: Seen) -> str:
    """The colours of both halves' middles, by name."""
    (image,) = (part for part in seen.json["messages"][0]["content"] if part["type"] == "image_url")
    data = base64.b64decode(image["image_url"]["url"].partition(",")[2])
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    height, width = pixels.shape[:2]
    middles = (pixels[height // 2, width // 4], pixels[height // 2, 3 * width // 4])
    names = [
        name for middle in middles for name, colour in COLOURS.items() if np.abs(middle - np.array(colour)).max() < 30
    ]
    return f"The left one is {names[0]}, the right one {names[1].upper()}."


def but(ask: str, play: Callable[[Seen], Play]) -> Callable[[Seen], Play]:
    return lambda seen: play(seen) if seen.text == WORDS[ask] else good(seen)


def test_a_good_model(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.behave = good
    assert check(server) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["model"] == "model        played  (openai:played; sent text and images, may give text)"
    assert re.fullmatch(r'text         ok       replied "Harbour\."  \(\d+\.\d\d s\)', lines["text"])
    assert 'ok       replied "The left one is yellow, the right one GREEN."  (' in lines["image"]
    assert lines["image"].endswith(" s; sent 320 x 200 px)")
    assert 'ok       replied "{' in lines["json"]
    assert lines["temperature"] == "temperature  two replies at 0 are the same"
    assert lines["used"] == "used         5 requests, 500 + 50 tokens; cost: not in the table of prices"
    assert "good" in lines
    assert server.requests == 5


def test_as_json_with_cost_and_a_smaller_picture(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.behave = good
    prices = tmp_path / "prices.toml"
    prices.write_text('[[price]]\nprovider = "openai"\nmodel = "played"\nprompt = 1.0\ncompletion = 10.0\n')
    assert check(server, "--json", "--long-side", "160", "--prices", str(prices)) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["good"] is True
    assert [(c["name"], c["verdict"], c["image_sizes_px"]) for c in record["checks"]] == [
        ("text", "ok", []), ("image", "ok", [[160, 100]]), ("json", "ok", [])
    ]  # fmt: skip
    assert record["cost_usd"] == pytest.approx((500 * 1.0 + 50 * 10.0) / 1e6)


@pytest.mark.parametrize("said", ["The left is green and the right yellow.", "red blue", "I cannot see images.", ""])
def test_a_model_that_does_not_see(said: str, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.behave = but("image.ask", lambda seen: reply(said))
    assert check(server) == 1
    out = capsys.readouterr().out
    told = f'replied "{said}"' if said else "(no text: the reply holds no words (it ended with stop))"
    assert f'image        wrong    {told}, expected "yellow green"  (' in out
    assert "failed: image. Fit for rewording" in out


def test_a_model_that_takes_no_images(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.behave = but("image.ask", lambda seen: refusal(400, "unknown variant image_url"))
    assert check(server) == 1
    assert "image        refused  openai:played at http://127" in capsys.readouterr().out
    assert check(server, "--no-image") == 0
    assert not any(b"image_url" in seen.body for seen in server.seen[-4:])


def test_a_server_without_a_mode_for_json(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    def no_mode(seen: Seen) -> Play:
        return refusal(400, "no response_format") if "response_format" in seen.json else good(seen)

    server.behave = no_mode
    assert check(server) == 0
    server.behave = but("json.ask", lambda seen: reply('Here it is: {"place": "harbour"}'))
    assert check(server) == 1
    assert 'json         wrong    replied "Here it is' in capsys.readouterr().out


def test_settings_that_are_not_honoured(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.behave = but("draw.ask", lambda seen: reply(f"name {seen.number}"))
    assert check(server) == 0
    out = capsys.readouterr().out
    assert "temperature  two replies at 0 differ\n" in out

    def fixed(seen: Seen) -> Play:
        if "temperature" in seen.json:
            return refusal(400, "no", code="unsupported_value", param="temperature")
        return good(seen) if seen.text != WORDS["draw.ask"] else reply(hash_stably(str(seen.json.get("seed"))))

    server.behave = fixed
    assert check(server) == 0
    assert "temperature  fixed by the model; none is sent" in capsys.readouterr().out


def test_a_long_reply_is_one_harmless_line(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.behave = but("text.ask", lambda seen: reply("\x1b[31m harbour\n" + "x" * 500))
    assert check(server) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("text "))
    assert "\x1b" not in line
    assert len(line) < 130


def test_what_cannot_be_asked(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.behave = lambda seen: refusal(401, f"Incorrect API key provided: {KEY}")
    assert check(server) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("vgbench: error: openai:played at http://127.0.0.1")
    assert "the key was refused (401)" in captured.err
    assert KEY not in captured.err + captured.out
    assert server.requests == 1
    monkeypatch.delenv("OPENAI_API_KEY")
    assert main(["models", "--check", "openai:gpt-4o"]) == 2
    assert "no key. Set OPENAI_API_KEY" in capsys.readouterr().err
    assert main(["models", "--check", "hf:somewhere", "--device", "abacus"]) == 2
    assert '--device: found "abacus"; expected' in capsys.readouterr().err


def test_who_can_be_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://somebody.example")
    monkeypatch.setenv("DEEPSEEK_API_KEY", " ")
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    # A provider is a row, whose last cell is folded or stands below.
    lines = {text.split()[0]: " ".join(text.split()) for text in re.split(r"\n(?! )", out.rstrip())}
    out = " ".join(out.split())
    assert {"azure", "deepseek", "hf", "ollama", "openai", "openrouter", "scripted", "vllm"} <= set(lines)
    assert "OPENAI_API_KEY (set)" in lines["openai"]
    assert "DEEPSEEK_API_KEY (not set)" in lines["deepseek"]
    assert "optional: VLLM_API_KEY (not set)" in lines["vllm"]
    assert lines["agent"].endswith("the key of its model")
    assert "extra transformers" in lines["hf"]
    assert "AZURE_OPENAI_ENDPOINT (set), OPENAI_API_VERSION (not set)" in out
    assert KEY not in out
    assert "somebody" not in out
    assert main(["models", "--json"]) == 0
    rows = {row["provider"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["openai"]["keys"] == {"OPENAI_API_KEY": True}
    assert rows["hf"]["extra"] == "transformers"
