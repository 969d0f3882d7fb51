"""Rewording by a model of random weights behind a real server: every check refuses it, and nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.real_servers import transformers_server
from tests.backends.tiny_vlm import make_tiny_vlm
from vgbench_gen.backends.base import Settings
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.text.bank import Bank
from vgbench_gen.text.paraphrase.rounds import Asker
from vgbench_gen.text.paraphrase.templates import choose_cells, paraphrase

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


def test_nonsense_of_a_real_model_costs_a_fallback(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="no torch here; `make servers` makes the environment for these tests")
    model = make_tiny_vlm(tmp_path / "tiny")
    bank = Bank(tmp_path / "bank.toml")
    with transformers_server(model, tmp_path) as url:
        backend = open_backend(f"vllm:{url}/v1#{model}", BackendOptions(retries=0, concurrency=2))
        asker = Asker(backend, backend, 1, Settings(temperature=0.0, max_tokens=16), retries=1)
        filled, report = paraphrase(asker, bank, choose_cells(["point_tracking"], ["judgment"]))
    total = report.total
    assert (filled.entries, report.stopped) == ((), "")
    assert (total.texts, total.reworded, total.accepted, total.judged) == (6, 0, 0, 0)
    # Each of the six was asked twice; what came was no JSON, or the server refused the length.
    assert total.rounds + total.failed.total() >= 6
    assert total.refused["json"] + total.refused["shape"] == total.rounds
    assert not bank.path.exists()
