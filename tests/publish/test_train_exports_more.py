"""Training exports for axolotl, unsloth, Megatron energon and verifiers, without these packages."""

from __future__ import annotations

import json
import runpy
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.publish.exported import items_of, written
from tests.store.examples import make_item, textured
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.publish.export import export, exports
from vgbench_gen.publish.exports import webdataset
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items
from vgbench_gen.training.families import FAMILIES
from vgbench_gen.training.lint import lint
from vgbench_gen.training.options import TrainOptions
from vgbench_gen.training.trainers import TRAINERS

TYPED = ("axolotl", "unsloth", "verifiers")
ALL = (*TYPED, "webdataset")
ASKED = AskOptions(prompt_set="final_line")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return written(tmp_path_factory.mktemp("built") / "set")


def made(source: Source, to: str, folder: Path, **train: Any) -> Path:
    return export(source, to, folder, ASKED, train=TrainOptions(**train)).path


def read_lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_shards(folder: Path) -> Iterator[tuple[Path, list[tarfile.TarInfo], dict[str, bytes]]]:
    """(shard, its members, their bytes) of every shard."""
    for path in sorted(folder.glob("data/*.tar")):
        with tarfile.open(path) as shard:
            members = shard.getmembers()
            files = {member.name: shard.extractfile(member) for member in members}
            yield path, members, {name: file.read() for name, file in files.items() if file is not None}


def read_rows(folder: Path, to: str) -> Iterator[tuple[Row, list[bytes]]]:
    """(row, images in their places) of an export."""
    if to != "webdataset":
        for row in read_lines(folder / "train.jsonl"):
            yield row, [(folder / part["image"]).read_bytes() for part in parts_of(row) if part["type"] == "image"]
        return
    stored = {name: data for _, _, files in read_shards(folder) for name, data in files.items()}
    for row in (json.loads(data) for name, data in stored.items() if name.endswith(".json")):
        yield row, [stored[part["image"]] for part in parts_of(row) if part["type"] == "image"]


def parts_of(row: Row) -> list[Row]:
    (question,) = (message["content"] for message in row["messages"] if message["role"] == "user")
    return list(question)


@pytest.mark.parametrize("to", ALL)
def test_rows_hold_every_question_with_its_images_in_their_places(source: Source, to: str, tmp_path: Path) -> None:
    assert exports[to].trains
    folder = made(source, to, tmp_path / to)
    rows = list(read_rows(folder, to))
    settings = ASKED.settings("")
    for (row, images), (item, asked) in zip(rows, Questions(source, ASKED).walk(settings), strict=True):
        assert row["id"] == item.id
        assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
        assert all(isinstance(message["content"], list) for message in row["messages"])  # one type in a column
        shown = [part["text"] if part["type"] == "text" else None for part in parts_of(row)]
        wanted = [words for image in asked.images for words in (*([image.tag] if image.tag else []), None)]
        assert shown == [*wanted, asked.text]
        assert images == [as_bytes(source.image(image.item, image.k)) for image in asked.images]
        assert row["messages"][0]["content"] == [{"type": "text", "text": settings.system}]
        assert row["messages"][2]["content"][0]["text"].endswith(item.answer)
        assert json.loads(row["solution"])["truth"] == item.answer
    assert len(rows) == 8


def as_bytes(image: bytes | Path) -> bytes:
    return image if isinstance(image, bytes) else image.read_bytes()


@pytest.mark.parametrize("to", ALL)
def test_readme_names_the_family_and_holds_no_slot(source: Source, to: str, tmp_path: Path) -> None:
    words = (made(source, to, tmp_path / to, family="qwen3-vl") / "README.md").read_text("utf-8")
    assert "written for qwen3-vl: train only models of that family" in words
    assert "{{" not in words


@pytest.mark.parametrize("to", TYPED)
def test_a_question_with_a_token_of_a_model_has_no_image_more(to: str, tmp_path: Path) -> None:
    media = MediaStore(tmp_path / "set" / "media")
    picture = media.put(encode_jpeg(textured(64, 64, 1)), "jpg")
    write_items(tmp_path / "set" / "items", [make_item(0, [picture], question="What is <|image_pad|>?")], media)
    folder = made(benchmarks["vgbench"].open(tmp_path / "set"), to, tmp_path / to)
    assert "<|" not in json.dumps(read_lines(folder / "train.jsonl")[0]["messages"])


def test_axolotl_settings_keep_all_rows(source: Source, tmp_path: Path) -> None:
    settings = yaml.safe_load((made(source, "axolotl", tmp_path / "a") / "axolotl.yaml").read_text("utf-8"))
    assert settings["datasets"] == [{"path": "train.jsonl", "type": "chat_template"}]
    assert settings["skip_prepare_dataset"] is True
    assert settings["sample_packing"] is False
    assert settings["chat_template"] == "qwen2_vl"
    assert "processor_kwargs" not in settings
    folder = made(source, "axolotl", tmp_path / "b", family="qwen3-vl", max_pixels=65536 * 4)
    settings = yaml.safe_load((folder / "axolotl.yaml").read_text("utf-8"))
    assert settings["base_model"] == "Qwen/Qwen3-VL-8B-Instruct"
    assert settings["processor_kwargs"] == {"max_pixels": 65536 * 4}


def test_unsloth_script_keeps_rows_whole_and_images_as_they_are(source: Source, tmp_path: Path) -> None:
    found = runpy.run_path(str(made(source, "unsloth", tmp_path / "u", family="internvl") / "train.py"))
    assert found["MODEL"] == "OpenGVLab/InternVL3-8B-hf"
    assert found["COLLATOR"]["resize"] == "max"
    assert found["COLLATOR"]["max_seq_length"] == 32768
    assert found["COLLATOR"]["train_on_responses_only"] is True


