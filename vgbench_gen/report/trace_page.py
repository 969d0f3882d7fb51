"""The trace of an agent as one page: the question, what its core model thought and called, what tools gave and where.

Texts of a trace are hostile: they are escaped by the template, and characters that would reorder or hide what stands
around them are replaced. The page has no script and loads nothing but the images it is given.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from vgbench_gen.agent.replay import DialogueStep, TracedImage, replay
from vgbench_gen.report.site import make_environment, make_inline_style
from vgbench_gen.report.trace_marks import TraceMark, find_marks

_HEIGHT = 480  # of drawings, in their own units
_GAP = 16
_MAX_CHARS = 20_000  # of one text
OURS = "vgbench trace"  # by which pages of an earlier run are known


def make_trace_page(
    trace: Mapping[str, Any], images: Mapping[str, bytes | str], title: str = "", back: str = "", header: str = ""
) -> str:
    """The page, whole.

    Args:
        trace: as `Trace.to_json` wrote it.
        images: name in the trace -> the encoded image, which goes into the page, or its address, relative to the page.
            Images that are missing are left out.
        title: of the page; who answered, where none is given.
        back: address of the page that leads here; "" for none.
        header: markup of the header; "" for none.
    """
    style, csp = make_inline_style("img-src 'self' data:; ", ("audit.css", "trace.css"))
    steps = replay(trace)
    shown = {image.name: image for step in steps for image in step.images if image.name in images}
    numbers = {name: k for k, name in enumerate(shown)}
    tiers, failures = trace.get("tiers"), trace.get("failures")
    return make_environment().get_template("trace.html.j2").render(
        ours=OURS,
        most=_MAX_CHARS,
        back=back,
        csp=csp,
        header=header,
        style=style,
        title=title or f"{trace.get('kind', 'agent')} with {trace.get('core', 'a model')}",
        facts=[trace.get(key, "") for key in ("kind", "mode", "core")],
        tiers=tiers if isinstance(tiers, list) else [],
        failures=sorted((str(name), str(n)) for name, n in failures.items()) if isinstance(failures, Mapping) else [],
        question=steps[0].text,
        images=[(name, numbers[name], image.size_px) for name, image in shown.items() if not image.made_by],
        sources=[(numbers[name], _make_address(images[name]), image.size_px) for name, image in shown.items()],
        steps=[_make_step(step, shown, numbers) for step in steps[1:]],
        answer=trace.get("answer", ""),
    )  # fmt: skip


def _make_step(step: DialogueStep, shown: Mapping[str, TracedImage], numbers: Mapping[str, int]) -> dict[str, Any]:
    if step.call is None:
        return {"step": step, "calls": [(call.name, _format_lines(call.arguments)) for call in step.calls]}
    given = step.call.arguments.get("image", step.call.arguments.get("images", ()))
    names = given if isinstance(given, list | tuple) else [given]
    used = [shown[name] for name in names if isinstance(name, str) and name in shown][:2]
    marks = find_marks(step.call.arguments, step.values, [image.size_px for image in used])
    return {
        "step": step,
        "arguments": _format_lines(step.call.arguments),
        "gave": _format_lines(step.values),
        "drawing": _draw(used, marks, numbers) if marks else None,
        "made": [(image.name, numbers[image.name], image.size_px) for image in step.images if image.name in numbers],
    }


def _draw(used: list[TracedImage], marks: list[TraceMark], numbers: Mapping[str, int]) -> dict[str, Any]:
    """A drawing of the images of a call beside each other at one height, with its marks over them."""
    placed: list[dict[str, Any]] = []
    x = 0.0
    for image in used:
        width, height = image.size_px
        scale = _HEIGHT / max(1, height)
        placed.append({"number": numbers[image.name], "name": image.name, "x": round(x, 2), "scale": scale})
        x += width * scale + _GAP
    drawn = []
    for k, mark in enumerate(marks):
        places = (0, 1) if mark.kind == "match" else (mark.place,) * (len(mark.numbers) // 2)
        at = [
            (
                round(placed[place]["x"] + (mark.numbers[2 * j] + 0.5) * placed[place]["scale"], 2),
                round((mark.numbers[2 * j + 1] + 0.5) * placed[place]["scale"], 2),
            )
            for j, place in enumerate(places)
        ]
        drawn.append({"kind": mark.kind, "at": at, "label": mark.label, "color": k % 4})
    return {"width": round(x - _GAP, 2), "height": _HEIGHT, "images": placed, "marks": drawn}


def _make_address(image: bytes | str) -> str:
    if isinstance(image, str):
        return image
    kind = "png" if image.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"


def _format_lines(value: Mapping[str, Any]) -> str:
    """One line per key, so that long lists stay short."""
    return "\n".join(f"{key}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items())
