"""Questions read for scoring say what the whole items say, without what takes longest to read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.store.examples import make_item, textured
from vgbench_gen.evaluation.base import HasTexts, benchmarks
from vgbench_gen.evaluation.prompting import digest_question, rotate_options
from vgbench_gen.evaluation.scoring import make_case
from vgbench_gen.importers.base import ASKED
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items


def test_texts_ask_and_score_as_whole_items_do(tmp_path: Path) -> None:
    media = MediaStore(tmp_path / "media")
    images = [media.put(encode_jpeg(textured(64, 48, 1)), "jpg")]
    plain = make_item(0, images, evidence={"truth": [1.5], "frames": list(range(50))})
    text = "Their own words: " + " / ".join(plain.options)
    at, places = len("Their own words: "), []
    for option in plain.options:
        places.append([at, at + len(option)])
        at += len(option) + len(" / ")
    foreign = make_item(1, images, options=plain.options, evidence={ASKED: {"text": text, "options_at": places}})
    write_items(tmp_path / "items", [plain, foreign], media)

    source = benchmarks["vgbench"].open(tmp_path)
    assert isinstance(source, HasTexts)
    read = list(source.texts())
    whole = [source.item(row.row) for row in source.rows()]
    for short, item in zip(read, whole, strict=True):
        assert short.id == item.id
        assert make_case(short) == make_case(item)
        for rotation in range(len(item.options)):
            assert digest_question(rotate_options(short, rotation)) == digest_question(rotate_options(item, rotation))
    assert [bool(item.evidence) for item in read] == [False, True]
    assert [bool(item.evidence) for item in whole] == [True, True]


def test_every_part_that_is_shown_changes_the_digest_of_a_question() -> None:
    item = make_item(0, ["a" * 64 + ".jpg", "b" * 64 + ".jpg"])
    turned = (item.options[1], item.options[0], *item.options[2:])
    foreign = {ASKED: {"text": "Their own words", "options_at": []}}
    changes: list[dict[str, Any]] = [
        {},
        {"question": item.question + "?"},
        {"context": item.context + "."},
        {"options": (*item.options[:-1], item.options[-1] + "0")},
        {"options": turned},
        {"options": item.options[:-1]},
        {"images": item.images[:1]},
        {"images": item.images[::-1]},
        {"evidence": foreign},
    ]
    digests = [digest_question(replace(item, **change)) for change in changes]
    assert len(set(digests)) == len(changes)
    assert digest_question(replace(item, id="another", answer="D", category="Another")) == digests[0]
