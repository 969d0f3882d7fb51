"""Training files for ms-swift and LLaMA-Factory: a mark for each image, and settings with which every row is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.publish.exported import items_of, written
from tests.store.examples import make_item, textured
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.publish.export import Job, export, exports
from vgbench_gen.publish.training_rows import protect
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items
from vgbench_gen.training.options import TrainOptions

BOTH = ("ms-swift", "llama-factory")
NAME = "vgbench_set"
COLUMNS = {
    "id": str,
    "task": str,
    "question_type": str,
    "scene": str,
    "split": str,
    "licence": str,
    "messages": list,
    "images": list,
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return written(tmp_path_factory.mktemp("built") / "set")


def made(source: Source, to: str, folder: Path, prompts: str = "final_line", **train: Any) -> Path:
    return export(source, to, folder / to, AskOptions(prompt_set=prompts), train=TrainOptions(**train)).path


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{NAME}.jsonl").read_text("utf-8").split("\n")[:-1]]


@pytest.mark.parametrize("to", BOTH)
def test_rows_have_a_mark_for_each_image_and_one_type_a_column(source: Source, to: str, tmp_path: Path) -> None:
    folder = made(source, to, tmp_path)
    rows, items = rows_of(folder), items_of(source)
    types = COLUMNS | ({"solution": str} if to == "ms-swift" else {})
    assert [row["id"] for row in rows] == [item.id for item in items]
    for row, item in zip(rows, items, strict=True):
        assert {name: type(value) for name, value in row.items()} == types
        assert [one["role"] for one in row["messages"]] == ["system", "user", "assistant"]
        system, user, assistant = (one["content"] for one in row["messages"])
        assert (system.count("<image>"), user.count("<image>"), assistant.count("<image>")) == (0, len(item.images), 0)
        assert len(row["images"]) == len(item.images)
        for path in row["images"]:
            assert path.startswith("images/")
            assert ".." not in path
            assert (folder / path).is_file()
        assert item.question in user
        assert item.answer.partition(" ")[0] in assistant
    # Each image follows its own number, and the question follows all of them.
    (five,) = [row["messages"][1]["content"] for row in rows if len(row["images"]) == 5]
    assert five.startswith("".join(f"Image {k}:<image>" for k in range(1, 6)) + "Which image is the warped one?")


@pytest.mark.parametrize("to", BOTH)
def test_a_prompt_set_without_a_system_prompt_has_two_turns(source: Source, to: str, tmp_path: Path) -> None:
    rows = rows_of(made(source, to, tmp_path, prompts="paper"))
    assert {tuple(one["role"] for one in row["messages"]) for row in rows} == {("user", "assistant")}


def test_ms_swift_has_its_reward_and_what_it_takes(source: Source, tmp_path: Path) -> None:
    for needed in ("vgbench_reward.py", "vgbench_scorer/rewards/adapters.py"):
        assert (made(source, "ms-swift", tmp_path) / needed).is_file()
    solutions = [json.loads(row["solution"]) for row in rows_of(made(source, "ms-swift", tmp_path))]
    assert [(one["question_type"], one["truth"]) for one in solutions] == [
        (item.question_type, item.answer) for item in items_of(source)
    ]


@pytest.mark.parametrize("to", BOTH)
def test_words_of_a_question_are_no_marks(to: str, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    media = MediaStore(folder / "media")
    pictures = [media.put(encode_jpeg(textured(128, 112, k)), "jpg") for k in range(2)]
    asked = "What does <image> mean, and </img>, <video>, <|image_pad|> and 1 < 2 <b>?"
    item = make_item(0, pictures, question=asked, options=("<image>", "<audio>", "a <b>", "<|im_end|>"), answer="A")
    write_items(folder / "items", [item], media)
    (row,) = rows_of(made(benchmarks["vgbench"].open(folder), to, tmp_path))
    user = row["messages"][1]["content"]
    assert user.count("<image>") == 2
    assert "What does < image> mean, and < /img>, < video>, < |image_pad|> and 1 < 2 <b>?" in user
    assert "A: < image>\nB: < audio>\nC: a <b>\nD: < |im_end|>" in user
    assert protect(protect(asked)) == protect(asked)


@pytest.mark.parametrize("to", BOTH)
def test_a_readme_has_no_open_slots_and_names_the_family(source: Source, to: str, tmp_path: Path) -> None:
    for family in ("", "qwen3-vl"):
        readme = (made(source, to, tmp_path, family=family) / "README.md").read_text("utf-8")
        assert "{{" not in readme
        assert (f"written for {family}:" if family else "in pixels of the image files:") in readme
        assert f"8 questions in `{NAME}.jsonl`" in readme


def test_llama_factory_finds_the_columns_and_cuts_nothing(source: Source, tmp_path: Path) -> None:
    folder = made(source, "llama-factory", tmp_path, family="qwen3-vl")
    settings = yaml.safe_load((folder / "train.yaml").read_text("utf-8"))
    info = json.loads((folder / "dataset_info.json").read_text("utf-8"))[settings["dataset"]]
    assert (folder / settings["dataset_dir"] / info["file_name"]).is_file()
    assert set(info["columns"].values()) <= set(rows_of(folder)[0])
    assert {info["tags"][f"{role}_tag"] for role in ("system", "user", "assistant")} == {"system", "user", "assistant"}
    assert settings["template"] == "qwen3_vl_nothink"
    assert settings["cutoff_len"] == 131072
    assert settings["image_max_pixels"] >= 4096 * 4096  # the processor's own limit
    assert isinstance(settings["learning_rate"], float)


@pytest.mark.parametrize(
    ("train", "limits"),
    [
        ({}, ("4", "16384")),
        ({"family": "qwen3-vl"}, ("64", "16384")),
        ({"family": "qwen2.5-vl", "max_pixels": 784 * 1280}, ("4", "1280")),
        ({"family": "internvl"}, ()),
    ],
)
def test_ms_swift_resizes_as_the_family(
    source: Source, train: dict[str, Any], limits: tuple[str, ...], tmp_path: Path
) -> None:
    folder = made(source, "ms-swift", tmp_path, **train)
    for name in ("sft.yaml", "grpo.yaml"):
        settings = yaml.safe_load((folder / name).read_text("utf-8"))
        assert tuple(settings["ENV"].values()) == limits
        assert settings["strict"] is True
        assert settings["dataset"] == [f"{NAME}.jsonl"]
        assert ("reward_funcs" in settings) is (name == "grpo.yaml")


@pytest.mark.parametrize(
    ("to", "max_pixels", "said"), [("llama-factory", 784 * 1280, "one of"), ("ms-swift", 1 << 20, "1048208")]
)
def test_a_limit_that_a_trainer_cannot_keep_is_refused(
    source: Source, to: str, max_pixels: int, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        made(source, to, tmp_path, family="qwen2.5-vl", max_pixels=max_pixels)
    assert not (tmp_path / to).exists()


@pytest.mark.parametrize("to", BOTH)
def test_rows_are_written_as_they_come(
    source: Source, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, written_before = tmp_path / f"{NAME}.jsonl", []
    whole = Job.rows

    def watched(job: Job) -> Iterator[Any]:
        for row in whole(job):
            yield row
            written_before.append(file.stat().st_size if file.exists() else -1)

    monkeypatch.setattr(Job, "rows", watched)
    # Without a buffer of more than a line, each row that was taken is in the file before the next one is asked for.
    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *mode, **kind: opened(path, *mode, **{"buffering": 1} | kind))
    exports[to].write(Job(source, AskOptions(prompt_set="final_line"), tmp_path, answers=True))
    assert written_before == sorted(set(written_before))
    assert len(written_before) == 8
    assert written_before[0] > 0
