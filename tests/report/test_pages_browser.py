"""Every page that the program writes, as Chromium shows it on a desktop and on a telephone, light and dark.

Each fails on text over text, cut text, violations of WCAG 2 AA, and whatever the browser complains about
(`open_page`). The default run looks at one page of each kind; `-m slow` at all pages of a demo set, which it makes, or
takes from the folder that VGBENCH_DEMO names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from tests.browser import OpenPage, WatchedPage, press
from tests.report.audit_report import report
from tests.report.gallery_data import Looked
from tests.report.page_checks import SIZES, list_defects
from tests.report.review_site import desk_of, running
from tests.report.test_scores_wrong import dataset
from vgbench_gen.cli.main import main
from vgbench_gen.report.audit_page import write_audit
from vgbench_gen.report.scores_page import write_scores_report


@pytest.fixture(scope="module")
def pages(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small dataset with its gallery, audit, scores and wrong answers."""
    home = tmp_path_factory.mktemp("pages") / "set"
    shutil.copytree(site, home)
    write_audit(report(), home / "audit", home)
    write_scores_report(dataset(home, 30))
    return home


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset as `make demo` builds it, with replies of baselines and of a scripted model, and all its pages."""
    root = tmp_path_factory.mktemp("demo")
    home, script = root / "demo", root / "model.jsonl"
    if named := os.environ.get("VGBENCH_DEMO", ""):
        shutil.copytree(named, home)
    else:
        scenes = str(root / "scenes")
        assert main(["samples", "--small", "--out", scenes]) == 0
        assert main(["build", "vgbench-mini", "--scenes", scenes, "--out", str(home), "--check"]) in (0, 1)
    script.write_text('{"reply": "I look at both images and compare them.\\n\\nThe answer is B.", "times": 0}\n')
    specs = ["baseline:constant", "baseline:solvers", "baseline:blind", f"scripted:{script}"]
    assert main(["eval", str(home), *(part for spec in specs for part in ("--model", spec))]) == 0
    assert main(["compare", str(home)]) in (0, 1)
    assert main(["browse", str(home)]) == 0
    return home


def look_at(open_page: OpenPage, address: str, size: str, scheme: str) -> WatchedPage:
    width, height = SIZES[size]
    watched = open_page(address, width, height, color_scheme=scheme)
    watched.page.wait_for_load_state()
    return watched


def check(page: Page, where: str) -> list[str]:
    return [f"{where}: {defect}" for defect in list_defects(page)]


def list_addresses(home: Path, names: tuple[str, ...]) -> Iterator[str]:
    for pattern in names:
        found = sorted(home.glob(pattern))
        assert found, f"no page {pattern}"
        yield from (path.as_uri() for path in found)


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "dark"), ("phone", "light")])
def test_one_page_of_each_kind(pages: Path, open_page: OpenPage, size: str, scheme: str) -> None:
    names = ("audit/index.html", "scores/report/index.html", "scores/report/wrong-*.html", "gallery/index.html")
    found = []
    for address in list_addresses(pages, names):
        found += check(look_at(open_page, address, size, scheme).page, address.rpartition("set/")[2])
    assert found == []


@pytest.mark.parametrize(
    ("size", "scheme"), [("phone", "dark"), pytest.param("desktop", "light", marks=pytest.mark.slow)]
)
def test_the_review(looked: Looked, tmp_path: Path, open_page: OpenPage, size: str, scheme: str) -> None:
    with running(desk_of(looked, tmp_path, batch=3)) as address:
        page = look_at(open_page, address, size, scheme).page
        found = check(page, "name")
        page.get_by_label("Your name").fill("ann")
        press(page, "Start")
        found += check(page, "start")
        press(page, "Begin")
        found += check(page, "answer")
        page.get_by_label("I cannot tell").check()
        page.get_by_label("Guessing").check()
        press(page, "Save and show the truth")
        found += check(page, "truth")
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_page_of_a_demo(demo: Path, open_page: OpenPage, size: str, scheme: str) -> None:
    found = []
    for address in list_addresses(demo, ("audit/*.html", "scores/report/*.html", "gallery/**/*.html")):
        watched = look_at(open_page, address, size, scheme)
        found += check(watched.page, address.rpartition("demo/")[2])
        watched.page.close()
    # One question of each kind, as the gallery shows it.
    import vgbench_gen

    kinds = {(item.task, item.question_type): item for item in vgbench_gen.load(demo)}
    for (task, form), item in sorted(kinds.items()):
        address = f"{(demo / 'gallery' / 'index.html').as_uri()}#item={quote(item.id, safe='')}"
        watched = look_at(open_page, address, size, scheme)
        watched.page.locator("#item-title").wait_for()
        found += check(watched.page, f"{task} {form}")
        watched.page.close()
    assert found == []


BROKEN = {
    "overlap": '<p>first words</p><p style="margin-top: -2.2em">other words</p>',
    "cut": '<p style="width: 60px; overflow: hidden; white-space: nowrap">words that are longer than their box</p>',
    "page": '<p style="width: 2000px">wide</p>',
    "color-contrast": '<p style="color: #aaa; background: #fff">words</p>',
    "image-alt": '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==">',
}


def test_each_defect_is_seen(tmp_path: Path, open_page: OpenPage) -> None:
    page = tmp_path / "page.html"
    whole = '<!DOCTYPE html><html lang="en"><title>A page</title><body style="background: #fff; color: #000">{}'
    page.write_text(whole.format("<p>first words</p><p>other words</p>"))
    shown = open_page(page.as_uri()).page
    assert list_defects(shown) == []
    for kind, markup in BROKEN.items():
        page.write_text(whole.format(markup))
        shown.reload()
        assert [defect.partition(":")[0] for defect in list_defects(shown)] == [kind]
