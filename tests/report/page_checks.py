"""What is wrong with a page in a browser: text over text, cut text, and what axe-core says of contrast and names.

axe-core is JavaScript; `make browser` puts it into `.venv-axe/`, where npm can be had.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / ".venv-axe" / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"desktop": (1440, 900), "phone": (390, 844)}

# Marks and labels that are drawn into images and plans lie over each other where what they mark does.
_LOOK = """
() => {
  const drawn = ".skip, option, .frame svg, .layers svg, .plan, title, desc, script, style";
  const shown = e => e.checkVisibility({contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true});
  const name = e => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") +
    (typeof e.className === "string" && e.className ? "." + e.className.trim().replaceAll(/\\s+/g, ".") : "");
  const clip = ({left, right, top, bottom}, e) => {
    let box = {left, right, top, bottom};
    for (let up = e; up && up !== document.body; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const edge = up.getBoundingClientRect();
      box = {left: Math.max(box.left, edge.left), right: Math.min(box.right, edge.right),
             top: Math.max(box.top, edge.top), bottom: Math.min(box.bottom, edge.bottom)};
    }
    return box;
  };
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.data.trim() || e.closest(drawn) || !shown(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const box = clip(rect, e);
      if (box.right - box.left > 2 && box.bottom - box.top > 2) lines.push({...box, node, e});
    }
  }
  lines.sort((a, b) => a.top - b.top);
  const found = [];
  for (let i = 0; i < lines.length; i++) {
    for (let k = i + 1; k < lines.length && lines[k].top < lines[i].bottom; k++) {
      const [a, b] = [lines[i], lines[k]];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      const least = Math.min(a.bottom - a.top, b.bottom - b.top);
      if (a.node === b.node || wide < 3 || high < 0.4 * least) continue;
      found.push(`overlap: "${a.node.data.trim().slice(0, 40)}" (${name(a.e)}) and ` +
        `"${b.node.data.trim().slice(0, 40)}" (${name(b.e)})`);
    }
  }
  for (const e of document.body.querySelectorAll("*")) {
    if (e.closest("svg, " + drawn) || !e.clientWidth || !e.textContent.trim() || !shown(e)) continue;
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (/auto|scroll/.test(style.overflowX) || style.display === "inline" || box.right <= 0) continue;
    if (e.scrollWidth > e.clientWidth + 1) {
      found.push(`cut: ${name(e)} is ${e.scrollWidth} px in ${e.clientWidth}: "${e.textContent.trim().slice(0, 60)}"`);
    }
  }
  const {scrollWidth: wide, clientWidth: room} = document.documentElement;
  if (wide > room) found.push(`page: ${wide} px wide in a window of ${room}`);
  return found;
}
"""
_CONTRAST = """
async () => (await axe.run(document, {runOnly: ["wcag2a", "wcag2aa"], resultTypes: ["violations"], preload: false}))
  .violations.flatMap(rule => rule.nodes.map(node =>
    `${rule.id}: ${node.target} ${node.any.map(one => one.message).join(" ")}`))
"""


@cache
def read_axe() -> str:
    """The script of axe-core. Skips the test where it is not installed."""
    path = Path(os.environ.get("VGBENCH_AXE", "") or AXE)
    if not path.is_file():
        pytest.skip(f"no axe-core here: `make browser` installs it by npm, or VGBENCH_AXE names axe.min.js ({path})")
    return path.read_text("utf-8")


def list_defects(page: Page) -> list[str]:
    """What is wrong with the page as it is shown now: overlaps, cut text, and violations of WCAG 2 A and AA."""
    found: list[Any] = page.evaluate(_LOOK)
    page.evaluate(read_axe())
    return [*map(str, found), *map(str, page.evaluate(_CONTRAST))]
