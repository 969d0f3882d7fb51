"""Pages of wrong answers: every one is there, replies are text and nothing else, and nothing grows without a bound."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from tests.browser import OpenPage
from tests.evaluation.score_rows import board, entry, row
from tests.report.gallery_data import hostile_item
from vgbench_gen.evaluation.board import Board, ScoreRow
from vgbench_gen.evaluation.item_source import ItemSource
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import ReplyWriter
from vgbench_gen.evaluation.saved import SavedScores, ScoreHeader
from vgbench_gen.evaluation.tables import compare_models
from vgbench_gen.report.scores_page import ComparedModels, write_scores_report
from vgbench_gen.report.scores_wrong import CHARS, PER_PAGE
from vgbench_gen.report.site import clean

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\u202e {{ 7*7 }} \ud800 \x00 & "
PICTURE = "0123456789abcdef0123456789abcdef.jpg"


def dataset(home: Path, questions: int, **replies: str) -> ComparedModels:
    """Questions to one model: every fifth is right, every fifth failed, of the others one refused and one unreadable.
    The report goes to `scores/report` of `home`; the questions are not known to the data set.

    replies: by id, others say "B".
    """
    entries = [
        entry(f"q{k}", task=("relative_pose", "tracking")[k % 2], scene=f"s{k % 7}", truth="A")
        for k in range(questions)
    ]
    rows: list[ScoreRow] = []
    for k in range(questions):
        outcome = ("right", "failed", "wrong", "wrong", "wrong")[k % 5]
        rows.append(row(f"q{k}", float(outcome == "right"), outcome=outcome))
    rows[2] = row("q2", 0.0, outcome="unreadable", status="no_answer", extracted=None, official_extracted=HOSTILE * 9)
    rows[3] = row("q3", 0.0, outcome="refused", status="refusal", extracted=None, official=1.0)
    rows.append(row("q4", 0.0, rotation=1))
    header = Header(dataset="fingerprint", benchmark="VGBench", spec="api:Some-Model", model="Some-Model")
    rows = [replace(one, settings=header.digest) for one in rows]
    log = home / "replies" / "api_Some-Model.jsonl"
    with ReplyWriter(log, header) as writer:
        for k in range(questions):
            images = ({"name": PICTURE}, {"name": "../secret.jpg"}, {"name": "f" * 32 + ".jpg"})
            text = None if rows[k].outcome == "failed" else replies.get(f"q{k}", f"B of q{k}")
            writer.append(
                ReplyLine(
                    key=ReplyKey(f"q{k}"),
                    benchmark="VGBench",
                    model="Some-Model",
                    request_digest="",
                    response=text,
                    images=images,
                    error="" if text else "x",
                )
            )
    scored = ScoreHeader(1, "", "", header.spec, header.model)
    saved = SavedScores(home / "scores" / "api_Some-Model.jsonl", scored, tuple(rows), replies=log)
    found = Board(board(entries).questions)
    found.add("Some-Model", {"set": rows})
    found.saved = {"set": (saved,)}
    source = ItemSource("VGBench", home, ())
    return ComparedModels("set", found, compare_models(found), home / "scores" / "report", {"set": source})


def articles(text: str) -> dict[str, str]:
    """Id -> what stands of it on a page."""
    parts = re.findall(r'<article class="miss">(.*?)</article>', text, re.DOTALL)
    return {re.findall(r"<bdi>(q\d+)</bdi>", part)[0]: part for part in parts}


def test_every_wrong_answer_is_there_with_what_was_said(tmp_path: Path) -> None:
    questions = 2 * PER_PAGE  # of which three in five are not right: two pages
    report = dataset(tmp_path, questions, q7=HOSTILE * 3000)
    folder = tmp_path / "scores" / "report"
    folder.mkdir(parents=True)
    (folder / "wrong-notes.html").write_text("somebody's own")
    index = write_scores_report(report).read_text()
    pages = sorted(folder.glob("wrong-some-model-*.html"), key=lambda path: ("page" in path.name, path.name))
    assert len(pages) == 2
    shown = [articles(path.read_text()) for path in pages]
    assert [len(one) for one in shown] == [PER_PAGE, questions * 3 // 5 - PER_PAGE]
    assert {*shown[0], *shown[1]} == {f"q{k}" for k in range(questions) if k % 5 > 1}
    assert max(path.stat().st_size for path in pages) < PER_PAGE * 8 * CHARS
    plain = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", shown[0]["q4"])))
    assert "relative pose, multi-choice true: A read: B ours 0, official 0" in plain
    assert "B of q4" in plain
    # Answers come before what could not be read, and refusals last; within each by task.
    assert list(shown[1])[-2:] == ["q2", "q3"]
    parts = [part for path in pages for part in re.findall(r'<h2 id="t\d">([^<]+)</h2>', path.read_text())]
    assert parts == [
        "relative pose, wrong", "tracking, wrong", "tracking, wrong", "relative pose, unreadable", "tracking, refused"
    ]  # fmt: skip
    assert f'<a href="{pages[1].name}#t3">tracking, refused</a> (1)' in pages[0].read_text()
    assert f'<a rel="next" href="{pages[1].name}">' in pages[0].read_text()
    assert f'<a rel="prev" href="{pages[0].name}">' in pages[1].read_text()
    assert pages[1].read_text().count('<a href="#main">Back to the top</a>') == 3
    assert "unreadable (no answer)" in shown[1]["q2"]
    assert "ours 0, official 1 (" in shown[1]["q3"]
    assert f'<a href="{pages[0].name}">Some-Model</a> ({questions * 3 // 5:,})' in index
    for address, anchor in re.findall(r'href="(wrong-[^"#]+)#(t\d)"', pages[0].read_text()):
        assert f'<h2 id="{anchor}">' in (folder / address).read_text()
    # A later run with fewer of them leaves none of the old pages behind, and files of others alone.
    write_scores_report(replace(dataset(tmp_path / "small", 10), folder=folder))
    assert [path.name for path in folder.glob("wrong-*page*.html")] == []
    assert (folder / "wrong-notes.html").exists()


def test_replies_are_text_and_nothing_else(open_page: OpenPage, tmp_path: Path) -> None:
    folder = tmp_path / "scores" / "report"
    write_scores_report(dataset(tmp_path, 10, q4=HOSTILE * 40, q7=f"{HOSTILE}\n  last"))
    (path,) = folder.glob("wrong-*.html")
    text = path.read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "\u202e" not in text
    watched = open_page(path.as_uri(), width=390)
    assert watched.errors == []
    assert watched.overflow_px() == 0
    said = watched.page.locator("pre.reply").all_text_contents()
    read = HOSTILE.replace("\ud800", "?")  # half a character is replaced where replies are read
    assert sum(one == clean(f"{read}\n  last", CHARS) for one in said) == 1
    assert sum(one == clean((read * 40)[:CHARS], CHARS) for one in said) == 1
    assert max(map(len, said)) == CHARS
    assert f"The first {CHARS} of {len(HOSTILE) * 40:,} characters." in text


def test_images_and_questions_are_those_of_the_gallery(tmp_path: Path) -> None:
    home = tmp_path / "home"
    report = dataset(home, 10)
    stored = home / "media" / PICTURE[:2] / PICTURE
    stored.parent.mkdir(parents=True)
    stored.write_bytes(b"")
    (tmp_path / "secret.jpg").write_bytes(b"")  # where the second name would lead from the folder of images
    folder = home / "scores" / "report"
    write_scores_report(report)
    (path,) = folder.glob("wrong-*.html")
    bare = articles(path.read_text())["q4"]
    assert re.findall(r"<figcaption>([^<]+)<", bare) == ["image 1"]
    assert re.findall(r'<img src="([^"]+)"', bare) == [f"../../media/01/{PICTURE}"]
    assert "#item=" not in bare
    (home / "gallery").mkdir()
    (home / "gallery" / "index.html").write_text("gallery")
    write_scores_report(report)
    found = articles(path.read_text())["q4"]
    assert re.findall(r'<img src="([^"]+)"', found) == [f"../../media/01/{PICTURE}"]
    assert (folder / f"../../media/01/{PICTURE}").resolve() == stored
    assert 'href="../../gallery/index.html#item=q4"' in found


def test_a_wrong_answer_stands_beside_its_question(tmp_path: Path) -> None:
    matrix = "[[0.9, 0.2, -0.1],\n [0.1, 0.9, 0.2]]"
    options = [f"{HOSTILE} first", matrix, "third", "fourth"]
    report = dataset(tmp_path, 10)
    asked = [
        replace(hostile_item(k, PICTURE), id=f"q{k}", question=f"Which of {k}?", options=tuple(options))
        for k in range(9)
    ]
    source = ItemSource("VGBench", tmp_path, asked)
    write_scores_report(replace(report, sources={"set": source}, folder=tmp_path / "report"))
    (path,) = (tmp_path / "report").glob("wrong-*.html")
    found = articles(path.read_text())
    assert "Which of 4?" in found["q4"]
    assert re.findall(r'<li class="([^"]+)"><b>(\w)</b>', found["q4"]) == [("is-right", "A"), ("is-chosen", "B")]
    assert f'<span class="matrix">{matrix}</span>' in found["q4"]
    assert "<script" not in path.read_text()
    assert "is-chosen" not in found["q2"]  # which could not be read
    assert all(f">Which of {name[1:]}?<" in text for name, text in found.items() if name != "q9")  # q9 is not known


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand a tab"])
def test_what_hides_nothing_stays(text: str) -> None:
    assert clean(text, 100) == text
    assert clean("\u2066a\r\nb\x1b[31m\udfff", 100) == "\ufffda\nb\ufffd[31m\ufffd"
    assert clean("abcdef", 4) == "abc\u2026"
