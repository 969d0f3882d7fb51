"""Mixtures: shares, limits and guards; parts of different rooms; copies of pictures; what is written, and errors."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.examples import make_item, textured
from vgbench_gen.cli.main import main
from vgbench_gen.core.config import load_toml, parse_config
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Item
from vgbench_gen.quality.uniqueness import HASH_BITS_APART
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.provenance import dataset_fingerprint
from vgbench_gen.store.shards import write_items
from vgbench_gen.training.looks import find_near, look_at
from vgbench_gen.training.mix import choose_rows, write_mix
from vgbench_gen.training.mix_file import Mix
from vgbench_gen.training.rooms import MixRow, Rooms, list_whole_frames

SCANNET = [f"scene{room:04d}_0{scan}" for room in range(6) for scan in range(2)]
CAPTURES = [f"4{room:07d}" for room in range(8)]


def take_picture(source: str, scene: str, frame: int) -> bytes:
    seed = int(rng_for(0, source, scene, str(frame)).integers(1 << 31))
    return encode_jpeg(np.asarray(cv2.resize(textured(80, 60, seed), (320, 240)), np.uint8))


def copy_of(data: bytes) -> bytes:
    """The picture at two thirds of its size and another quality, with a mark."""
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    small = cv2.resize(image, (213, 160), interpolation=cv2.INTER_AREA)
    cv2.rectangle(small, (30, 40), (80, 90), (0, 0, 255), 2)
    return bytes(cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 60])[1].tobytes())


def write_set(
    folder: Path,
    source: str,
    scenes: Sequence[str],
    rows: int = 6,
    instead: Mapping[str, bytes] | None = None,
    **changes: Any,
) -> Path:
    """A dataset with some rows of each scene, the first two of which are twins. instead: pictures of some scenes."""
    media, items = MediaStore(folder / "media"), list[Item]()
    for scene in scenes:
        for k in range(rows):
            data = instead.get(scene) if instead and k == 2 else None
            image = media.put(data or take_picture(source, scene, k % 3), "jpg")
            twin = {"question_type": "judgment", "options": (), "answer": "Yes", "twin_id": f"{source}{scene}"}
            place = {"source": source, "scene_id": scene, "frame_ids": (str(k % 3),), "split": "train"}
            name = f"{folder.name}-{scene}-{k}"
            items.append(make_item(len(items), [image], id=name, **place | (twin if k < 2 else {}) | changes))
    write_items(folder / "items", items, media)
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with two datasets."""
    write_set(tmp_path / "a", "scannet", SCANNET)
    write_set(tmp_path / "b", "ca1m", CAPTURES, difficulty="easy")
    return tmp_path


PARTS = "[parts]\nsft = 0.75\nrl = 0.25\n"
BOTH = '[[sources]]\ndataset = "a"\nshare = 2\n[[sources]]\ndataset = "b"\n'


def mix(place: Path, text: str, out: str = "out", **settings: Any) -> dict[str, Any]:
    (place / "mix.toml").write_text(text)
    return write_mix(place / "mix.toml", place / out, **settings)


def room_of(item: Item) -> str:
    return item.scene_id[:9] if item.source == "scannet" else item.scene_id


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_parts_have_their_shares_and_no_room_in_common(place: Path) -> None:
    record = mix(place, f"rows = 80\n{BOTH}{PARTS}")
    assert all(part["without_partner"] == 0 for part in record["parts"].values())
    parts = {part: list(load(place / "out" / part)) for part in ("sft", "rl")}
    assert {part: len(items) for part, items in parts.items()} == {"sft": 60, "rl": 20}
    for part, items in parts.items():
        sources = Counter(item.source for item in items)
        assert abs(sources["scannet"] - len(items) * 2 / 3) <= 1
        assert [item.index for item in items] == list(range(len(items)))
        assert record["parts"][part]["rows"] == len(items)
        assert record["parts"][part]["fingerprint"] == dataset_fingerprint(items)
        assert len({room_of(item) for item in items}) == record["parts"][part]["rooms"] > 1
        twins = Counter(item.twin_id for item in items if item.twin_id)
        assert twins
        assert set(twins.values()) == {2}
    assert {room_of(item) for item in parts["sft"]}.isdisjoint(map(room_of, parts["rl"]))
    assert json.loads((place / "out/mix.json").read_text()) == record
    # Sources are mixed evenly, not one after the other.
    order = [item.source for item in parts["sft"]]
    assert abs(order[:30].count("scannet") - 20) <= 1
    # Rows and pictures are those of the sources.
    origin = {item.id: item for name in "ab" for item in load(place / name)}
    dataset = load(place / "out/rl")
    for item in dataset:
        source = load(place / ("a" if item.source == "scannet" else "b"))
        assert dataset.image_bytes(item, 0) == source.image_bytes(item.id, 0)
        assert item.question == origin[item.id].question


