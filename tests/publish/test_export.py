"""What `vgbench export` writes: every question as we ask it, its images, and our scoring."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.publish.exported import REPLIES, items_of, written
from tests.store.examples import make_item
from vgbench_gen.backends.base import ImagePart, TextPart
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError, UnknownNameError
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import digest_question
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.scoring import SCORER_VERSION, make_case, score
from vgbench_gen.importers.published import read_published
from vgbench_gen.publish.export import Export, Job, export, exports
from vgbench_gen.publish.exports.spatialscore_json import _make_row
from vgbench_gen.quality.duplicates import find_repeats

Capture = pytest.CaptureFixture[str]
OURS = ("chat-jsonl", "lmms-eval", "spatialscore-json", "vlmevalkit")
NAME = "vgbench_set"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return written(tmp_path_factory.mktemp("built") / "set")


def made(source: Source, to: str, folder: Path, answers: bool = False, **options: Any) -> Path:
    return export(source, to, folder / to, AskOptions(**options), answers=answers).path


def told(folder: Path, to: str) -> list[dict[str, Any]]:
    """What the rows for the two harnesses carry: record, case, parts, system."""
    if to == "lmms-eval":
        return [json.loads(json.loads(line)["vgbench"]) for line in lines(folder / f"{NAME}.jsonl")]
    import csv

    with (folder / f"{NAME}.tsv").open(encoding="utf-8", newline="") as file:
        return [json.loads(row["vgbench"]) for row in csv.DictReader(file, delimiter="\t")]


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def asked_parts(source: Source, **options: Any) -> Iterator[list[tuple[str, str | bytes]]]:
    """What `vgbench eval` sends, question by question: ("text", words) and ("image", bytes)."""
    asking = AskOptions(**options)
    for _, asked in Questions(source, asking).walk(asking.settings("")):
        (message,) = asked.request(source.image).messages
        parts: list[tuple[str, str | bytes]] = []
        for part in message.parts:
            if isinstance(part, TextPart):
                parts.append(("text", part.text))
            elif isinstance(part, ImagePart):
                parts.append(("image", part.source if isinstance(part.source, bytes) else part.source.read_bytes()))
        yield parts


@pytest.mark.parametrize("words", ["paper", "final_line"])
@pytest.mark.parametrize("to", ["lmms-eval", "vlmevalkit", "chat-jsonl"])
def test_a_model_reads_what_we_would_send(source: Source, to: str, words: str, tmp_path: Path) -> None:
    folder = made(source, to, tmp_path, prompt_set=words)
    wanted = list(asked_parts(source, prompt_set=words))
    system = AskOptions(prompt_set=words).settings("").system
    assert bool(system) is (words == "final_line")
    found = []
    if to == "chat-jsonl":
        for line in lines(folder / f"{NAME}.jsonl"):
            messages = json.loads(line)["messages"]
            assert [one["role"] for one in messages] == (["system", "user"] if system else ["user"])
            assert not system or messages[0]["content"] == [{"type": "text", "text": system}]
            content = messages[-1]["content"]
            found.append([(p["type"].removesuffix("_url"), p.get("text") or p["image_url"]["url"]) for p in content])
    else:
        for row in told(folder, to):
            assert row["system"] == system
            found.append([(part["type"], part.get("text") or part["path"]) for part in row["parts"]])
    assert [
        [(kind, (folder / said).read_bytes() if kind == "image" else said) for kind, said in one] for one in found
    ] == wanted
    assert sum(kind == "image" for one in wanted for kind, _ in one) == 15


@pytest.mark.parametrize("to", OURS)
def test_a_folder_says_what_it_is(source: Source, to: str, tmp_path: Path) -> None:
    folder = made(source, to, tmp_path)
    manifest = json.loads((folder / "export.json").read_text("utf-8"))
    assert (manifest["to"], manifest["questions"], manifest["images"]) == (to, 8, 6)
    assert (manifest["dataset"], manifest["scorer_version"]) == (source.fingerprint, SCORER_VERSION)
    readme = (folder / "README.md").read_text("utf-8")
    assert NAME in readme
    assert "{{" not in readme
    assert len(list((folder / "images").rglob("*.jpg"))) == 6
    # Nothing of this machine: the folder is meant to be carried elsewhere.
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".jpg":
            assert str(tmp_path) not in path.read_text("utf-8"), path


def task_module(folder: Path) -> ModuleType:
    return loaded(folder / "vgbench_task.py")


def loaded(file: Path) -> ModuleType:
    """A module of an export, loaded as lmms-eval loads it, with the scorer that lies beside it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "vgbench_scorer"]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


