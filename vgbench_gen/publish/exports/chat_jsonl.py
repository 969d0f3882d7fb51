"""OpenAI-style messages, one question per line, with images as paths: for evaluation, or with answers for training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgbench_gen.publish.export import Export, ExportRow, Job, exports


@exports.register("chat-jsonl")
class ChatJsonl(Export):
    """`NAME.jsonl` and `images/`; the messages hold the answer only where it was asked for."""

    takes_answers = True

    def write(self, job: Job) -> str:

        def records() -> Iterator[dict[str, Any]]:
            for row in job.rows():
                yield {
                    **row.record(),
                    "messages": _make_messages(row, job.settings.system, job.answers),
                    "images": list(row.images),
                }

        job.json_lines(f"{job.name}.jsonl", records())
        answers = "The last message is the right answer." if job.answers else "The messages do not hold the answer."
        job.template("chat-jsonl/README.md", "README.md", answers=answers)
        return f"{job.name}.jsonl has one conversation per line; image paths are relative to its folder"


def _make_messages(row: ExportRow, system: str, answers: bool) -> list[dict[str, Any]]:
    content = [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image_url", "image_url": {"url": part["path"]}}
        for part in row.parts()
    ]
    found: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    found.append({"role": "user", "content": content})
    if answers:
        found.append({"role": "assistant", "content": row.asked.item.answer})
    return found
