"""Real OpenAI-compatible servers on loopback, each a process of its own environment (`make servers`)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 200.0  # they take some 12 s of processor time to come up, on a machine that may be busy
PROXY_KEY = "sk-loopback-6f1d0c55a2b94e7e"
SAID = "The answer is (B)."
PROXY_CONFIG = f"""\
model_list:
  - {{model_name: fine, litellm_params: {{model: openai/mock, api_key: none, mock_response: "{SAID}"}}}}
  - {{model_name: busy, litellm_params: {{model: openai/mock, api_key: none, mock_response: "litellm.RateLimitError"}}}}
  - model_name: broken
    litellm_params: {{model: openai/mock, api_key: none, mock_response: "litellm.InternalServerError"}}
  - model_name: small
    litellm_params: {{model: openai/mock, api_key: none, mock_response: "litellm.ContextWindowExceededError"}}
router_settings: {{num_retries: 0, disable_cooldowns: true}}
"""


def program(environment: str, name: str) -> Path:
    """A server's program, or a skipped test."""
    path = ROOT / environment / "bin" / name
    if not path.exists():
        pytest.skip(f"no {environment}/bin/{name} here; `make servers` installs it")
    return path


@contextmanager
def litellm_proxy(folder: Path) -> Iterator[str]:
    """LiteLLM's proxy with the models above, which answer by themselves; gives its root address."""
    config = folder / "proxy.yaml"
    config.write_text(PROXY_CONFIG)
    command = [str(program(".venv-litellm", "litellm")), "--config", str(config), "--telemetry", "False"]
    settings = {"LITELLM_MASTER_KEY": PROXY_KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with _running(command, folder, settings, "/health/liveliness") as url:
        yield url


@contextmanager
def transformers_server(model: Path, folder: Path) -> Iterator[str]:
    """transformers' own server with a model on the CPU; gives its root address."""
    (folder / "hf" / "hub").mkdir(parents=True)  # its list of models fails without one
    command = [str(program(".venv-servers", "transformers")), "serve", str(model), "--device", "cpu"]
    with _running(command, folder, {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}, "/health") as url:
        yield url


@contextmanager
def _running(command: Sequence[str], folder: Path, settings: Mapping[str, str], health: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    # Nothing of ours but the path: a key of the developer has no business there.
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), **settings}
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(process, url + health, log)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                assert answer.status == 200
                return
        except (urllib.error.URLError, OSError):
            tail = log.read_text("utf-8", "replace")[-2000:]
            assert process.poll() is None, f"the server ended:\n{tail}"
            assert time.monotonic() < end, f"the server does not come up:\n{tail}"
            time.sleep(0.2)
