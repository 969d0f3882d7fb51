"""Every citation of our own pages leads somewhere, and no page outside the repository is cited.

A citation is `docs/page.md` with or without `#anchor`, in code, comments, templates and pages, and a Markdown link to
another page or to a heading of its own. Anchors are the slugs that GitHub and MyST make of headings.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
READ = {".py", ".md", ".toml", ".sh", ".yaml", ".yml", ".txt", ".cfg", ".cff", ".j2", ".html", ".js", ".css", ""}
CITED = re.compile(r"(?<![\w/])docs/([\w-]+\.md)(?:#([\w-]+))?")
LINK = re.compile(r"\[[^\]\n]*\]\(([^()\s:]+\.md)?(?:#([\w-]+))?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#* *$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
# Names of notes that the project was planned with; they are in no repository.
OUTSIDE = re.compile(r"benchmark-validity|dataset-formats|eval-protocols|style-anchors|task-families|house\.md")
# What would be found by these patterns but is not a citation: this file.
SELF = "tests/test_citations.py"


def slug(heading: str) -> str:
    """GitHub's anchor of a heading: lower case, without punctuation, spaces turned into hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(markdown: str) -> set[str]:
    """Anchors of all headings; the second of the same name ends in -1, the third in -2."""
    seen: dict[str, int] = {}
    found = set()
    for heading in HEADING.findall(FENCE.sub("", markdown)):
        name = slug(heading)
        found.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return found


def tracked() -> list[str]:
    """Files in git, relative to the repository, without tests' data."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs the git repository: what counts is that cited files are in it")
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    return [name for name in names if Path(name).suffix in READ and name != SELF]


def broken(name: str, text: str, pages: dict[str, set[str]]) -> list[str]:
    """What one file cites that does not exist. pages: path in the repository -> anchors of the page."""
    cited = [(f"docs/{page}", anchor) for page, anchor in CITED.findall(text)]
    if name.endswith(".md"):
        for page, anchor in LINK.findall(FENCE.sub("", text)):
            path = (Path(name).parent / page) if page else Path(name)
            cited.append((str(Path(*_resolved(path.parts))), anchor))
    found = []
    for page, anchor in cited:
        if page not in pages:
            found.append(f"{name} cites {page}, which is not in git")
        elif anchor and anchor not in pages[page]:
            found.append(f"{name} cites {page}#{anchor}, but no heading there has this anchor")
    found += [f"{name} cites a page outside the repository: {word}" for word in OUTSIDE.findall(text)]
    return found


def _resolved(parts: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for part in parts:
        if part == "..":
            found = found[:-1]
        elif part != ".":
            found.append(part)
    return found


def test_citations_resolve() -> None:
    names = tracked()
    texts = {name: (ROOT / name).read_text(encoding="utf-8", errors="replace") for name in names}
    pages = {name: anchors(text) for name, text in texts.items() if name.endswith(".md")}
    problems = [line for name, text in texts.items() for line in broken(name, text, pages)]
    assert not problems, "\n".join(problems)
    assert sum(len(CITED.findall(text)) for text in texts.values()) > 100  # the pattern finds what is there


def test_a_broken_citation_is_told() -> None:
    pages = {"docs/validity.md": anchors("# When\n\n## Noise test\n\n```\n# no heading\n```\n## Noise test\n")}
    assert pages["docs/validity.md"] == {"when", "noise-test", "noise-test-1"}
    assert not broken("a.py", "see `docs/validity.md#noise-test` and docs/validity.md", pages)
    assert not broken("docs/validity.md", "[here](#noise-test), [there](validity.md#when)", pages)
    assert not broken("README.md", "[page](docs/validity.md#noise-test-1)", pages)
    assert len(broken("a.py", "`docs/validity.md#noise`", pages)) == 1
    assert len(broken("a.py", "`docs/other.md`", pages)) == 1
    assert len(broken("docs/validity.md", "[a](#no) [b](../README.md) [c](validity.md#also-no)", pages)) == 3
    assert len(broken("a.py", "`benchmark-validity` 3.2", pages)) == 1


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Noise test", "noise-test"),
        ("ScanNet++ (iPhone and DSLR)", "scannet-iphone-and-dslr"),
        ("`point_tracking`, and *more*", "point_tracking-and-more"),
        ("CA-1M", "ca-1m"),
    ],
)
def test_slugs_are_githubs(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor
