"""Exported tasks run by the real packages on a played model: they ask what we ask and count what we count."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.backends.server import Play, Seen, Server, refusal, reply, serving
from tests.publish.exported import scripted, written
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.imported import import_log
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.saved import score_source
from vgbench_gen.evaluation.scoring import make_case, score
from vgbench_gen.publish.export import export

pytestmark = [pytest.mark.harness, pytest.mark.timeout(900)]  # both import for half a minute
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("VGBENCH_HARNESSES", ROOT))
FAILS = "Is it NaN?"  # the request that holds these words never gets a reply


def program(environment: str) -> Path:
    if not (ENVIRONMENTS / environment / ".made").exists():
        pytest.skip(f"no {environment} here; `make harnesses` makes it where the package can be had")
    return ENVIRONMENTS / environment / "bin" / "python"


def ran(environment: str, folder: Path, *arguments: str) -> str:
    """Output of a harness's own program, run in its environment without a network."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    settings = {
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_OFFLINE": "1",
        "LMUData": str(folder / "lmu"),
        "OPENAI_API_KEY": "x",
    }
    command = [str(program(environment)), str(ROOT / "tests/publish/harness_main.py"), *arguments]
    done = subprocess.run(command, env=kept | settings, cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr


def parts_of(seen: Seen) -> tuple[list[str], list[bytes]]:
    """Words and images of the user's turn, each in order."""
    (user,) = [message for message in seen.json["messages"] if message["role"] == "user"]
    content: list[dict[str, Any]] = (
        [{"type": "text", "text": user["content"]}] if isinstance(user["content"], str) else user["content"]
    )
    words = [part["text"] for part in content if part["type"] == "text"]
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    return words, [base64.b64decode(url.partition(",")[2]) for url in urls]


def play(seen: Seen) -> Play:
    words, images = parts_of(seen)
    text = "\n".join(words)
    return refusal(400, "this request always fails") if FAILS in text else reply(scripted(text, len(images)))


def walked(source: Source, prompts: str, system: bool) -> Iterator[tuple[Item, Asked, str]]:
    """(question, request, words of the user's turn); `system`: with the system prompt as the first of them."""
    options = AskOptions(prompt_set=prompts)
    settings = options.settings("")
    for item, asked in Questions(source, options).walk(settings):
        words = [settings.system if system else "", *(shown.tag for shown in asked.images), asked.text]
        yield item, asked, "\n".join(word for word in words if word)


def expected(source: Source, prompts: str, system: bool = False) -> dict[str, dict[str, Any]]:
    """What our own path says of what the played model says to every question."""
    found: dict[str, dict[str, Any]] = {}
    for item, asked, words in walked(source, prompts, system):
        if FAILS in words:
            found[item.id] = {"score": 0.0, "official": 0.0, "outcome": "failed"}
            continue
        scored = score(make_case(item), scripted(words, len(asked.images)))
        found[item.id] = {"score": scored.score, "official": scored.official.score, "outcome": scored.outcome}
    return found


def means(grades: Mapping[str, Mapping[str, Any]]) -> tuple[float, float, float]:
    """(sane, official, share failed) as `vgbench compare` counts."""
    there = [grade for grade in grades.values() if grade["outcome"] != "failed"]
    sane, official = (sum(grade[name] for grade in there) / len(there) for name in ("score", "official"))
    return sane, official, 1 - len(there) / len(grades)


def asked_alike(server: Server, source: Source, prompts: str, exact: bool, system: bool = False) -> None:
    """Every request held our words and images in our order; `exact`: images pixel for pixel."""
    seen = {}
    for request in server.seen:
        texts, images = parts_of(request)
        seen["\n".join(texts)] = images, request
    for _, asked, words in walked(source, prompts, system):
        images, request = seen[words]
        assert len(images) == len(asked.images)
        for sent, shown in zip(images, asked.images, strict=True):
            ours, theirs = (_pixels(data) for data in (source.image(shown.item, shown.k), sent))
            assert ours.shape == theirs.shape
            assert np.abs(ours - theirs).mean() < (1e-9 if exact else 8.0)
        assert request.json["max_tokens"] == 512
        assert request.json["temperature"] == 0


def _pixels(data: bytes | Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    with Image.open(data if isinstance(data, Path) else io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"), dtype=np.float64)


def saved_scores(source: Source, log: Path) -> dict[str, dict[str, Any]]:
    """Scores of the replies that came home from a log."""
    made = import_log(source, log)
    assert (made.taken, made.failed, made.ignored) == (8, 1, {})
    (saved,) = score_source(source, [made.spec])
    return {row.id: {"score": row.score, "official": row.official, "outcome": row.outcome} for row in saved.rows}


@pytest.mark.parametrize("way", ["chat", "simple"])
def test_lmms_eval(way: str, tmp_path: Path) -> None:
    program(".venv-lmms-eval")
    sources = {"paper": written(tmp_path / "set"), "final_line": written(tmp_path / "tagged")}
    if way == "simple":  # words and images apart: tags would all stand after the images
        del sources["final_line"]
    names = {}
    for prompts, source in sources.items():
        made = export(source, "lmms-eval", tmp_path / "tasks" / prompts, AskOptions(prompt_set=prompts))
        names[prompts] = next(made.path.glob("*.yaml")).stem
    with serving(play) as server:
        model = f"model=org/played,base_url={server.url},max_retries=1"
        arguments = [
            "--include_path",
            str(tmp_path / "tasks"),
            "--tasks",
            ",".join(names.values()),
            "--model",
            "openai",
        ]
        arguments += [
            "--model_args",
            model,
            "--batch_size",
            "1",
            "--log_samples",
            "--output_path",
            str(tmp_path / "logs"),
        ]
        ran(".venv-lmms-eval", tmp_path, "lmms_eval", *arguments, *(["--force_simple"] if way == "simple" else []))
        for prompts, source in sources.items():
            asked_alike(server, source, prompts, exact=True)
    (results,) = (tmp_path / "logs").rglob("*_results.json")
    told = json.loads(results.read_bytes())["results"]
    for prompts, source in sources.items():
        wanted, name = expected(source, prompts), names[prompts]
        found = tuple(told[name][f"{metric},none"] for metric in ("sane", "official", "failed"))
        assert found == pytest.approx(means(wanted), abs=1e-12)
        (log,) = (tmp_path / "logs").rglob(f"*_samples_{name}.jsonl")
        lines = [json.loads(line)["sane"] for line in log.read_text("utf-8").splitlines()]
        assert {line["id"]: {key: line[key] for key in wanted[line["id"]]} for line in lines} == wanted
        assert saved_scores(source, log) == wanted


@pytest.mark.parametrize("prompts", ["paper", "final_line"])
def test_vlmevalkit(prompts: str, tmp_path: Path) -> None:
    program(".venv-vlmevalkit")
    source = written(tmp_path / "set")
    folder = export(source, "vlmevalkit", tmp_path / "export", AskOptions(prompt_set=prompts)).path
    with serving(play) as server:
        arguments = [
            "--model",
            "played",
            "--base-url",
            server.url,
            "--work-dir",
            str(tmp_path / "outputs"),
            "--retry",
            "1",
        ]
        ran(".venv-vlmevalkit", tmp_path, str(folder / "run_vgbench.py"), *arguments)
    wanted = expected(source, prompts, system=True)
    (scores,) = (tmp_path / "outputs/played").glob("*/played_vgbench_set_score.json")
    told = json.loads(scores.read_bytes())
    assert (told["Overall"], told["official"], told["failed"]) == pytest.approx(means(wanted), abs=1e-12)
    grades = scores.with_name("played_vgbench_set_grades.jsonl").read_text("utf-8").splitlines()
    rows = {row["id"]: row for row in map(json.loads, grades)}
    assert {name: {key: rows[name][key] for key in one} for name, one in wanted.items()} == wanted
    assert saved_scores(source, scores.with_name("played_vgbench_set.xlsx")) == wanted
    asked_alike(server, source, prompts, exact=False, system=True)  # it sends JPEG
