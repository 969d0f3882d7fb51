"""Two people at the keyboard and one at a telephone, in a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

from tests.browser import OpenPage, press
from tests.report.gallery_data import Looked
from tests.report.review_site import desk_of, running
from vgbench_gen.quality.review.log import read_logs
from vgbench_gen.quality.review.session import ReviewQueue
from vgbench_gen.quality.review.status import count_verdicts


@pytest.fixture
def queue(looked: Looked, tmp_path: Path) -> ReviewQueue:
    return desk_of(looked, tmp_path, batch=3)


@pytest.fixture
def server(queue: ReviewQueue) -> Iterator[str]:
    """Tests name it before `open_page`: it must outlive the pages, which may still ask for an image at the end."""
    with running(queue) as url:
        yield url


def shot(page: Page, name: str) -> None:
    """Keep a picture where a person asked for them (VGBENCH_SHOTS names a folder)."""
    folder = os.environ.get("VGBENCH_SHOTS", "")
    if folder:
        page.screenshot(path=str(Path(folder) / f"review-{name}.png"), full_page=True)


def sign_in(page: Page, name: str) -> None:
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    page.get_by_text("Signed in as").wait_for()
    page.wait_for_load_state()  # the page hears keys once its script has run
    page.keyboard.press("Enter")
    page.wait_for_url("**/item/*")


def give_answer(page: Page) -> str:
    """Answer by keys whatever is asked; returns the address of the item."""
    assert page.locator("svg").count() == 0
    if page.locator("#number").count():
        page.locator("#number").fill("1,5")
        page.locator("#number").press("Escape")
    elif page.locator("[data-key=y]").count():
        page.keyboard.press("n")
    else:
        page.keyboard.press("2")
        assert page.locator("[value=B]").is_checked()
        page.keyboard.press("d")
        assert page.locator("[value=D]").is_checked()
    place = page.url
    page.keyboard.press("g")
    page.keyboard.press("Enter")
    page.wait_for_url("**/truth")
    return place


def judge(page: Page, keys: str) -> None:
    before = page.url
    for key in keys:
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != before)


def test_two_reviewers_by_keys(server: str, open_page: OpenPage, queue: ReviewQueue) -> None:
    ann = open_page(server, 1280, 800)
    shot(ann.page, "start")
    sign_in(ann.page, "Ann")
    shot(ann.page, "answer-desktop")
    assert ann.page.locator("kbd:not(.letter):visible").count() >= 4
    first = give_answer(ann.page)
    assert ann.page.get_by_text("Stated answer:").is_visible()
    shot(ann.page, "truth-desktop")
    drawn = ann.page.locator("svg")
    if drawn.count():
        ann.page.keyboard.press("h")
        assert not drawn.first.is_visible()
        ann.page.keyboard.press("h")
        assert drawn.first.is_visible()
    ann.page.keyboard.press("/")
    ann.page.keyboard.type("v and w in a note are letters")
    ann.page.keyboard.press("Escape")
    judge(ann.page, "iwo")
    (line,) = [line for line in read_logs(queue.folder)["ann"] if line.stage == "verdict"]
    assert (line.verdict, line.flags, line.note) == (
        "invalid", ("wrong_answer", "unclear"), "v and w in a note are letters",
    )  # fmt: skip
    # A second thought: back to the item before.
    give_answer(ann.page)
    ann.page.keyboard.press("b")
    ann.page.wait_for_url(first + "/truth")
    assert ann.page.locator("[value=wrong_answer]").is_checked()
    judge(ann.page, "u")
    assert [x.verdict for x in read_logs(queue.folder)["ann"] if x.stage == "verdict"] == ["invalid", "unsure"]
    ann.page.wait_for_url("**/truth")
    judge(ann.page, "it")

    bob = open_page(server, 1280, 800, color_scheme="dark")
    sign_in(bob.page, "bob")
    for _ in range(4):
        give_answer(bob.page)
        judge(bob.page, "it")
    bob.page.get_by_text("This batch: 0 of").wait_for()
    shot(bob.page, "start-dark")
    verdicts = count_verdicts(read_logs(queue.folder), queue.entries).verdicts
    assert sum(any(j.reviewer == "bob" for j in given) for given in verdicts.values()) == 3


def test_on_a_telephone_without_scripts(server: str, open_page: OpenPage, queue: ReviewQueue) -> None:
    cyd = open_page(server, 390, 844, java_script_enabled=False, has_touch=True, is_mobile=True)
    page = cyd.page
    page.get_by_label("Your name").fill("cyd")
    press(page, "Start")
    press(page, "Begin")
    for n in range(4):
        shot(page, f"answer-phone-{n}")
        assert page.locator("kbd:not(.letter):visible, .keys:visible").count() == 0  # a telephone has no keyboard
        page.get_by_label("I cannot tell").check()
        page.get_by_label("Guessing").check()
        press(page, "Save and show the truth")
        shot(page, f"truth-phone-{n}")
        page.get_by_label("Valid", exact=False).first.check()
        press(page, "Save and go on")
    page.get_by_text("This batch: 0 of").wait_for()
    shot(page, "start-phone")


def test_pages_fit_a_telephone_and_have_names(server: str, open_page: OpenPage, queue: ReviewQueue) -> None:
    dan = open_page(server, 390, 844)
    sign_in(dan.page, "dan")
    for _ in range(3):
        assert dan.overflow_px() == 0
        assert all(box["height"] >= 40 for box in map(_box, dan.page.locator(".choice").all()))
        give_answer(dan.page)
        assert dan.overflow_px() == 0
        assert dan.page.locator("img:not([alt]), input:not([id]):not(label input)").count() == 0
        dan.page.locator("#full").check()
        image = dan.page.locator("img").first
        assert _box_width(image) == int(image.get_attribute("width") or 0)
        assert dan.overflow_px() == 0  # the image scrolls, not the page
        judge(dan.page, "it")


def _box(element: Locator) -> dict[str, float]:
    found = element.bounding_box()
    assert found is not None
    return dict(found)  # type: ignore[arg-type]


def _box_width(element: Locator) -> float:
    return _box(element)["width"]
