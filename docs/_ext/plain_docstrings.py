"""Docstrings as they are written here: Markdown's single backticks are code, and citations of pages become links.

Docstrings are read in an editor first, so they are no reStructuredText. What napoleon has made of them is adapted in
three places: `code` gets double backticks, a citation of a page becomes a link within the site, and characters that
reStructuredText would take for marks are escaped. Docstrings of attributes do not go through napoleon, which takes
what stands before the first colon for a type; ours are sentences.
"""

from __future__ import annotations

import re
from typing import Any

CITATION = re.compile(r"^docs/([\w-]+)\.md(?:#([\w-]+))?$")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
ATTRIBUTES = frozenset({"attribute", "data", "property"})  # as napoleon has it
ROLE = re.compile(r":[\w:]+:$")


def adapted(lines: list[str], up: str = "../") -> list[str]:
    """Lines of a docstring as reStructuredText. up: from the page that shows them to the root of the site."""
    found = []
    for line in lines:
        if line.lstrip().startswith((".. ", ":")):  # what napoleon made: fields and directives
            head, mark, rest = line.partition(": ") if line.lstrip().startswith(":") else (line, "", "")
            found.append(head + mark + _text(rest, up))
        else:
            found.append(_text(line, up))
    return found


def _text(line: str, up: str) -> str:
    parts, last = [], 0
    for match in CODE.finditer(line):
        before = line[last : match.start()]
        if ROLE.search(before):  # a role of napoleon's or of an author's own
            parts.append(before + match[0])
        else:
            parts.append(_escaped(before) + _code(match[1], up))
        last = match.end()
    return "".join(parts) + _escaped(line[last:])


def _escaped(text: str) -> str:
    text = re.sub(r"(?<![\\*])\*(?!\*)(?=\w)", r"\\*", text)  # *args
    text = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)  # a name that ends in an underscore would be a link
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def _code(text: str, up: str) -> str:
    if cited := CITATION.match(text):
        page, anchor = cited[1], cited[2] or ""
        title = ": ".join(part.replace("-", " ") for part in (page, anchor) if part)
        return f"`{title} <{up}{page}.html{'#' if anchor else ''}{anchor}>`__"
    return f"``{text}``"


def _keep(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what in ATTRIBUTES:
        app.attribute_docstrings[name] = list(lines)


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    up = "../" * app.env.docname.count("/") if getattr(app.env, "docname", "") else "../"
    lines[:] = adapted(app.attribute_docstrings.pop(name, lines), up)


def setup(app: Any) -> dict[str, bool]:
    """Adapt docstrings after napoleon has read their sections."""
    app.attribute_docstrings = {}
    app.connect("autodoc-process-docstring", _keep, priority=100)
    app.connect("autodoc-process-docstring", _process, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
