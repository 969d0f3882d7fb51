"""Training exports for verl, EasyR1 and TRL, without these packages: one parquet file with the images inside."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Features, Image, List, Value

from tests.publish.exported import items_of, written
from tests.store.examples import make_item, textured
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.publish.export import export
from vgbench_gen.rewards.adapters import compute_score, compute_score_batch, reward
from vgbench_gen.store.encoding import GROUP_BYTES
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items
from vgbench_gen.training.options import TrainOptions

ALL = ("verl", "easyr1", "trl")
ASKED = AskOptions(prompt_set="final_line")
Row = dict[str, Any]
Parts = list[str | bytes]
_PEAK = """
import sys
from pathlib import Path
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.publish.export import export
peak = 0
def note(done, total):  # what is mapped of the dataset's files is not counted
    global peak
    words = Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()
    peak = max(peak, int(words[0]) >> 10)
export(benchmarks["vgbench"].open(Path(sys.argv[1])), "trl", Path(sys.argv[2]), AskOptions(), progress=note)
print(peak)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return written(tmp_path_factory.mktemp("built") / "set")


def made(source: Source, to: str, folder: Path, asked: AskOptions = ASKED, **train: Any) -> Path:
    return export(source, to, folder / to, asked, train=TrainOptions(**train)).path


def read_rows(folder: Path) -> list[Row]:
    return list(pq.read_table(folder / "data" / "train.parquet").to_pylist())


def write_set(folder: Path, pictures: list[bytes], **columns: Any) -> Source:
    """A dataset with one question about each of some pictures."""
    media = MediaStore(folder / "media")
    names = [media.put(picture, "jpg") for picture in pictures]
    write_items(folder / "items", [make_item(k, [name], **columns) for k, name in enumerate(names)], media)
    return benchmarks["vgbench"].open(folder)


def asked_parts(source: Source, asked: AskOptions = ASKED) -> Iterator[tuple[str, Parts]]:
    """(system prompt, words and images in order) of each question as `vgbench eval` asks it."""
    settings = asked.settings("")
    for item, one in Questions(source, asked).walk(settings):
        parts: Parts = []
        for shown in one.images:
            data = source.image(shown.item, shown.k)
            parts += [shown.tag] if shown.tag else []
            parts.append(data if isinstance(data, bytes) else data.read_bytes())
        yield settings.system, [*parts, one.text]
        assert item is one.item


def show_parts(row: Row, to: str) -> Parts:
    """Words and images in order of a row's prompt, its system prompt among the words."""
    images = iter(image["bytes"] for image in row["images"])
    if to == "trl":
        contents = [part for message in row["prompt"] for part in message["content"]]
        parts = [next(images) if part["type"] == "image" else part["text"] for part in contents]
    else:
        texts = [message["content"] for message in row["prompt"]] if to == "verl" else [row["problem"]]
        parts = []
        for text in texts:
            first, *others = text.split("<image>")
            parts += [first, *(part for other in others for part in (next(images), other))]
    assert next(images, None) is None
    return parts


def merge(parts: Parts) -> Parts:
    """The parts with neighbouring words joined."""
    merged: Parts = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        elif part:
            merged.append(part)
    return merged


@pytest.mark.parametrize("prompts", ["paper", "final_line"])
@pytest.mark.parametrize("to", ALL)
def test_a_row_shows_what_we_would_send(source: Source, to: str, prompts: str, tmp_path: Path) -> None:
    asked = AskOptions(prompt_set=prompts)
    rows = read_rows(made(source, to, tmp_path, asked))
    for row, (system, parts) in zip(rows, asked_parts(source, asked), strict=True):
        start = f"{system}\n\n" if to == "easyr1" and system else system
        assert merge(show_parts(row, to)) == merge([start, *parts])
    assert [row["id"] for row in rows] == [item.id for item in items_of(source)]


@pytest.mark.parametrize("to", ALL)
def test_datasets_decodes_the_images_and_no_row_has_other_types(source: Source, to: str, tmp_path: Path) -> None:
    folder = made(source, to, tmp_path)
    schema = pq.read_schema(folder / "data" / "train.parquet")
    features = Features.from_arrow_schema(schema)
    assert features["images"] == List(Image())
    assert features["id"] == Value("string")
    assert list(features) == schema.names
    # Beside the file lies nothing that `datasets` could take for rows; see `publish.training_rows`.
    assert [path.name for path in (folder / "data").iterdir()] == ["train.parquet"]
    assert not (folder / "images").exists()


def test_verl_finds_what_it_reads(source: Source, tmp_path: Path) -> None:
    folder = made(source, "verl", tmp_path)
    features = Features.from_arrow_schema(pq.read_schema(folder / "data" / "train.parquet"))
    assert features["reward_model"] == {"style": Value("string"), "ground_truth": Value("string")}
    for number, row in enumerate(read_rows(folder)):
        assert [message["role"] for message in row["prompt"]] == ["system", "user"]
        assert row["data_source"] == f"vgbench/{row['task']}"
        assert row["reward_model"]["style"] == "rule"
        assert row["extra_info"] == {"index": number, "id": row["id"]}