def test_the_same_file_gives_the_same_bytes_and_another_seed_other_rows(place: Path) -> None:
    text = f"rows = 60\n{BOTH}{PARTS}"
    mix(place, text)
    mix(place, text, "again")
    first = read_files(place / "out")
    assert first == read_files(place / "again")
    mix(place, f"rows = 60\n{BOTH}")  # takes the place of the first
    other = read_files(place / "out")
    assert {name.partition("/")[0] for name in other} == {"train", "mix.json"}
    mix(place, f"seed = 1\nrows = 60\n{BOTH}", "seeded")
    assert {item.id for item in load(place / "out/train")} != {item.id for item in load(place / "seeded/train")}


def test_filters_limits_and_what_is_left_out(place: Path) -> None:
    record = mix(place, f'rows = 27\nmax_per_room = 3\n{BOTH}types = ["multi-choice"]\ndifficulty = ["easy"]\n')
    items = list(load(place / "out/train"))
    assert {item.question_type for item in items if item.source == "ca1m"} == {"multi-choice"}
    assert max(Counter(map(room_of, items)).values()) == 3
    for source in record["sources"].values():
        assert source["rows"] == source["taken"] + sum(source["left_out"].values())
    assert record["sources"]["b"]["left_out"]["not in types"] == 16
    mix(place, f"rows = 12\nmax_frames_per_room = 1\n{BOTH}", allow_short=True)
    frames = {(room_of(item), item.scene_id, *item.frame_ids) for item in load(place / "out/train")}
    assert max(Counter(room for room, *_ in frames).values()) == 1


def test_rows_with_too_many_images_are_left_out(tmp_path: Path) -> None:
    media = MediaStore(tmp_path / "media")
    names = [media.put(take_picture("scannet", "scene0001_00", k), "jpg") for k in range(3)]
    rows = [make_item(k, names[: 1 + k % 3], split="train", twin_id="") for k in range(9)]
    write_items(tmp_path / "a/items", rows, media)
    record = mix(tmp_path, 'rows = 6\n[[sources]]\ndataset = "a"\nmax_images = 2\n')
    assert record["sources"]["a"]["left_out"] == {"max_images": 3}


def test_official_splits_for_testing_are_left_out_by_default(place: Path) -> None:
    write_set(place / "v", "scannet", ["scene0100_00", "scene0101_00"], split="val")
    text = 'rows = 10\n[[sources]]\ndataset = "v"\n[[sources]]\ndataset = "b"\n'
    record = mix(place, text)
    assert record["sources"]["v"]["left_out"] == {"split val": 12}
    assert "12 split val" in record["short"][0]
    assert not (place / "out").exists()
    record = mix(place, f'{text}[guard]\nallow_splits = ["train", "val"]\n')
    assert record["sources"]["v"]["taken"] == 5


