"""Names that users of lmms-eval know: models of two stages, and the task files that are shipped for it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from datasets import Dataset

from tests.backends.server import serving
from tests.evaluation.benchmarks.mmsi_files import KINDS, Studio, drawing, png, row, write
from vgbench_gen.backends import azure
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.benchmarks import mmsi
from vgbench_gen.evaluation.benchmarks.mmsi.questions import TYPES
from vgbench_gen.evaluation.replies import read_header
from vgbench_gen.evaluation.runner import evaluate
from vgbench_gen.evaluation.visual_cot_models import expand_models, read_aliases
from vgbench_gen.text.render import find_templates_root

ROOT = Path(__file__).resolve().parents[3]
FOLDER = find_templates_root() / "lmms_eval" / "mmsi"
FIVE = ("attribute_appr", "attribute_meas", "motion_obj", "motion_cam", "msr")

# --- names of models


def ask(folder: Path, model: str, *more: str) -> int:
    return main(["eval", str(folder), "--benchmark", "mmsi", "--model", model, "--retries", "0", *more])


def test_the_shared_azure_instance_answers_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def token() -> str:
        return "token-of-a-user"

    folder, studio = write(tmp_path / "mmsi", [row(7)]), Studio(drawing)
    monkeypatch.setattr(azure, "_make_token_provider", lambda spec, trapi=False: token)
    with serving(studio) as server:
        monkeypatch.setenv("TRAPI_ENDPOINT", server.url.removesuffix("/v1"))
        monkeypatch.setenv("TRAPI_DEPLOYMENT", "mine")
        assert ask(folder, "azure_trapi_visual_cot") == 0
        paths = [seen.path.partition("?")[0] for seen in server.seen]
    assert paths == [
        "/openai/deployments/gpt-image-1/images/edits",
        "/openai/deployments/mine/chat/completions",
    ]
    assert studio.drawn[0][0] == row(7)["images"]
    assert studio.asked[0][0] == [*row(7)["images"], drawing(png(70))]
    (path,) = (folder / "replies").glob("*.jsonl")
    assert read_header(path).spec == "trapi:mine"


def test_a_chat_model_that_draws_does_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, studio = write(tmp_path / "mmsi", [row(7)]), Studio(drawing)
    with serving(studio) as server:
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-nothing")
        assert ask(folder, "nano_banana_visual_cot") == 0
        assert {seen.json["model"] for seen in server.seen} == {"google/gemini-2.5-flash-image"}
    assert (len(studio.drawn), len(studio.asked)) == (1, 1)
    assert studio.asked[0][0][-1] == drawing(png(70))


def test_names_that_cannot_be_taken_say_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unified:MODULE:FACTORY"):
        evaluate(write(tmp_path / "mmsi", [row(7)]), "bagel_visual_cot", benchmark="mmsi")
    with pytest.raises(ConfigError, match="alone"):
        expand_models(["azure_trapi_visual_cot", "openai:gpt-4o"])
    assert expand_models(["openai:gpt-4o"], "x:y") == expand_models(("openai:gpt-4o",), "x:y")
    assert expand_models(["azure_trapi_visual_cot", "openai:gpt-4o"], "x:y").image_model == "x:y"
    assert set(read_aliases()) == {"azure_trapi_visual_cot", "bagel_visual_cot", "nano_banana_visual_cot"}


UNIFIED = """
class Model:
    def answer(self, images, text):
        assert len(images) == 4 and images[-1] == images[0]
        return "``D``"

    def edit(self, images, prompt):
        assert len(images) == 3 and prompt.startswith("Create a visualization")
        return images[0]
