"""Values of flags that no request can be sent with: one line that names them, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from vgbench_gen.backends.base import BackendError, Message, Settings
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["distractors", "SET", "--mix", "set-first=nan,sampled=1"], "found 'set-first=nan'"),
        (["distractors", "SET", "--seed", "9" * 23], "--seed"),
        (["eval", "SET", "--model", "scripted:FILE", "--seed", "9" * 23], "--seed"),
        (["eval", "SET", "--model", "baseline:random?seed=99999999999999999999"], "seed"),
        (["eval", "SET", "--model", "scripted:FILE", "--timeout", "inf"], "--timeout"),
        (["eval", "SET", "--model", "scripted:FILE", "--rpm", "1" + "0" * 400], "rpm"),
        (["models", "--check", "scripted:FILE", "--timeout", "inf"], "--timeout"),
        (["models", "--check", "baseline:truth"], "vgbench eval --model baseline:truth"),
        (["paraphrase", "--model", "scripted:FILE", "--bank", "BANK", "--timeout", "inf"], "--timeout"),
        (["paraphrase", "--model", "scripted:FILE", "--bank", "BANK", "--temperature", "nan"], "temperature"),
    ],
)
def test_a_flag_is_refused_in_one_line(command: list[str], told: str, tmp_path: Path, capsys: Capture) -> None:
    from tests.evaluation.test_saved import built

    script = tmp_path / "FILE"
    script.write_text('{"reply": "B", "times": 0}\n')
    places = {"SET": str(built(tmp_path / "set").folder), "BANK": str(tmp_path / "bank.toml")}
    assert main([places.get(part, part.replace("FILE", str(script))) for part in command]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_addresses_of_other_kinds_and_negative_usage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ftp://x: expected an address such as http"):
        open_backend("vllm:ftp://x#y")
    script = tmp_path / "s.jsonl"
    script.write_text('{"reply": "B", "usage": [-1, 2]}\n')
    with pytest.raises(ConfigError, match="usage"):
        open_backend(f"scripted:{script}")


async def _refusal(script: Path, options: BackendOptions) -> BackendError:
    async with open_backend(f"scripted:{script}", options) as backend:
        with pytest.raises(BackendError) as found:
            await backend.ask([Message.of("user", "Which?")], Settings(max_tokens=500))
        assert backend.tally.requests == 0
    return found.value


def test_a_request_that_no_bound_lets_through_is_said_at_once(tmp_path: Path) -> None:
    import asyncio

    script = tmp_path / "s.jsonl"
    script.write_text('{"reply": "B", "times": 0}\n')
    slow = asyncio.run(_refusal(script, BackendOptions(tpm=100)))
    assert (slow.kind, "--tpm lets 100 through" in str(slow)) == ("wrong_request", True)
    spent = asyncio.run(_refusal(script, BackendOptions(budget_tokens=100)))
    assert spent.kind == "budget"
    assert "cache" not in str(spent)