def test_unsloth_takes_no_limit_of_pixels(source: Source, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--max-pixels: found it with --to unsloth"):
        made(source, "unsloth", tmp_path / "u", family="qwen2.5-vl", max_pixels=100000)


def test_shards_are_the_same_bytes_again_sorted_and_bounded(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webdataset, "SHARD_BYTES", 30_000)
    first, second = (made(source, "webdataset", tmp_path / name) for name in "ab")
    files = {path.relative_to(first): path.read_bytes() for path in sorted(first.rglob("*")) if path.is_file()}
    assert files == {path.relative_to(second): path.read_bytes() for path in second.rglob("*") if path.is_file()}
    shards = list(read_shards(first))
    assert len(shards) > 1
    counts = {}
    for path, members, read in shards:
        names = [member.name for member in members]
        assert names == sorted(names)
        assert {(member.mtime, member.uid, member.gid, member.uname) for member in members} == {(0, 0, 0, "")}
        counts[path.name] = sum(name.endswith(".json") for name in names)
        assert counts[path.name] == 1 or sum(len(data) + 1024 for data in read.values()) <= 30_000
    meta = first / "data" / ".nv-meta"
    assert json.loads((meta / ".info.json").read_text())["shard_counts"] == counts
    assert sum(counts.values()) == 8
    assert yaml.safe_load((meta / "split.yaml").read_text())["split_parts"]["train"] == list(counts)
    assert yaml.safe_load((meta / "dataset.yaml").read_text())["__class__"] == "CrudeWebdataset"
    blend = yaml.safe_load((first / "metadataset.yaml").read_text())["splits"]["train"]
    assert blend == {"blend_epochized": [{"path": "data", "repetitions": 1}]}


def test_an_image_is_stored_once_and_in_the_shards_alone(source: Source, tmp_path: Path) -> None:
    folder = made(source, "webdataset", tmp_path / "w")
    assert not (folder / "images").exists()
    images = [data for _, _, files in read_shards(folder) for name, data in files.items() if name.endswith(".jpg")]
    assert len(images) == len(set(images)) == 6


@pytest.mark.parametrize("to", ALL)
def test_the_lint_finds_nothing(source: Source, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webdataset, "SHARD_BYTES", 30_000)  # images of other rows are in other shards as well
    folder = made(source, to, tmp_path / to)
    report = lint(folder, TRAINERS[to], FAMILIES["qwen2.5-vl"])
    assert report.fates == {"kept": 8}
    assert set(report.defects) == {"test_room"}  # rows of these tests say that they are for tests
    assert report.pictures == 6


def test_the_environment_pays_the_right_reply_alone(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With stand-ins for the classes of verifiers; the real ones are in tests/training."""
    folder = made(source, "verifiers", tmp_path / "v")
    (module,) = folder.glob("vgbench_*.py")
    assert f'name = "{module.stem}"' in (folder / "pyproject.toml").read_text("utf-8")
    for name, stand_in in stand_ins().items():
        monkeypatch.setitem(sys.modules, name, stand_in)
    monkeypatch.setattr(sys, "path", list(sys.path))
    found = runpy.run_path(str(module))
    taskset = found["GeometryTaskset"]()
    taskset.config = SimpleNamespace(task=None)
    tasks = list(taskset.load())
    assert [task.data.id for task in tasks] == [task.key for task in tasks] == [item.id for item in items_of(source)]
    for task, row in zip(tasks, read_lines(folder / "train.jsonl"), strict=True):
        kinds = ["image_url" if hasattr(part, "image_url") else "text" for part in task.data.prompt[0].content]
        assert kinds == [part["type"].replace("image", "image_url") for part in parts_of(row)]
        reply = row["messages"][-1]["content"][0]["text"]
        assert reply not in {getattr(part, "text", "") for part in task.data.prompt[0].content}
        assert [rewarded(task, words) for words in (reply, "", "no idea")] == [1.0, 0.0, 0.0]


def rewarded(task: Any, reply: str) -> float:
    scoring = task.score_reply(SimpleNamespace(last_reply=reply))
    with pytest.raises(StopIteration) as ended:
        scoring.send(None)
    return float(ended.value.value)


def stand_ins() -> dict[str, ModuleType]:
    """Modules with the names that an exported environment imports from verifiers."""

    class Record(SimpleNamespace):
        pass

    class Generic:
        def __init__(self, *given: Any) -> None:
            self.data = given[0] if given else None

        def __class_getitem__(cls, _: Any) -> type:
            return cls

    v1, null, package = (ModuleType(name) for name in ("verifiers.v1", "verifiers.v1.harnesses.null", "verifiers"))
    for name in ("TaskData", "UserMessage", "TextContentPart", "ImageUrlContentPart", "ImageUrlSource"):
        setattr(v1, name, type(name, (Record,), {}))
    for name in ("Task", "Taskset"):
        setattr(v1, name, type(name, (Generic,), {}))
    for name in ("State", "TaskConfig", "TasksetConfig", "Trace", "ContentPart"):
        setattr(v1, name, object)
    v1.reward = lambda function: function  # type: ignore[attr-defined]
    null.NullHarness = object  # type: ignore[attr-defined]
    harnesses = ModuleType("verifiers.v1.harnesses")
    package.v1 = v1  # type: ignore[attr-defined]
    return {module.__name__: module for module in (package, v1, harnesses, null)}
