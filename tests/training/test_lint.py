"""What the lint finds in training files of every layout, and what a mended copy is like."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.store.examples import textured
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.training.families import find_family
from vgbench_gen.training.guards import read_guard
from vgbench_gen.training.lint import REMEDIES, LintedRow, LintReport, estimate_tokens, lint
from vgbench_gen.training.looks import count_copies
from vgbench_gen.training.mend import write_mended
from vgbench_gen.training.trainers import Trainer, find_trainer

PLAIN = Trainer("plain", setting="max_length", most_tokens=4000)
Rows = list[dict[str, Any]]


def put_picture(folder: Path, number: int, size: tuple[int, int] = (320, 240)) -> str:
    name = f"images/{number}.jpg"
    (folder / "images").mkdir(exist_ok=True)
    (folder / name).write_bytes(encode_jpeg(textured(*size, seed=number)))
    return name


def make_row(folder: Path, number: int, pictures: int = 2, **changes: Any) -> dict[str, Any]:
    images = [put_picture(folder, 10 * number + k) for k in range(pictures)]
    turns = [
        {"role": "user", "content": "<image>" * pictures + f"How far is region {number}?"},
        {"role": "assistant", "content": f"Answer: {number} meters"},
    ]
    return {"id": f"r{number}", "messages": turns, "images": images} | changes


def write(folder: Path, rows: Rows, name: str = "train.jsonl") -> Path:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder / name


def look(path: Path, **options: Any) -> tuple[LintReport, dict[str, LintedRow]]:
    """The report, and the rows with defects by id."""
    report = lint(path, PLAIN, find_family("qwen2.5-vl"), keep_all=True, **options)
    return report, {row.id: row for row in report.damaged}


def ask(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": "Answer: 2"}]


def damage(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Defect -> what of a row it changes."""
    (folder / "images").mkdir(exist_ok=True)
    whole = encode_jpeg(textured(320, 240, seed=99))
    (folder / "images/half.jpg").write_bytes(whole[: len(whole) // 2])
    put_picture(folder, 98, (2048, 8))
    one = put_picture(folder, 97)
    return {
        "no_list": {"images": one, "messages": ask("<image>How far?")},
        "marks_under": {"messages": ask("<image>How far?")},
        "marks_over": {"messages": ask("<image><image>What does <image> mean?")},
        "model_token": {"messages": ask("<image><image>What does <|image_pad|> mean?")},
        "roles": {"messages": [{"role": "narrator", "content": "Once."}, *ask("<image><image>How far?")]},
        "no_question": {"messages": ask("<image>")[1:]},
        "no_answer": {"messages": ask("<image><image>How far?")[:1]},
        "empty_answer": {"messages": [*ask("<image><image>How far?")[:1], {"role": "assistant", "content": " "}]},
        "not_text": {"messages": [*ask("<image><image>How far?")[:1], {"role": "assistant", "content": 2}]},
        "stray_mark": {"messages": [*ask("<image><image>How far?")[:1], {"role": "assistant", "content": "<image>"}]},
        "absolute_path": {"images": [str((folder / one).resolve()), one]},
        "missing_picture": {"images": [one, "images/none.jpg"]},
        "broken_picture": {"images": [one, "images/half.jpg"]},
        "long_picture": {"images": [one, "images/98.jpg"]},
        "too_long": {"messages": ask("<image><image>" + "far 2.25 " * 1200)},
        "test_room": {"split": "test"},
        "repeated_id": {"id": "r1"},
    }


def test_each_defect_is_found_in_its_row_alone(tmp_path: Path) -> None:
    changes = damage(tmp_path)
    assert set(changes) | {"unreadable", "test_picture", "layout"} == set(REMEDIES)
    rows = [make_row(tmp_path, 1)]
    rows += [make_row(tmp_path, n + 2) | dict(change) for n, change in enumerate(changes.values())]
    rows.append(make_row(tmp_path, 20))
    path = write(tmp_path, rows)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"id": "cut", "mess\n[1, 2]\n')
    report, bad = look(path)
    wanted = {row["id"]: {defect} for row, defect in zip(rows[1:-1], changes, strict=True)}
    wanted["r1"] = {"repeated_id"}
    wanted["r7"] |= {"marks_under", "roles"}  # no user's turn, so no mark either
    wanted["r10"] |= {"empty_answer"}
    found = {name: set(row.defects) for name, row in bad.items() if name}
    assert found == wanted
    assert report.defects["unreadable"] == 2
    assert next(row for row in report.damaged if "missing_picture" in row.defects).place == "train.jsonl, row 13"
    assert report.mixed == {"images": ["a list", "text"], "messages[].content": ["a number", "text"]}


def test_sound_files_of_every_layout_are_clean(tmp_path: Path) -> None:
    chat = [make_row(tmp_path, n) for n in range(3)]
    typed: Rows = []
    for row in chat:
        parts = [{"type": "image", "image": path} for path in row["images"]]
        content = [*parts, {"type": "text", "text": "How far?"}]
        turns = [
            {"role": "user", "content": content},
            {"role": "assistant", "content": [{"type": "text", "text": row["id"]}]},
        ]
        typed.append({"id": row["id"], "messages": turns})
    talks = [
        {
            "id": row["id"],
            "image": row["images"],
            "conversations": [
                {"from": "human", "value": row["messages"][0]["content"]},
                {"from": "gpt", "value": row["id"]},
            ],
        }
        for row in chat
    ]
    problems = [
        {"problem": row["messages"][0]["content"], "answer": row["id"], "images": row["images"]} for row in chat
    ]
    for name, rows in {"chat": chat, "typed": typed, "talks": talks, "problems": problems}.items():
        report, bad = look(write(tmp_path, rows, f"{name}.jsonl"))
        assert not bad, (name, bad)
        assert (report.clean, report.rows, report.pictures) == (True, 3, 6), name
    (tmp_path / "list.json").write_text(json.dumps(chat), "utf-8")
    assert look(tmp_path / "list.json")[0].clean
    data = [[(tmp_path / path).read_bytes() for path in row["images"]] for row in chat]
    table = [
        {
            "prompt": [{"role": "user", "content": row["messages"][0]["content"]}],
            "images": [{"bytes": one, "path": None} for one in pictures],
            "reward_model": {"style": "rule", "ground_truth": row["id"]},
            "extra_info": {"id": row["id"]},
        }
        for row, pictures in zip(chat, data, strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "train.parquet")
    report, bad = look(tmp_path / "train.parquet")
    assert (report.clean, report.rows, report.pictures, bad) == (True, 3, 6, {})
    with tarfile.open(tmp_path / "shard.tar", "w") as tar:
        for row, pictures in zip(chat, data, strict=True):
            told = json.dumps({"id": row["id"], "messages": row["messages"]}).encode()
            members = {"json": told} | {f"{k}.jpg": one for k, one in enumerate(pictures)}
            for name, content in members.items():
                info = tarfile.TarInfo(f"{row['id']}.{name}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    report, bad = look(tmp_path / "shard.tar")
    assert (report.clean, report.rows, report.pictures, bad) == (True, 3, 6, {})


def test_types_that_differ_inside_a_row_are_named(tmp_path: Path) -> None:
    rows = [make_row(tmp_path, n) for n in range(3)]
    rows[1]["messages"][0]["content"] = [{"type": "image"}, {"type": "image"}, {"type": "text", "text": "How far?"}]
    rows[2]["level"], rows[0]["level"] = "7", 7
    report, bad = look(write(tmp_path, rows))
    assert report.mixed == {"messages[].content": ["a list", "text"], "level": ["a number", "text"]}
    assert not report.clean
    assert not bad


def test_constant_answers_and_pictures_that_look_alike(tmp_path: Path) -> None:
    rows = [make_row(tmp_path, n, 1) for n in range(4)]
    room = cv2.resize(textured(40, 30, seed=5), (320, 240), interpolation=cv2.INTER_CUBIC)
    for name, size in (("0.jpg", (320, 240)), ("again.jpg", (200, 150))):
        copy = np.asarray(cv2.resize(room, size, interpolation=cv2.INTER_AREA), np.uint8)
        (tmp_path / "images" / name).write_bytes(encode_jpeg(copy))
    rows[3]["images"] = ["images/again.jpg"]
    for row in rows:
        row["messages"][1]["content"] = "Answer: A"
    report, _ = look(write(tmp_path, rows))
    assert report.constant_answer == "Answer: A"
    assert (report.pictures, report.alike) == (4, 2)


def test_all_copies_are_found() -> None:
    rng = np.random.default_rng(0)
    cells = [bytes(rng.integers(0, 255, 256, dtype=np.uint8)) for _ in range(400)]
    looks = [(int(x), one) for x, one in zip(rng.integers(0, 1 << 63, 400), cells, strict=True)]
    turned = [sum(1 << int(b) for b in rng.choice(64, 6, replace=False)) for _ in range(40)]
    copies = [(looks[k][0] ^ bits, looks[k][1]) for k, bits in enumerate(turned)]
    others = [(looks[k][0] ^ bits, looks[k + 50][1]) for k, bits in enumerate(turned)]  # near by hash alone
    assert count_copies([*looks, *copies, *others]) == 80
    assert count_copies([looks[0]] * 1000) == 1000
    assert count_copies([]) == 0


def test_guarded_rooms_and_pictures(tmp_path: Path) -> None:
    rows = [make_row(tmp_path, n) for n in range(3)]
    rows[0]["scene"] = "scannet/scene0011_00"
    (tmp_path / "scene0025_01").mkdir()
    for k in range(2):
        (tmp_path / "scene0025_01" / f"{k}.jpg").write_bytes((tmp_path / rows[1]["images"][k]).read_bytes())
    rows[1]["images"] = ["scene0025_01/0.jpg", "scene0025_01/1.jpg"]
    (tmp_path / "guard.txt").write_text("scene0011_02\nscannet/scene0025_00\n", "utf-8")
    _, bad = look(write(tmp_path, rows), guard=read_guard([tmp_path / "guard.txt"]))
    assert {name: set(row.defects) for name, row in bad.items()} == {"r0": {"test_room"}, "r1": {"test_room"}}


def test_a_mended_copy_is_clean(tmp_path: Path) -> None:
    changes = {name: change for name, change in damage(tmp_path).items() if name not in ("too_long", "repeated_id")}
    rows = [make_row(tmp_path, n) | dict(change) for n, change in enumerate(changes.values())]
    rows.append(make_row(tmp_path, 20) | {"messages": ask("How far?")})
    rows.append(make_row(tmp_path, 21) | {"level": 3})
    rows.append(make_row(tmp_path, 22) | {"level": "3"})
    path = write(tmp_path, rows)
    report, _ = look(path)
    kept, left_out = write_mended(path, tmp_path / "mended.jsonl", report)
    assert kept + left_out == len(rows)
    again, _ = look(tmp_path / "mended.jsonl")
    assert again.clean, (again.defects, again.mixed)
    assert again.rows == kept == 5  # no_list, absolute_path, and the three of the end
    with pytest.raises(ConfigError, match="mended"):
        write_mended(path, tmp_path / "mended.jsonl", report)


def test_hostile_files_cost_no_more_than_a_message(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no training file"):
        look(tmp_path)
    (tmp_path / "x.tar").write_bytes(b"\x00" * 100 + b"no tar")
    with pytest.raises(DatasetError, match=r"x\.tar"):
        look(tmp_path / "x.tar")
    rows = [make_row(tmp_path, 1) | {"images": ["/dev/zero", "images"]}]
    _, bad = look(write(tmp_path, rows))
    assert "missing_picture" in bad["r1"].defects
    bomb = io.BytesIO()
    from PIL import Image

    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    (tmp_path / "images/bomb.png").write_bytes(bomb.getvalue())
    _, bad = look(write(tmp_path, [make_row(tmp_path, 2) | {"images": ["images/bomb.png", "images/20.jpg"]}]))
    assert "broken_picture" in bad["r2"].defects


def test_estimates_are_near_what_tokenizers_count() -> None:
    """Counts by Qwen2.5's tokenizer, which makes one token of each digit."""
    assert estimate_tokens("fx = 843.12") == pytest.approx(9, abs=2)
    assert estimate_tokens("How far is the blue circle from the camera, in meters?") == pytest.approx(13, abs=2)


def test_unknown_trainers_are_refused() -> None:
    with pytest.raises(Exception, match="chat-jsonl"):
        find_trainer("nobody")


def test_the_program_names_row_and_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [make_row(tmp_path, 1), make_row(tmp_path, 2) | {"images": ["images/10.jpg"]}]
    path = write(tmp_path, rows)
    assert main(["lint", str(path), "--trainer", "chat-jsonl"]) == 1
    said = capsys.readouterr().out
    assert "marks_over: 1 rows. Write one mark" in said
    assert "train.jsonl, row 2: 2 marks for 1 pictures" in said
    assert main(["lint", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["defects"] == {"marks_over": 1}
    assert main(["lint", str(write(tmp_path, rows[:1]))]) == 0
    assert "nothing to mend" in capsys.readouterr().out


def test_paths_of_each_file_are_its_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, [make_row(tmp_path / name, 1, 1) | {"id": name}])
    (tmp_path / "b/images/10.jpg").write_bytes(b"no picture")
    _, bad = look(tmp_path)
    assert {name: set(row.defects) for name, row in bad.items()} == {"b": {"broken_picture"}}


def test_a_row_that_cannot_be_mended_is_left_out(tmp_path: Path) -> None:
    rows = [make_row(tmp_path, 1, 1), make_row(tmp_path, 2, 1)]
    for row in rows:
        row["messages"] = [turn | {"content": [{"type": "text", "text": turn["content"]}]} for turn in row["messages"]]
    rows[0]["messages"][0]["content"].insert(0, {"type": "image"})
    path = write(tmp_path, rows)
    report, bad = look(path)
    assert {name: set(row.defects) for name, row in bad.items()} == {"r2": {"marks_under"}}
    assert write_mended(path, tmp_path / "out.jsonl", report) == (1, 1)


@pytest.mark.parametrize("manifest", ["3", "[]", '{"to": [], "train": 3}', '{"to": "trl", "train": {"a": 7}}', "{"])
def test_a_damaged_manifest_is_as_none(tmp_path: Path, manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, [make_row(tmp_path, 1), make_row(tmp_path, 2)])
    (tmp_path / "export.json").write_text(manifest, "utf-8")
    assert main(["lint", str(path)]) == 0
    assert "2 rows, by chat-jsonl: 2 kept" in capsys.readouterr().out


def test_a_report_keeps_the_first_rows_of_each_defect(tmp_path: Path) -> None:
    rows = [make_row(tmp_path, k) | {"split": "test"} for k in range(20)]
    rows[11]["messages"] = ask("What is this?")
    path = write(tmp_path, rows)
    report = lint(path, PLAIN, find_family("qwen2.5-vl"))
    assert report.defects == {"test_room": 20, "marks_under": 1}
    assert [row.id for row in report.damaged] == [rows[k]["id"] for k in (0, 1, 2, 11)]
    assert len(lint(path, PLAIN, find_family("qwen2.5-vl"), keep_all=True).damaged) == 20