class _Functions(yaml.SafeLoader):
    pass


_Functions.add_constructor("!function", lambda loader, node: ("function", str(node.value)))


def test_the_lmms_eval_task_is_whole(source: Source, tmp_path: Path) -> None:
    folder = made(source, "lmms-eval", tmp_path)
    module = task_module(folder)
    task = yaml.load((folder / f"{NAME}.yaml").read_text("utf-8"), _Functions)
    names = [
        value[1]
        for value in (*task.values(), *(m["aggregation"] for m in task["metric_list"]))
        if isinstance(value, tuple)
    ]
    assert len(names) > 8
    for name in names:
        file, _, function = name.partition(".")
        assert file == "vgbench_task"
        assert callable(getattr(module, function))
    assert (folder / task["dataset_kwargs"]["data_files"]["test"]).is_file()
    assert task["generation_kwargs"] == {"max_new_tokens": 512, "temperature": 0.0, "do_sample": False, "until": []}

    docs = [json.loads(line) for line in lines(folder / f"{NAME}.jsonl")]
    assert len({tuple(doc) for doc in docs}) == 1
    returned = {name for doc in docs for name in module.results(doc, ["B"])}
    assert returned == {metric["metric"] for metric in task["metric_list"]}
    for doc, parts in zip(docs, asked_parts(source), strict=True):
        (message,) = module.messages(doc)
        assert [part["type"] for part in message["content"]] == [kind for kind, _ in parts]
        pictures = [part["url"] for part in message["content"] if part["type"] == "image"]
        wanted = [Image.open(folder / path) for path in told_paths(doc)]
        assert len(pictures) == len(module.images(doc)) == len(wanted) > 0
        for shown, again, file in zip(pictures, module.images(doc), wanted, strict=True):
            assert np.array_equal(np.asarray(shown), np.asarray(file))
            assert np.array_equal(np.asarray(again), np.asarray(file))
        assert module.text(doc) == "\n".join(str(said) for kind, said in parts if kind == "text")


def told_paths(doc: dict[str, Any]) -> list[str]:
    return [part["path"] for part in json.loads(doc["vgbench"])["parts"] if part["type"] == "image"]


def test_the_exported_task_scores_as_we_do(source: Source, tmp_path: Path) -> None:
    folder = made(source, "lmms-eval", tmp_path)
    module = task_module(folder)
    docs = {doc["id"]: doc for doc in map(json.loads, lines(folder / f"{NAME}.jsonl"))}
    for item in items_of(source):
        right = module.results(docs[item.id], [item.answer])
        assert (right["sane"]["score"], right["sane"]["outcome"]) == (1.0, "right"), item.id
        assert right["sane"]["request_digest"] == digest_question(item)
        wrong = ["A", "B", "C", "D"][: len(item.options)] if item.options else ["Yes", "No"]
        wrong = ["4.81 m", "1.19 m"] if item.answer == "2.40 meters" else wrong
        wrong = ["1.71 meters", "42 cm"] if item.answer == "0.85 meters" else wrong
        for reply in wrong:
            if reply != item.answer:
                assert module.results(docs[item.id], [reply])["sane"]["outcome"] == "wrong", (item.id, reply)
        for reply in REPLIES:
            ours, theirs = score(make_case(item), reply), module.results(docs[item.id], [reply])
            assert (theirs["sane"]["score"], theirs["sane"]["outcome"]) == (ours.score, ours.outcome), (item.id, reply)
            assert (theirs["official"]["score"], theirs["sane"]["strict"]) == (ours.official.score, ours.strict)
    assert module.results(docs["item0003"], ["4.79 m"])["sane"]["score"] == 1.0

    replies = ["B", "I cannot determine that.", "[LMMS_EVAL_REQUEST_FAILED after 5 retries] no", ""]
    columns: dict[str, list[Any]] = {}
    for reply in replies:
        for name, value in module.results(docs["item0000"], [reply]).items():
            columns.setdefault(name, []).append(value)
    assert module.mean(columns["sane"]) == module.mean(columns["official"]) == pytest.approx(1 / 3)
    assert [module.share(columns[name]) for name in ("failed", "refused", "unreadable")] == [0.25, 0.25, 0.25]