@pytest.mark.parametrize("way", ["a list", "a dataset", "a copied picture", "the same picture"])
def test_a_guarded_room_is_left_out_whole(place: Path, way: str) -> None:
    shown = take_picture("scannet", "scene0003_01", 2)
    if way == "a list":
        (place / "guard.txt").write_text("# published validation scenes\nscene0003_07\n40000002\n")
        guard, gone = 'rooms = ["guard.txt"]', {"scene0003", "40000002"}
    elif way == "a dataset":
        write_set(place / "g", "scannet", ["scene0003_05"])
        guard, gone = 'datasets = ["g"]', {"scene0003"}
    else:
        data = copy_of(shown) if way == "a copied picture" else shown
        write_set(place / "g", "scannetpp", ["1a2b/iphone"], instead={"1a2b/iphone": data}, split="val")
        guard, gone = 'datasets = ["g"]', {"scene0003"}
    record = mix(place, f"rows = 60\n{BOTH}{PARTS}[guard]\n{guard}\n")
    items = [item for part in ("sft", "rl") for item in load(place / "out" / part)]
    assert len(items) == 60
    assert gone.isdisjoint(map(room_of, items))
    assert record["sources"]["a"]["left_out"]["guarded room"] == 12  # of both scans
    assert record["joined_rooms"] == ([["scannet/scene0003", "scannetpp/1a2b"]] if "picture" in way else [])
    if way == "a copied picture":
        forbidden = [look_at(load(place / "g").image_bytes(k, 0)) for k in range(6)]
        for part in ("sft", "rl"):
            dataset = load(place / "out" / part)
            for k in range(len(dataset)):
                look = look_at(dataset.image_bytes(k, 0))
                assert look is not None
                assert all((look[0] ^ other[0]).bit_count() > HASH_BITS_APART for other in forbidden if other)


def test_two_names_of_one_room_are_never_in_two_parts(tmp_path: Path) -> None:
    scenes = [f"r{k}" for k in range(10)]
    copies = {f"c{k}": copy_of(take_picture("x", f"r{k}", 2)) for k in range(10)}
    write_set(tmp_path / "a", "x", scenes)
    write_set(tmp_path / "b", "y", [*copies], instead=copies)
    record = mix(tmp_path, f"rows = 80\n{BOTH}{PARTS}")
    assert record["joined_rooms"] == [[f"x/r{k}", f"y/c{k}"] for k in range(10)]
    sft, rl = ({item.scene_id[1:] for item in load(tmp_path / "out" / part)} for part in ("sft", "rl"))
    assert sft.isdisjoint(rl)
    assert sft | rl == set("0123456789")


def test_crops_and_plain_pictures_join_no_rooms(tmp_path: Path) -> None:
    plain = encode_jpeg(np.full((240, 320, 3), 200, np.uint8) + np.linspace(0, 8, 320).astype(np.uint8)[:, None])
    assert look_at(plain) is None
    assert look_at(take_picture("x", "y", 0)) is not None
    rooms = Rooms({})
    a, b = (rooms.add(make_item(source="x", scene_id=scene)) for scene in "ab")
    look = look_at(take_picture("x", "y", 0))
    rooms.note("1", a, look)
    rooms.note("2", b, None)  # as crops are noted
    rooms.join_alike()
    assert rooms.list_joined() == []
    assert look is not None
    rooms.note("3", b, (look[0], look[1][::-1]))  # the hash alone
    rooms.join_alike()
    assert rooms.list_joined() == []
    rooms.note("4", b, look)
    rooms.join_alike()
    assert rooms.list_joined() == [["x/a", "x/b"]]
    c = rooms.add(make_item(source="x", scene_id="c"))
    rooms.note("2", c, None)  # the same bytes
    assert rooms.list_joined() == [["x/a", "x/b", "x/c"]]


def test_near_hashes_of_other_rooms_are_found_as_by_comparing_all() -> None:
    rng = rng_for(1, "hashes")
    first = rng.integers(0, 2**63, 300, dtype=np.uint64)
    flips = [sum(1 << int(bit) for bit in rng.choice(64, int(rng.integers(0, 12)), replace=False)) for _ in first]
    hashes = np.concatenate([first, first ^ np.array(flips, np.uint64)])
    room_of_hash = rng.integers(0, 5, len(hashes))
    expected = {
        (i, j)
        for i, j in combinations(range(len(hashes)), 2)
        if room_of_hash[i] != room_of_hash[j] and (int(hashes[i]) ^ int(hashes[j])).bit_count() <= HASH_BITS_APART
    }
    found = {(min(k, j), max(k, j)) for k, others in find_near(hashes, room_of_hash) for j in others}
    assert 80 < len(expected) < 280
    assert found == expected


