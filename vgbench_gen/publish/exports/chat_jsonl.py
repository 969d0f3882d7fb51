"""`chat-jsonl`: OpenAI-style messages with images as paths, for evaluation or, with answers, for training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgbench_gen.publish.export import Export, ExportRow, Job, exports


@exports.register("chat-jsonl")
class ChatJsonl(Export):
    """Writes `NAME.jsonl` and `images/`; the messages end with the right answer if answers are requested."""

    takes_answers = True

    def write(self, job: Job) -> str:
        job.json_lines(f"{job.name}.jsonl", _make_records(job))
        answers = "The last message is the right answer." if job.answers else "The messages do not hold the answer."
        job.template("chat-jsonl/README.md", "README.md", answers=answers)
        note = "" if job.answers else "; without --answers nothing can be trained on it"
        return f"{job.name}.jsonl has one conversation per line; image paths are relative to its folder{note}"


def _make_records(job: Job) -> Iterator[dict[str, Any]]:
    for row in job.rows():
        messages = _make_messages(row, job.settings.system, job.answers)
        yield {**row.record(), "messages": messages, "images": list(row.images)}


def _make_messages(row: ExportRow, system: str, answers: bool) -> list[dict[str, Any]]:
    content = [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image_url", "image_url": {"url": part["path"]}}
        for part in row.parts()
    ]
    # All contents are lists: a column of texts and lists is refused by loaders of tables.
    messages = [_make_message("system", system)] if system else []
    messages.append({"role": "user", "content": content})
    return [*messages, _make_message("assistant", row.reply)] if answers else messages


def _make_message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}
