"""MMSI-Bench in the files in which it is published, and a server that draws and answers."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.backends.server import Play, Seen, reply
from vgbench_gen.evaluation.benchmarks.mmsi.questions import TYPES

KINDS = list(TYPES.values())
OPTIONS = ("the kettle", "the lamp", "the sofa", "the stairs")
DRAWS = "/images/edits"


def png(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    return bytes(cv2.imencode(".png", rng.integers(0, 255, (6, 8, 3)).astype(np.uint8))[1])


def question(k: int, options: Sequence[str] = OPTIONS) -> str:
    told = ", ".join(f"{letter}: {text}" for letter, text in zip("ABCDEF", options, strict=False))
    return f"What is at place {k}? \nOptions: {told}"


def row(k: int, **more: Any) -> dict[str, Any]:
    """Question k of the kind k (mod 11) with two or three images of its own."""
    given = {
        "id": k,
        "images": [png(10 * k + n) for n in range(2 + k % 2)],
        "question_type": KINDS[k % len(KINDS)],
        "question": question(k),
        "answer": "ABCD"[k % 4],
        "thought": "never shown",
    }
    return given | more


def write(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([*rows]), folder / "MMSI_Bench.parquet", row_group_size=4)
    return folder


def pictures(seen: Seen) -> list[bytes]:
    """Images of a request in order, of a chat's last message or of a form."""
    if draws(seen):
        return [data for name, data in form(seen) if name.startswith("image")]
    content = seen.json["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in content if not isinstance(part, str) and part["type"] == "image_url"]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def draws(seen: Seen) -> bool:
    """Whether a request came to the endpoint for edits."""
    return seen.path.partition("?")[0].endswith(DRAWS)


def form(seen: Seen) -> list[tuple[str, bytes]]:
    """(name, content) of the parts of a multipart body."""
    boundary = b"--" + seen.headers["content-type"].partition("boundary=")[2].strip('"').encode()
    found = []
    for part in seen.body.split(boundary)[1:-1]:
        head, _, body = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = head.decode().partition('name="')[2].partition('"')[0]
        found.append((name, body.removesuffix(b"\r\n")))
    return found


def prompt(seen: Seen) -> str:
    """What is to be drawn."""
    return dict(form(seen))["prompt"].decode() if draws(seen) else seen.text


def image_url(data: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(data).decode()}"}}


@dataclass
class Studio:
    """Draws on the endpoint for edits, or in a chat for prompts that ask to create something, and answers the rest.

    drawn: (pictures, prompt) of the requests for drawings; asked: (pictures, words) of the others, in order of arrival.
    draws, answers: what comes back to the n-th image's name; a Play in its place goes out as it is.
    """

    draws: Callable[[bytes], bytes | Play]
    answers: Callable[[str], str | Play] = lambda words: "``A``"
    delay_s: float = 0.0
    drawn: list[tuple[list[bytes], str]] = field(default_factory=list)
    asked: list[tuple[list[bytes], str]] = field(default_factory=list)

    def __call__(self, seen: Seen) -> Play:
        shown = pictures(seen)
        if draws(seen) or seen.text.startswith("Create a visualization"):
            self.drawn.append((shown, prompt(seen)))
            made = self.draws(shown[0])
            play = made if isinstance(made, Play) else self._made(made, draws(seen))
        else:
            self.asked.append((shown, seen.text))
            said = self.answers(seen.text)
            play = said if isinstance(said, Play) else reply(said)
        return Play(play.status, play.body, play.headers, self.delay_s, play.cut, play.broken)

    @staticmethod
    def _made(data: bytes, endpoint: bool) -> Play:
        if not endpoint:
            message = {"role": "assistant", "content": "Here it is.", "images": [image_url(data)]}
            return reply(choices=[{"index": 0, "message": message, "finish_reason": "stop"}])
        tree = {"created": 1, "data": [{"b64_json": base64.b64encode(data).decode()}],
                "usage": {"input_tokens": 50, "output_tokens": 7, "total_tokens": 57}}  # fmt: skip
        return Play(body=json.dumps(tree).encode())

    def drawings_of(self, first: bytes) -> int:
        """How often a drawing was asked for of the question whose first image this is."""
        return Counter(shown[0] for shown, _ in self.drawn)[first]


def drawing(first: bytes) -> bytes:
    """What `Studio` makes of a question: depends on its first image alone."""
    return png(int.from_bytes(first[-20:-16]) + 5_000_000)