ROWS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 2), st.booleans(), st.sampled_from(["train", "val", "unknown"])),
    max_size=60,
)


@given(
    first=ROWS, second=ROWS, rows=st.integers(1, 60), cap=st.one_of(st.none(), st.integers(1, 5)), rl=st.integers(1, 9)
)
def test_whatever_the_rows_parts_share_no_room_and_no_limit_is_passed(
    first: list[Any], second: list[Any], rows: int, cap: int | None, rl: int
) -> None:
    rooms, rows_of = Rooms({}), dict[str, list[MixRow]]()
    for number, (label, drawn) in enumerate({"a": first, "b": second}.items()):
        rows_of[label] = []
        for place, (room, frame, has_partner, split) in enumerate(drawn):
            name = f"{label}{place}" if frame else f"shared{place}"
            named = rooms.add(make_item(source="x", scene_id=f"s{room}"))
            partner = f"{label}{room}" if has_partner else name
            row = MixRow(number, place, name, partner, named, "t", "judgment", "", split, 1, (f"{room}/{frame}",))
            rows_of[label].append(row)
    if {("x", "s0"), ("x", "s1")} <= {*rooms}:
        rooms.join(("x", "s0"), ("x", "s1"))
    settings: dict[str, Any] = {
        "rows": rows,
        "parts": {"sft": 1 - rl / 10, "rl": rl / 10},
        "sources": [{"dataset": "a"}, {"dataset": "b"}],
    }
    limits = {"max_per_room": cap, "max_frames_per_room": cap} if cap else {}
    chosen = choose_rows(
        parse_config(settings | limits, Mix, "mix"), rows_of, rooms, {rooms.find(r) for r in [*rooms][:1]}
    )
    of_part = {part: [row for some in by.values() for row in some] for part, by in chosen.rows.items()}
    taken = [row for some in of_part.values() for row in some]
    shown = [{rooms.find(row.room) for row in some} for some in of_part.values()]
    assert shown[0].isdisjoint(shown[1])
    assert len({row.id for row in taken}) == len(taken) <= rows
    assert all(row.split != "val" and rooms.find(row.room) != rooms.find(next(iter(rooms))) for row in taken)
    for label, all_rows in rows_of.items():
        count = sum(len(by[label]) for by in chosen.rows.values())
        assert count + sum(chosen.left_out[label].values()) == len(all_rows)
        for part, by in chosen.rows.items():
            wanted = chosen.wanted[part][label]
            assert abs(wanted - rows * settings["parts"][part] / 2) <= 1.5
            lacking = wanted - len(by[label])
            assert lacking >= 0
            is_told = any(
                line.startswith(f"{label} in {part}: {wanted - lacking} of {wanted} rows") for line in chosen.short
            )
            assert is_told or lacking <= bool(chosen.left_out[label]["not needed"])
    if cap:
        assert max(Counter(rooms.find(row.room) for row in taken).values(), default=0) <= cap