def test_trl_finds_typed_content_without_a_key_for_images(source: Source, tmp_path: Path) -> None:
    for row in read_rows(made(source, "trl", tmp_path)):
        assert [message["role"] for message in row["prompt"]] == ["system", "user"]
        parts = [part for message in row["prompt"] for part in message["content"]]
        assert {tuple(part) for part in parts} == {("type", "text")}
        assert all((part["text"] is None) is (part["type"] == "image") for part in parts)
        assert [message["role"] for message in row["completion"]] == ["assistant"]


def test_the_right_reply_earns_the_reward(source: Source, tmp_path: Path) -> None:
    rows = read_rows(made(source, "trl", tmp_path))
    assert reward([row["completion"] for row in rows], [row["solution"] for row in rows]) == [1.0] * 8
    replies = [row["completion"][0]["content"][0]["text"] for row in rows]
    for row, reply in zip(read_rows(made(source, "verl", tmp_path)), replies, strict=True):
        assert compute_score(row["data_source"], reply, row["reward_model"]["ground_truth"])["score"] == 1
    inputs = [
        {"response": reply, "ground_truth": row["answer"]}
        for row, reply in zip(read_rows(made(source, "easyr1", tmp_path)), replies, strict=True)
    ]
    assert [one["overall"] for one in compute_score_batch(inputs)] == [1.0] * 8


@pytest.mark.parametrize("to", ALL)
def test_words_of_a_question_are_no_marks(to: str, tmp_path: Path) -> None:
    asked = "What does <image> mean, and <video>, <|image_pad|>, 1 < 2?"
    built = write_set(tmp_path / "set", [encode_jpeg(textured(128, 112, 0))], question=asked)
    (row,) = read_rows(made(built, to, tmp_path))
    words = "".join(part for part in show_parts(row, to) if isinstance(part, str))
    assert "What does < image> mean, and < video>, < |image_pad|>, 1 < 2?" in words


@pytest.mark.parametrize("to", ALL)
def test_a_readme_has_no_open_slots(source: Source, to: str, tmp_path: Path) -> None:
    for family in ("", "qwen3-vl"):
        folder = made(source, to, tmp_path, family=family)
        readme = " ".join((folder / "README.md").read_text("utf-8").split())
        assert "{{" not in readme
        assert (f"written for {family}:" if family else "in pixels of the image files:") in readme
        assert "8 questions in `data/train.parquet`" in readme
        assert "at most 5 images" in readme
        # With a list of data files in its head, `datasets` loads what it once read of a folder of the same name.
        assert not readme.startswith("---")
        assert (folder / "vgbench_reward.py").is_file()
        assert (folder / "vgbench_scorer").is_dir()


@pytest.mark.parametrize("to", ["easyr1", "trl"])
def test_a_limit_of_pixels_is_told(source: Source, to: str, tmp_path: Path) -> None:
    readme = (made(source, to, tmp_path, family="qwen2.5-vl", max_pixels=1 << 20) / "README.md").read_text("utf-8")
    assert "1048576 pixels in the model's `preprocessor_config.json`" in readme


@pytest.mark.parametrize("to", ALL)
def test_the_lint_takes_the_limit_of_the_page(
    source: Source, to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made(source, to, tmp_path)
    main(["lint", str(folder)])
    said = capsys.readouterr().out
    assert f"8 rows, by {to}: 8 kept" in said
    assert ("; set data.max_prompt_length to that at least" in said) is (to != "trl")
    main(["lint", str(folder), "--max-tokens", "40"])
    assert "too_long: 8 rows" in capsys.readouterr().out


def test_verl_cannot_keep_a_limit_of_pixels(source: Source, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--max-pixels"):
        made(source, "verl", tmp_path, family="qwen2.5-vl", max_pixels=1 << 20)
    assert not (tmp_path / "verl").exists()


@pytest.mark.parametrize("to", ALL)
def test_an_image_of_many_rows_is_stored_once_in_a_group(to: str, tmp_path: Path) -> None:
    picture = encode_jpeg(textured(512, 384, 0))
    folder = made(write_set(tmp_path / "set", [picture] * 40), to, tmp_path)
    assert len(read_rows(folder)) == 40
    assert (folder / "data" / "train.parquet").stat().st_size < 3 * len(picture)


def test_rows_are_written_in_groups_and_memory_stays_flat(tmp_path: Path) -> None:
    peaks = []
    for rows in (60, 300):
        pictures = [encode_jpeg(textured(32, 32, k)) + bytes(500_000) for k in range(rows)]
        write_set(tmp_path / f"{rows}", pictures)
        command = [sys.executable, "-c", _PEAK, str(tmp_path / f"{rows}"), str(tmp_path / f"out{rows}")]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        groups = pq.ParquetFile(tmp_path / f"out{rows}" / "data" / "train.parquet").metadata.num_row_groups
        assert groups >= rows * 500_000 // (GROUP_BYTES + 500_000)
    assert peaks[1] < peaks[0] + 60  # MiB, for 120 MB of images more
    manifest = json.loads((tmp_path / "out300" / "export.json").read_text("utf-8"))
    assert manifest["questions"] == 300