"""


def test_a_local_unified_model_does_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny_unified.py").write_text(UNIFIED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    run = evaluate(
        write(tmp_path / "mmsi", [row(7)]), "unified:tiny_unified:Model", benchmark="mmsi", visual_cot="seed"
    )
    assert run.complete
    assert run.without == 0


# --- task files


class _Loader(yaml.SafeLoader):
    """Keeps `!function module.name` as the name."""


_Loader.add_constructor("!function", lambda _, node: f"!{node.value}")


def utils() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mmsi_utils", FOLDER / "utils.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def task_file(name: str) -> dict[str, Any]:
    found = yaml.load((FOLDER / f"{name}.yaml").read_text("utf-8"), _Loader)
    assert isinstance(found, dict)
    return found


def test_ten_task_files_are_shipped() -> None:
    names = {f"mmsi_{task}{stages}" for task in FIVE for stages in ("", "_visual_cot")}
    assert {path.stem for path in FOLDER.glob("*.yaml")} == names
    for name in names:
        assert task_file(name)["task"] == name
        assert task_file(name)["dataset_path"] == mmsi.REPOSITORY


@pytest.mark.parametrize("task", FIVE)
@pytest.mark.parametrize("stages", ["", "_visual_cot"])
def test_task_files_say_what_we_say(task: str, stages: str) -> None:
    found, module = task_file(f"mmsi_{task}{stages}"), utils()
    named = [str(value) for value in found.values()] + [str(found["metric_list"][0]["aggregation"])]
    functions = [name.removeprefix("!utils.") for name in named if name.startswith("!utils.")]
    assert len(functions) == 5
    assert all(callable(getattr(module, name)) for name in functions)
    assert functions[0] == task
    assert found["metric_list"][0]["metric"] == TYPES[task]
    given = found["lmms_eval_specific_kwargs"]["default"]
    prompts = tomllib.loads((find_templates_root() / "prompts/mmsi_seed.toml").read_text("utf-8"))["prompts"]
    assert f"{given['pre_prompt']}{{{{ question }}}}{given['post_prompt']}" == prompts[f"{task}{stages}"]
    drawings = tomllib.loads((find_templates_root() / "visual_cot/mmsi.toml").read_text("utf-8"))["sets"]["seed"]
    assert given.get("generation_prompt") == (drawings[task] if stages else None)
    assert found["output_type"] == ("generate_visual_cot" if stages else "generate_until")
    assert (found["generation_kwargs"]["max_new_tokens"], found["generation_kwargs"]["temperature"]) == (2048, 0)
    doc = row(list(TYPES).index(task))
    asked = getattr(module, str(found["doc_to_text"]).removeprefix("!utils."))(doc, given)
    assert asked.startswith("[GEN_PROMPT]Create a visualization" if stages else "Based on the visual content")
    assert set(module.msr_process_results(doc, ["``A``"])) == {found["metric_list"][0]["metric"], "average"}


def test_each_task_file_takes_its_own_rows() -> None:
    rows = [{name: value for name, value in row(k).items() if name != "images"} for k in range(33)]
    rows[21]["question_type"] = "attribute (appr.) "
    module, data = utils(), Dataset.from_list(rows)
    for task in FIVE:
        chosen = getattr(module, task)(data)
        kinds = {kind for kind in chosen["question_type"] if kind in KINDS}
        assert kinds == {TYPES[task]}
        assert len(chosen) == {"attribute_appr": 4, "msr": 2}.get(task, 3)


# --- in lmms-eval itself

PLAYED = """
import io
from lmms_eval.api.model import lmms
from lmms_eval.api.registry import register_model


@register_model("played")
class Played(lmms):
    def __init__(self, **more):
        super().__init__()

    def _asked(self, requests):
        for request in requests:
            text, settings, to_visual, doc_id, task, split = request.args
            yield text, settings, to_visual(self.task_dict[task][split][doc_id])

    def generate_until(self, requests):
        return [self._said(text, images) for text, _, images in self._asked(requests)]

    def generate_visual_cot(self, requests):
        from vgbench_gen.evaluation.visual_cot import split_combined

        found = []
        for text, _, images in self._asked(requests):
            prompt, question = split_combined(text)
            assert prompt.startswith("Create a visualization"), prompt
            found.append(self._said(question, images))
        return found

    def _said(self, text, images):
        print("ASKED", len(images), repr(text[:60]))
        return "``B``"

    def loglikelihood(self, requests):
        raise NotImplementedError

    def generate_until_multi_round(self, requests):
        raise NotImplementedError
"""


@pytest.mark.harness
@pytest.mark.timeout(900)
def test_task_files_run_in_lmms_eval(tmp_path: Path) -> None:
    environment = Path(os.environ.get("VGBENCH_HARNESSES", ROOT)) / ".venv-lmms-eval"
    if not (environment / ".made").exists():
        pytest.skip("no .venv-lmms-eval here; `make harnesses` makes it where the package can be had")
    # `datasets` takes a folder of the Hub's name below the working folder for the Hub's.
    write(tmp_path / "RunsenXu/MMSI-Bench", [row(k) for k in range(22)])
    (tmp_path / "RunsenXu/MMSI-Bench/MMSI_Bench.parquet").rename(tmp_path / "RunsenXu/MMSI-Bench/test.parquet")
    (tmp_path / "played.py").write_text(PLAYED)
    (tmp_path / "start.py").write_text(
        "import runpy, sys\n"
        "from lmms_eval.models import MODEL_REGISTRY_V2\n"
        "from lmms_eval.models.registry_v2 import ModelManifest\n"
        "MODEL_REGISTRY_V2.register_manifest(ModelManifest('played', simple_class_path='played.Played'))\n"
        "runpy.run_module('lmms_eval', run_name='__main__', alter_sys=True)\n"
    )
    names = [f"mmsi_msr{stages}" for stages in ("", "_visual_cot")]
    command = [str(environment / "bin/python"), str(ROOT / "tests/publish/harness_main.py"), str(tmp_path / "start.py")]
    command += ["--include_path", str(FOLDER), "--tasks", ",".join(names), "--model", "played", "--batch_size", "1"]
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    kept |= {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(
        [*command, "--log_samples", "--output_path", str(tmp_path / "logs")],
        env=kept, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    (results,) = (tmp_path / "logs").rglob("*_results.json")
    told = json.loads(results.read_bytes())["results"]
    right = [row(k)["answer"] == "B" for k in (10, 21)]
    for name in names:
        assert told[name]["MSR,none"] == pytest.approx(sum(right) / 2)
        (log,) = (tmp_path / "logs").rglob(f"*_samples_{name}.jsonl")
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        assert {line["average"]["question_id"] for line in lines} == {10, 21}