def test_a_share_that_cannot_be_filled_writes_nothing_unless_told_to(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "mix.toml").write_text(f"rows = 300\nmax_per_room = 4\n{BOTH}{PARTS}")
    words = ["mix", str(place / "mix.toml"), "--out", str(place / "out"), "--workers", "1"]
    assert main(words) == 1
    told = capsys.readouterr().err
    assert "a in sft: " in told
    assert "of 150 rows; left out: " in told
    assert "max_per_room. To fill it, raise these limits" in told
    assert "--allow-short writes what there is" in told
    assert not (place / "out").exists()
    assert main([*words, "--allow-short", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((place / "out/mix.json").read_text())
    assert main(["export", str(place / "out/sft"), "--to", "chat-jsonl", "--answers", "--out", str(place / "e")]) == 0
    rows = (place / "e/vgbench_sft.jsonl").read_text().splitlines()
    assert len(rows) == len(load(place / "out/sft")) > 20


def test_two_sources_of_one_dataset_take_a_row_once(place: Path) -> None:
    text = 'rows = 40\n[[sources]]\nname = "all"\ndataset = "a"\n[[sources]]\nname = "claims"\ndataset = "a"\n'
    record = mix(place, f'{text}types = ["judgment"]\n')
    items = list(load(place / "out/train"))
    assert len({item.id for item in items}) == len(items) == 40
    assert record["sources"]["claims"]["taken"] == 20


def test_a_twin_without_its_partner_is_none_any_more(place: Path) -> None:
    text = 'rows = 12\n[[sources]]\ndataset = "c"\ndifficulty = ["easy"]\n'
    media = MediaStore(place / "media")
    name = media.put(take_picture("x", "y", 0), "jpg")
    claim = {"question_type": "judgment", "options": (), "answer": "Yes", "split": "train"}
    rows = [
        make_item(k, [name], twin_id=f"t{k // 2}", difficulty=("easy", "hard" if k < 8 else "easy")[k % 2], **claim)
        for k in range(16)
    ]
    write_items(place / "c/items", rows, media)
    record = mix(place, text)
    twins = Counter(item.twin_id for item in load(place / "out/train"))
    assert twins == {"": 4, "t4": 2, "t5": 2, "t6": 2, "t7": 2}
    assert record["parts"]["train"]["without_partner"] == 4


GOOD = 'rows = 10\n[[sources]]\ndataset = "a"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "rows: found nothing"),
        ("rows = 10", "sources: found nothing"),
        ("rows = 10\nsources = []", "at least one [[sources]]"),
        (f"{GOOD}shares = 2", "'shares'. Did you mean share?"),
        (f"row = 3\n{GOOD}", "'row'. Did you mean rows?"),
        (f'{GOOD}recipe = "default"', "either dataset, or recipe and scenes"),
        ('rows = 10\n[[sources]]\nrecipe = "default"', "either dataset, or recipe and scenes"),
        ("rows = 10\n[[sources]]\nshare = 1", "either dataset, or recipe and scenes"),
        (f"{GOOD}share = 0", "sources.0.share: found 0; expected greater than 0"),
        (f'{GOOD}share = "2"', 'sources.0.share: found "2"'),
        (f'{GOOD}tasks = ["metric_dept"]', "source a: tasks: found 'metric_dept'; expected some of metric_depth"),
        (f'{GOOD}types = ["choice"]', 'sources.0.types.0: found "choice"'),
        (
            f'{GOOD}types = ["open-ended"]',
            "source a: types: found 'open-ended'; expected some of judgment, multi-choice",
        ),
        (f'{GOOD}difficulty = ["easy"]', "source a: difficulty: found 'easy'; expected some of hard"),
        (f"{GOOD}[parts]\nsft = 0.8\nrl = 0.1", "parts to sum to 1, not 0.9"),
        (f'{GOOD}[parts]\n"../x" = 1.0', "not '../x'"),
        (f"{GOOD}[parts]\nbuilds = 1.0", "not 'builds'"),
        (f'{GOOD}[[sources]]\ndataset = "x/a"', "not two of 'a'"),
        (f'{GOOD}[guard]\nrooms = ["none.txt"]', "none.txt: found no such file"),
        (f'{GOOD}[guard]\ndatasets = ["none"]', "none: found nothing; expected a built dataset"),
        (f'{GOOD}[guard]\nallow_splits = ["dev"]', 'guard.allow_splits.0: found "dev"'),
        ('rows = 10\n[[sources]]\ndataset = "none"', "none: found nothing; expected a built dataset"),
        ('rows = 10\n[[sources]]\nrecipe = "non"\nscenes = ["a"]', "no recipe is called 'non'"),
        (f"{GOOD}rows = 3", "sources.0.rows: found an unknown key"),
        ("rows = ", "no valid TOML"),
        (f'visits = "none.csv"\n{GOOD}', "none.csv"),
    ],
)
def test_a_wrong_file_is_one_line(place: Path, capsys: pytest.CaptureFixture[str], text: str, says: str) -> None:
    (place / "mix.toml").write_text(text)
    assert main(["mix", str(place / "mix.toml"), "--out", str(place / "out")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert says in told
    assert not (place / "out").exists()


def test_files_that_no_mixture_wrote_are_left_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "mix.toml").write_text(GOOD)
    (place / "out").mkdir()
    (place / "out/notes.txt").write_text("mine")
    assert main(["mix", str(place / "mix.toml"), "--out", str(place / "out")]) == 2
    assert main(["mix", str(place / "mix.toml"), "--out", str(place / "mix.toml")]) == 2
    assert (place / "out/notes.txt").read_text() == "mine"
    assert main(["mix", str(place / "mix.toml"), "--out", str(place / "m")]) == 0
    assert main(["mix", str(place / "mix.toml"), "--out", str(place / "m")]) == 0
    for name, strange in (("train-trl/output/model", "train-trl"), ("train/replies/a.jsonl", "train/replies")):
        (place / "m" / name).parent.mkdir(parents=True)
        (place / "m" / name).write_text("mine")
        capsys.readouterr()
        assert main(["mix", str(place / "mix.toml"), "--out", str(place / "m")]) == 2
        assert f"{strange}, which no mixture wrote" in capsys.readouterr().err
        assert (place / "m" / name).read_text() == "mine"
        shutil.rmtree(place / "m" / strange)


def test_images_that_are_not_there_are_asked_for(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = (place / "a/items").glob("*.parquet")
    table = pq.read_table(path)
    images = [[{"bytes": None, "path": one["path"]} for one in row] for row in table["images"].to_pylist()]
    bare = pa.array(images, table.schema.field("images").type)
    pq.write_table(table.set_column(table.schema.get_field_index("images"), "images", bare), path)
    (place / "mix.toml").write_text(GOOD)
    assert main(["mix", str(place / "mix.toml"), "--out", str(place / "out")]) == 2
    assert "an image without bytes" in capsys.readouterr().err
    # As a guard such a dataset still says which rooms are left out.
    record = mix(place, 'rows = 10\n[[sources]]\ndataset = "b"\n[guard]\ndatasets = ["a"]\n')
    assert len(record["guard"]["rooms"]) == 6


def test_a_broken_picture_is_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_set(place / "a", "x", ["y"], instead={"y": take_picture("x", "y", 9)[:300]})
    (place / "mix.toml").write_text(GOOD)
    assert main(["mix", str(place / "mix.toml"), "--out", str(place / "out")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "items-00000-of-00001.parquet: found " in told


def test_a_recipe_is_built_mixed_and_verified(raw_room: Path, tmp_path: Path) -> None:
    (tmp_path / "depth.toml").write_text('tasks = ["metric_depth", "homography_to_matrix"]\nfacts_per_scene = 4\n')
    text = f'rows = 12\n[[sources]]\nrecipe = "depth.toml"\nscenes = ["{raw_room}"]\n'
    text += '[guard]\nallow_splits = ["val", "unknown"]\n'
    record = mix(tmp_path, text, workers=1)
    assert record["sources"]["depth"]["taken"] == 12
    assert main(["verify", str(tmp_path / "out/train"), "--workers", "1"]) == 0
    for item in load(tmp_path / "out/builds/depth"):
        is_cut = item.task != "metric_depth"  # both images of a homography are
        assert list_whole_frames(item) == ([] if is_cut else list(item.images))
    again = mix(tmp_path, text, workers=1)
    assert (tmp_path / "out/builds/depth/facts").is_dir()
    assert again == record


def test_the_mixture_of_the_guide_is_one(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs/howto/training.md").read_text("utf-8")
    (tmp_path / "mix.toml").write_text(guide.split("```toml\n")[1].split("```")[0], "utf-8")
    mix = load_toml(tmp_path / "mix.toml", Mix)
    assert [source.label for source in mix.sources] == ["train", "objects"]
    assert set(mix.sources[1].difficulty) < {"easy", "medium", "hard"}
