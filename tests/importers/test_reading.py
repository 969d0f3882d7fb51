"""Words of foreign questions, their options' places, and how images and answers become rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.importers.source_files import photo
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation.prompting import find_prompt_set, make_full_text, rotate_options
from vgbench_gen.importers._files import Place, RawRow, RowError, table_rows
from vgbench_gen.importers._reading import ImportReport, make_item, read_source
from vgbench_gen.importers._words import QuestionWords, find_options, lettered_words, parse_measure, plain_words
from vgbench_gen.importers.base import (
    Importer,
    Part,
    Record,
    ScoreCategory,
    SourceRow,
    read_letter,
    read_origin_index,
    read_yes_no,
)
from vgbench_gen.store.media import MediaStore

COLOURS = "What colour?\nA: Red\nB: Blue\nPlease answer with the letter."
INLINE = "Where to? Options: A. left, then right, B. back, C. on"
MATRICES = "Which one?\nA: 1 0\n0 1\n\nB: 2 0\n0 2\n\nCompute the matrix."


@pytest.mark.parametrize(
    ("text", "lead", "options", "tail"),
    [
        (COLOURS, "What colour?", ("Red", "Blue"), "Please answer with the letter."),
        (INLINE, "Where to?", ("left, then right", "back", "on"), ""),
        (MATRICES, "Which one?", ("1 0\n0 1", "2 0\n0 2"), "Compute the matrix."),
        ("Open?\n(a) Yes (b) No", "Open?", ("Yes", "No"), ""),
        ("Select from the following options.\n(A) x\n(B) y", "", ("x", "y"), ""),
        ("No options here, only (A).", "No options here, only (A).", (), ""),
    ],
)
def test_options_are_found_with_their_places(text: str, lead: str, options: tuple[str, ...], tail: str) -> None:
    words = find_options(text)
    assert (words.lead, words.options, words.tail) == (lead, options, tail)
    assert tuple(text[start:end] for start, end in words.options_at) == options


def test_a_question_put_together_is_found_again() -> None:
    words = lettered_words("Which?", ["one", "two", "three"])
    assert words.text == "Which?\n(A) one\n(B) two\n(C) three"
    assert find_options(words.text) == words


def asked(words: QuestionWords, answer: str = "B") -> SourceRow:
    return SourceRow(
        5, "multi-choice" if words.options else "open-ended", words, answer, (), "Count", ScoreCategory.COUNTING
    )


@pytest.mark.parametrize("text", [COLOURS, INLINE, MATRICES])
def test_a_model_is_asked_word_for_word_and_in_turned_order_at_the_same_places(text: str) -> None:
    item = make_item(asked(find_options(text)), name="X", benchmark="X", source="X", images=("a.jpg",), index=0)
    words = find_prompt_set("paper")
    assert make_full_text(item, words) == text
    turned = rotate_options(item, 1)
    assert turned.options == item.options[1:] + item.options[:1]
    assert turned.answer == "A"
    again = find_options(make_full_text(turned, words))
    assert (again.options, again.lead, again.tail) == (turned.options, item.question, item.context)


def test_text_as_index_of_the_source_is_kept() -> None:
    row = replace(asked(plain_words("How many?"), "3"), index="NF7XUVPP-flip", group="NF7XUVPP", pair="NF7XUVPP")
    item = make_item(row, name="3DSRBench", benchmark="3DSRBench", source="3DSRBench", images=("a.jpg",), index=0)
    assert (item.index_origin, read_origin_index(item)) == (-1, "NF7XUVPP-flip")
    assert (item.id, item.group_id) == ("3DSRBench-NF7XUVPP-flip", "3DSRBench-NF7XUVPP")


@pytest.mark.parametrize(
    ("answer", "letter"), [("(b)", "B"), ("B", "B"), ("b.", "B"), ("Blue", "B"), (" blue ", "B"), ("A", "A")]
)
def test_letters_of_keys(answer: str, letter: str) -> None:
    assert read_letter(answer, ["Red", "Blue"]) == letter


@pytest.mark.parametrize("answer", ["C", "", "Green", "AB"])
def test_keys_that_are_no_option_are_refused(answer: str) -> None:
    with pytest.raises(RowError):
        read_letter(answer, ["Red", "Blue"])


def test_yes_and_no_of_keys() -> None:
    assert [read_yes_no(key) for key in ("yes.", "True", "1", "NO", "false", "0")] == ["Yes"] * 3 + ["No"] * 3
    with pytest.raises(RowError):
        read_yes_no("maybe")


@pytest.mark.parametrize(
    ("answer", "value", "unit"),
    [("1.51 meters", 1.51, "meters"), ("3", 3.0, ""), ("1,200 cm", 1200.0, "cm"), (".5 m", 0.5, "m")],
)
def test_numbers_of_keys(answer: str, value: float, unit: str) -> None:
    assert parse_measure(answer) == (value, unit)


class GivenRow(RawRow):
    index: int
    image: Any = b""


class Given(Importer[GivenRow]):
    """Rows from memory: (index, image)."""

    title = "Given"
    benchmark = "Given"
    columns = GivenRow
    parts: ClassVar[Mapping[str, Part]] = {"all": Part(None)}

    def __init__(self, rows: list[tuple[int, bytes | Path]]) -> None:
        self.rows = rows

    def records(self, place: Place) -> Iterator[Record]:
        """As `Importer.records`."""
        for index, image in self.rows:
            yield Record(f"row {index}", "all", {"index": index, "image": image}, 0, 0)

    def row(self, fields: GivenRow, record: Record, place: Place) -> SourceRow:
        """As `Importer.row`."""
        return replace(asked(plain_words("How many?"), "3"), index=fields.index, images=[fields.image])


def test_images_are_kept_byte_for_byte_or_as_png_and_broken_ones_counted(tmp_path: Path) -> None:
    jpeg, webp, cut = photo("a"), photo("b", form="WEBP"), photo("c")[:-200]
    rows: list[tuple[int, bytes | Path]] = [
        (0, jpeg), (1, webp), (2, cut), (3, b"GIF89a no image"), (4, tmp_path / "gone.jpg"), (0, jpeg),
    ]  # fmt: skip
    media = MediaStore(tmp_path / "media")
    report = ImportReport("Given")
    items = list(read_source(Given(rows), Place(tmp_path), media, report, published=False))
    assert [item.id for item in items] == ["Given-0", "Given-1", "Given-0-2"]  # one id twice is told apart
    assert media.get(items[0].images[0]) == jpeg
    assert items[1].images[0].endswith(".png")
    assert [bad.reason for bad in report.bad] == ["image_broken", "image_broken", "image_missing"]


def test_names_of_images_never_leave_the_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.jpg").write_bytes(photo("a"))
    place = Place(tmp_path / "in")
    for name in ("../secret.jpg", "x/../../secret.jpg", str(tmp_path / "secret.jpg"), "..\\secret.jpg", "/", ".", "in"):
        with pytest.raises(RowError):
            place.picture(name)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("images\\a.png", "a.png"),
        ("C:\\data\\x\\images\\sub\\a.png", "sub/a.png"),
        ("\\\\server\\share\\a.png", "a.png"),
        ("/home/u/data/images/a.png", "a.png"),
        ("file:///home/u/data/images/sub/a.png", "sub/a.png"),
        ("./sub//a.png", "sub/a.png"),
        ("images/a.png", "a.png"),
        ("other/a.png", None),  # no path from the top of a disk: another folder's picture
        ("C:\\images\\b.png", None),
        ("/home/../../a.png", None),
    ],
)
def test_names_of_images_on_other_machines(tmp_path: Path, name: str, found: str | None) -> None:
    for path in ("images/a.png", "images/sub/a.png", "other/b.png"):
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_bytes(photo(path))
    place = Place(tmp_path / "rows", tmp_path / "images")
    if found is None:
        with pytest.raises(RowError, match=r"no file .*--images|leaves the folder"):
            place.picture(name)
    else:
        assert place.picture(name) == tmp_path / "images" / found


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"6" * 64 + b"\nsize 146946961\n"
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>"
ERROR = b'{"error": "Repository Not Found"}'


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (POINTER, "found a Git LFS pointer, not the file; expected .* Run `git lfs pull` there"),
        (PAGE, r"found a web page \(Sign in\), not the file; expected .* get the file again"),
        (ERROR, "found the error of a server .*, not the file; expected .* get the file again"),
        (b"", "found an empty file; expected .* get the file again"),
        (bytes(5000), "found zeros at its beginning; expected .* get the file again"),
    ],
)
def test_what_lies_in_the_place_of_a_table(tmp_path: Path, data: bytes, says: str) -> None:
    for name in ("rows.csv", "rows.tsv", "rows.jsonl", "rows.json", "rows.parquet"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DatasetError, match=f"{name}: {says}"):
            list(table_rows(tmp_path / name, ["question"]))


def test_what_lies_in_the_place_of_an_image(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(POINTER)
    rows: list[tuple[int, bytes | Path]] = [(0, tmp_path / "a.png"), (1, PAGE)]
    report = ImportReport("Given")
    assert not list(read_source(Given(rows), Place(tmp_path), MediaStore(tmp_path / "m"), report, published=False))
    said = [bad.found.partition(".")[0] for bad in report.bad]
    assert said == ["a Git LFS pointer, not the file", "a web page (Sign in), not the file"]