class _Table(dict[str, Any]):
    """As much of VLMEvalKit as the exported class leans on."""

    INFER_FAIL_MARKERS = ("Failed to obtain answer",)

    def __init__(self, name: str) -> None:
        self.data = self.load_data(name)

    def load_data(self, name: str) -> Any:
        raise NotImplementedError


@pytest.fixture
def vlmeval(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stand-in for the package; the real one runs in `test_harnesses.py`."""
    modules = {
        name: ModuleType(name) for name in ("vlmeval", "vlmeval.dataset", "vlmeval.dataset.image_base", "vlmeval.smp")
    }
    vars(modules["vlmeval"])["dataset"] = modules["vlmeval.dataset"]
    vars(modules["vlmeval.dataset"]).update(DATASET_CLASSES=[], SUPPORTED_DATASETS=[])
    vars(modules["vlmeval.dataset.image_base"])["ImageBaseDataset"] = _Table
    vars(modules["vlmeval.smp"]).update(
        dump=lambda value, path: Path(path).write_text(json.dumps(value)),
        load=lambda path: json.loads(Path(path).read_bytes()),
        get_intermediate_file_path=lambda path, end, kind: f"{path.rpartition('.')[0]}{end}.{kind}",
    )
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules["vlmeval.dataset"]


def test_the_vlmevalkit_dataset_is_whole(source: Source, tmp_path: Path, vlmeval: ModuleType) -> None:
    folder = made(source, "vlmevalkit", tmp_path)
    module = loaded(folder / "vgbench_dataset.py")
    module.register()
    assert vlmeval.SUPPORTED_DATASETS == [NAME]
    dataset = vlmeval.DATASET_CLASSES[0](NAME)
    assert vlmeval.VGBench is type(dataset)
    assert list(dataset.data["index"]) == [item.id for item in items_of(source)]
    for line, parts in enumerate(asked_parts(source)):
        found = dataset_parts(dataset.build_prompt(line))
        assert found == dataset_parts(dataset.build_prompt(dataset.data.iloc[line]))
        assert [(kind, Path(said).read_bytes() if kind == "image" else said) for kind, said in found] == parts

    right = {item.id: item.answer for item in items_of(source)}
    assert evaluated(dataset, tmp_path, right)["Overall"] == 1.0
    told = evaluated(
        dataset,
        tmp_path,
        right | {"item0000": "A", "item0001": "Failed to obtain answer via API.", "item0002": float("nan")},
    )
    assert told["Overall"] == pytest.approx(5 / 7)
    assert (told["failed"], told["unreadable"]) == (1 / 8, 1 / 8)
    assert told["task_relative_pose"] == 1.0


def dataset_parts(message: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(part["type"], part["value"]) for part in message]


def evaluated(dataset: Any, folder: Path, replies: dict[str, Any]) -> dict[str, float]:
    """What the exported class says of a file of predictions."""
    file = folder / "m_set.json"
    file.write_text(json.dumps({"index": list(replies), "prediction": list(replies.values())}))
    found: dict[str, float] = dataset.evaluate(str(file))
    assert json.loads((folder / "m_set_score.json").read_bytes()) == found
    return found


def test_the_scorer_needs_nothing_of_ours(source: Source, tmp_path: Path) -> None:
    """Numpy apart, nothing that is installed here may be found."""
    folder = made(source, "vlmevalkit", tmp_path)
    cases = [row["case"] for row in told(folder, "vlmevalkit")]
    code = """
import sys, json
class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in {"numpy", "vgbench_scorer"} and top not in sys.stdlib_module_names:
            raise ImportError(name)
sys.meta_path.insert(0, Only())
sys.path.insert(0, sys.argv[1])
import vgbench_scorer
cases = json.loads(sys.stdin.read())
print(json.dumps([vgbench_scorer.grade(case, case["truth"])["score"] for case in cases]))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(folder)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [1.0] * 8
    assert not re.search(
        r"\bvgbench_gen\b", "".join(p.read_text("utf-8") for p in folder.glob("vgbench_scorer/**/*.py"))
    )


def test_the_scorer_carries_scoring_and_nothing_else(source: Source, tmp_path: Path) -> None:
    carried = made(source, "vlmevalkit", tmp_path) / "vgbench_scorer"
    names = {str(path.relative_to(carried)) for path in carried.rglob("*.*")}
    plain = {"__init__.py", "core/__init__.py", "core/errors.py", "core/lines.py", "core/types.py"}
    assert plain < names
    assert {name for name in names - plain if not name.startswith(("evaluation/", "rewards/"))} == set()


def test_spatialscore_rows_read_back_as_the_same_questions(source: Source, tmp_path: Path) -> None:
    folder = made(source, "spatialscore-json", tmp_path)
    rows = json.loads((folder / f"{NAME}.json").read_text("utf-8"))
    keys = "index category subcategory question_type input_modality question answer img_paths source index_origin"
    assert [set(row) for row in rows] == [{*keys.split(), "category_origin", "group_id", "pair_id"}] * 8
    questions, unread = read_published(folder / f"{NAME}.json")
    assert not unread
    for item, question, row in zip(items_of(source), questions, rows, strict=True):
        assert question.id == str(item.index)
        assert question.question == "\n".join(part for part in (item.question, item.context) if part)
        assert (question.form, row["answer"]) == (item.question_type, item.answer)
        if item.question_type == "multi-choice":
            assert question.options == item.options
            assert "ABCD"[question.truth] == item.answer
        assert [(folder / path).read_bytes() for path in question.images] == [
            Path(str(source.image(item, k))).read_bytes() for k in range(len(item.images))
        ]


@pytest.mark.parametrize(("group", "pair"), [("", "p"), ("g", ""), ("", "")])
def test_an_audit_of_spatialscore_rows_knows_questions_about_one_truth(group: str, pair: str, tmp_path: Path) -> None:
    rows = []
    asked_of = "Is it true that in the first image the {} mark is nearer than any other?"
    for k, question in enumerate((asked_of.format("red"), asked_of.format("blue"), "Is it so?", "Is it so?")):
        images = [["a.jpg", "b.jpg"], ["b.jpg", "a.jpg"]][k == 3]
        made = make_item(index=k, question=question, context="", images=images, question_type="judgment", options=(),
                         answer="Yes", group_id=group, pair_id=pair * (k > 1))  # fmt: skip
        asked: Any = SimpleNamespace(item=made, key=SimpleNamespace(prompt_set="paper"))
        rows.append(_make_row(SimpleNamespace(asked=asked, images=made.images), "VGBench"))  # type: ignore[arg-type]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    found = {name: len(ids) for name, ids in find_repeats(read_published(tmp_path / "rows.json")[0]).items()}
    assert (found["identical"], found["reworded"]) == (0.0 if pair else 1.0, 0.0 if group else 1.0)


def test_spatialscore_rows_are_asked_as_before(source: Source, tmp_path: Path) -> None:
    folder = made(source, "spatialscore-json", tmp_path)
    published = benchmarks["spatialscore"].open(folder / f"{NAME}.json")
    assert list(asked_parts(published)) == list(asked_parts(source))
    assert [item.answer for item in items_of(published)] == [item.answer for item in items_of(source)]


def test_answers_stand_in_the_messages_only_where_wanted(source: Source, tmp_path: Path) -> None:
    plain = made(source, "chat-jsonl", tmp_path)
    roles = {message["role"] for line in lines(plain / f"{NAME}.jsonl") for message in json.loads(line)["messages"]}
    assert roles == {"user"}
    trained = made(source, "chat-jsonl", tmp_path, answers=True)
    assert trained == plain
    last = [json.loads(line)["messages"][-1] for line in lines(trained / f"{NAME}.jsonl")]
    wanted = [item.answer for item in items_of(source)]
    wanted[3:5] = [rf"\scalar{{{length}}} \distance_unit{{meters}}" for length in ("2.40", "0.85")]  # as asked for
    assert last == [{"role": "assistant", "content": [{"type": "text", "text": text}]} for text in wanted]
    asked = made(source, "chat-jsonl", tmp_path, answers=True, prompt_set="final_line")
    rows = [json.loads(line) for line in lines(asked / f"{NAME}.jsonl")]
    said = [row["messages"][-1]["content"][0]["text"] for row in rows]
    assert said == [f"Answer: {row['answer']}" for row in rows]


def test_nothing_is_overwritten_but_an_export(source: Source, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("keep")
    with pytest.raises(DatasetError, match="files that no export wrote"):
        export(source, "chat-jsonl", out, AskOptions())
    with pytest.raises(UnknownNameError, match=r"no export is called 'lmms_eval'.*lmms-eval"):
        export(source, "lmms_eval", tmp_path / "x", AskOptions())
    with pytest.raises(ConfigError, match="--to lmms-eval; expected one of chat-jsonl"):
        export(source, "lmms-eval", tmp_path / "x", AskOptions(), answers=True)
    with pytest.raises(ConfigError, match="expected each question once"):
        export(source, "lmms-eval", tmp_path / "x", AskOptions(circular=True))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]

    class Broken(Export):
        def write(self, job: Job) -> str:
            job.text("half.txt", "half")
            raise OSError("disk full")

    good = made(source, "chat-jsonl", tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(exports._entries, "chat-jsonl", Broken())
        with pytest.raises(OSError, match="disk full"):
            export(source, "chat-jsonl", good, AskOptions())
    assert len(lines(good / f"{NAME}.jsonl")) == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chat-jsonl", "mine"]


def test_same_dataset_same_bytes(source: Source, tmp_path: Path) -> None:
    for to in OURS:
        one, other = (made(source, to, tmp_path / name) for name in ("one", "other"))
        names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
        assert names == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
        assert all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_the_verb(source: Source, tmp_path: Path, capsys: Capture) -> None:
    assert main(["export", str(source.folder), "--to", "chat-jsonl", "--limit", "3", "--json"]) == 0
    made_json = json.loads(capsys.readouterr().out)
    folder = Path(made_json["path"])
    assert (made_json["questions"], folder.name, folder.parent) == (3, "set-chat-jsonl", source.folder.parent)
    assert main(["export", str(source.folder), "--to", "chat-jsonl", "--tasks", "relative_pose"]) == 0
    assert "1 questions with 2 images" in capsys.readouterr().out
    assert main(["export", str(source.folder), "--to", "nothing"]) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--to", "lmms-eval", "--family", "0-1"], "--family"),
        (["--to", "chat-jsonl", "--rationale", "short"], "--rationale"),
        *((["--to", to, "--rationale", "short"], "--rationale") for to in ("verl", "easyr1", "verifiers")),
        (["--to", "tool-turns", "--family", "0-1"], "--family"),
        (["--to", "trl", "--max-pixels", "500000"], "--max-pixels"),
        (["--to", "trl", "--family", "0-1", "--max-pixels", "500000"], "max_pixels"),
    ],
)
def test_options_of_training_are_refused_where_they_do_nothing(
    source: Source, options: list[str], words: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["export", str(source.folder), *options, "--out", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
