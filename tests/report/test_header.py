"""The header of the pages of a dataset: who links to whom, and that a page written later is linked from all others."""

from __future__ import annotations

import re
from pathlib import Path

from tests.report.audit_report import report
from tests.report.gallery_data import Looked
from vgbench_gen.report.audit_page import write_audit
from vgbench_gen.report.gallery import make_gallery
from vgbench_gen.report.header import AUDIT, GALLERY, SCORES, PageHeader, cut_links, find_home, refresh_headers


def read_links(page: Path) -> dict[str, Path]:
    """The files that the header of a page leads to, by label."""
    header = page.read_text("utf-8").partition("</header>")[0].partition("<header")[2]
    found = re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', header)
    return {label: (page.parent / address).resolve() for address, label in found}


def read_current(page: Path) -> str:
    found = re.findall(r'aria-current="page">([^<]*)</a>', page.read_text("utf-8").partition("</header>")[0])
    assert len(found) == 1
    return str(found[0])


def test_pages_written_later_are_linked_from_those_written_before(looked: Looked, tmp_path: Path) -> None:
    home = tmp_path / "set"
    home.mkdir()
    (home / "items").symlink_to((looked.folder / "items").resolve())
    gallery = make_gallery(home, max_items=4).index.parent
    pages = [gallery / "index.html", gallery / "plots.html", next((gallery / "scene").glob("*.html"))]
    assert all(list(read_links(page)) == ["Questions", "Scenes", "Charts"] for page in pages)
    assert [read_current(page) for page in pages] == ["Questions", "Charts", "Scenes"]
    audit = write_audit(report(), home / "audit", home)
    for page in (*pages, audit):
        links = read_links(page)
        assert list(links) == ["Questions", "Scenes", "Charts", "Audit"]
        assert all(target.is_file() for target in links.values())
    assert read_current(audit) == "Audit"
    # What is up to date is not written again, and a page that is gone is linked no more.
    assert refresh_headers(home) == 0
    audit.unlink()
    assert refresh_headers(home) == len(list(gallery.glob("**/*.html")))
    assert "Audit" not in read_links(pages[0])


def test_only_the_header_of_a_page_changes(tmp_path: Path) -> None:
    home = tmp_path / "set"
    header = PageHeader(GALLERY, home / GALLERY, {"set": home}).render("index.html")
    (home / GALLERY).mkdir(parents=True)
    (home / GALLERY / "index.html").write_text(f"before {header} after <!--pages-->kept<!--/pages-->", "utf-8")
    (home / GALLERY / "own.html").write_text("somebody's own page", "utf-8")
    (home / SCORES).mkdir(parents=True)
    (home / SCORES / "index.html").write_text("scores", "utf-8")
    assert refresh_headers(home) == 1
    written = (home / GALLERY / "index.html").read_text("utf-8")
    assert written.startswith("before <!--pages-->")
    assert written.endswith(" after <!--pages-->kept<!--/pages-->")
    assert "scores/report/index.html" in written


def test_a_movable_gallery_leads_nowhere_out(tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "index.html").write_text("audit", "utf-8")
    header = PageHeader(GALLERY, tmp_path / GALLERY, {"set": tmp_path}, movable=True).render("index.html")
    assert "../" not in header
    assert "<!--" not in header


def test_a_copy_that_stands_alone_leads_nowhere_until_it_is_at_home_again(tmp_path: Path) -> None:
    (tmp_path / GALLERY).mkdir()
    (tmp_path / GALLERY / "index.html").write_text("", "utf-8")
    header = PageHeader(AUDIT, tmp_path / AUDIT, {tmp_path.name: tmp_path}).render("index.html")
    page = f"<p>before</p>{header}<p>after</p>".encode()
    assert b"gallery/index.html" in page
    copy = cut_links(page)
    assert b"href" not in copy
    assert copy.startswith(b"<p>before</p>")
    assert copy.endswith(b"<p>after</p>")
    assert cut_links(b"no header") == b"no header"
    (tmp_path / AUDIT).mkdir()
    (tmp_path / AUDIT / "index.html").write_bytes(copy)
    assert refresh_headers(tmp_path) == 1
    assert (tmp_path / AUDIT / "index.html").read_bytes() == page


def test_reports_about_several_datasets_lead_to_the_gallery_of_each(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name / GALLERY).mkdir(parents=True)
        (tmp_path / name / GALLERY / "index.html").write_text("", "utf-8")
    homes = {name: tmp_path / name for name in ("a", "b", "c")}
    header = PageHeader(SCORES, tmp_path / "out", homes).render("index.html")
    assert re.findall(r'href="([^"]*)"', header) == ["index.html", "../a/gallery/index.html", "../b/gallery/index.html"]


def test_names_are_escaped_and_addresses_quoted(tmp_path: Path) -> None:
    home = tmp_path / '"><script>'
    (home / GALLERY).mkdir(parents=True)
    (home / GALLERY / "index.html").write_text("", "utf-8")
    header = PageHeader(SCORES, tmp_path / "out", {home.name: home}).render("index.html")
    assert "<script>" not in header
    assert "%22%3E%3Cscript%3E/gallery/index.html" in header


def test_the_home_of_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "items").mkdir()
    (tmp_path / "items" / "a.parquet").write_text("", "utf-8")
    assert find_home(tmp_path / "items") == tmp_path / "items"
    (tmp_path / "manifest.json").write_text("{}", "utf-8")
    assert (
        find_home(tmp_path) == find_home(tmp_path / "items") == find_home(tmp_path / "items" / "a.parquet") == tmp_path
    )
