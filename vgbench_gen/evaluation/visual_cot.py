"""Visual chain of thought: a model first draws into the question's images, then the question is asked with the drawing.

Protocol: `docs/protocols.md#mmsi-visual-cot`. What the drawing shows is asked for by a prompt per category, which must
not name any candidate answer. Where no drawing can be had the question is asked without, and tables tell both ways.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import Backend, BackendError, ImagePart, Reply, Settings
from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.paths import inside
from vgbench_gen.core.rng import digest_bytes, format_canonical_json, hash_stably
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.options import VISUAL_COT
from vgbench_gen.evaluation.prompting import VISUAL_COT_IMAGE, Asked, add_images
from vgbench_gen.evaluation.replies import ReplyKey, ReplyLine, ReplyWriter, read_answered, read_line_at
from vgbench_gen.store.files import dataset_error, write_bytes
from vgbench_gen.text.render import find_templates_root

DEFAULT_SET = "seed"
_AGAIN = 2  # so often a chat that brought no image is asked again, where --retries allows it
MADE, KEPT = "made", "intermediate"  # folders beside a file of replies
_MAGIC = {b"\xff\xd8\xff": "jpg", b"\x89PNG\r\n\x1a\n": "png"}
_GEN = re.compile(r"\[GEN_PROMPT\](.*?)\[/GEN_PROMPT\]", re.DOTALL)
_QUESTION = re.compile(r"\[QUESTION\](.*?)\[/QUESTION\]", re.DOTALL)


class Prompts(Config):
    """A file of prompts for drawings."""

    sets: Mapping[str, Mapping[str, str]]
    """By the name of a set and by task: the prompt; "*" stands for all other tasks."""
    models: Mapping[str, Mapping[str, str]] = {}
    """By model and by task: the prompt of a model that has its own."""


@cache
def read_prompts(name: str) -> tuple[str, Prompts]:
    """(set, file) of a name of the shipped file, or of a file of one's own, which holds one set.

    Raises:
        ConfigError: neither.
    """
    shipped = load_toml(find_templates_root() / "visual_cot" / "mmsi.toml", Prompts)
    if name in shipped.sets:
        return name, shipped
    path = Path(name)
    if not path.is_file():
        known = ", ".join(sorted(shipped.sets))
        raise ConfigError(
            f"--generation-prompts {name}: found no such set or file; expected one of {known}, or a file."
        )
    own = load_toml(path, Prompts)
    if len(own.sets) != 1:
        raise ConfigError(f"{path}: found {len(own.sets)} sets; expected one, [sets.NAME].")
    return next(iter(own.sets)), own


def make_drawing_prompt(name: str, item: Item, model: str) -> str:
    """What a model is asked to draw for an item.

    Raises:
        ConfigError: the set has no prompt for its task.
    """
    chosen, file = read_prompts(name)
    for table in (file.models.get(model, {}), file.sets[chosen]):
        for key in (item.task, "*"):
            if table.get(key, "").strip():
                return table[key].strip()
    raise ConfigError(f"--generation-prompts {name}: found no prompt for {item.task}; expected one, or one for *.")


def find_leak(prompt: str, item: Item) -> str:
    """The candidate answer of an item that a prompt names, by its text or its letter; "" where it names none.

    A letter is a capital that stands alone; "A" before a word in small letters is the article. Of a question whose
    options could not be told apart the letters A to D are looked for.
    """
    words, signs = f" {_normalize_text(prompt)} ", _normalize_text(prompt).replace(" ", "")
    for option in item.options:
        text = _normalize_text(option)
        # Chinese and its like have no spaces between words.
        if text and (f" {text} " in words or (max(text) >= "\u2e80" and text.replace(" ", "") in signs)):
            return option
    letters = len(item.options) or 4 * (item.question_type == "multi-choice")
    for letter in ALPHABET[:letters]:
        article = r"(?!\s+[a-z])" if letter == "A" else ""
        named = rf"(?i:\b(?:option|answer|choice)\s+(?:is\s+)?){letter}\b"
        if re.search(rf"(?<![\w-]){letter}(?![\w'’-]){article}|{named}", prompt):  # noqa: RUF001
            return letter
    return ""


def _normalize_text(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def combine_stages(generation_prompt: str, question: str) -> str:
    """Both stages in one request."""
    return f"[GEN_PROMPT]{generation_prompt}[/GEN_PROMPT][QUESTION]{question}[/QUESTION]"


def split_combined(text: str) -> tuple[str | None, str]:
    """(generation prompt, question) of `combine_stages`; without both tags all of it is the question."""
    prompt, question = _GEN.search(text), _QUESTION.search(text)
    if prompt is None or question is None:
        return None, text
    return prompt.group(1).strip(), question.group(1).strip()


def make_both_stages(asked: Asked, name: str, model: str) -> str:
    """Return what would be asked in both stages about a question, as `combine_stages` joins them.

    Args:
        asked: the question.
        name, model: as in `make_drawing_prompt`.
    """
    return combine_stages(make_drawing_prompt(name, asked.item, model), add_images(asked, VISUAL_COT, []).text)


@dataclass(frozen=True, slots=True)
class Made:
    """What the first stage brought."""

    image: Path | None
    """The drawing; None where there is none."""
    text: str = ""
    """What was said beside it."""
    problem: str = ""
    """Why there is no drawing ("leak: ..." where it was not even asked for)."""


class Stages:
    """The first stage for one model's questions: each drawing is made once, and kept.

    Args:
        source: of images.
        name: of the prompts, see `read_prompts`.
        maker: who draws.
        replies: the file of replies; drawings go into a folder beside it.
        settings: of the answers; the first stage takes over their epoch.
    """

    def __init__(self, source: Source, name: str, maker: Backend, replies: Path) -> None:
        self._source, self._name, self._maker = source, name, maker
        self._folder = replies.with_suffix("")
        self._tasks: dict[tuple[str, int], asyncio.Task[Made]] = {}
        self._replies, self._at = replies, read_answered(replies).at
        self._lines: dict[ReplyKey, ReplyLine] = {}
        self.failed = 0

    def known(self, asked: Asked) -> Made | None:
        """The drawing for a question where it is there already, or cannot be asked for; None where it is to be made."""
        prompt = make_drawing_prompt(self._name, asked.item, self._maker.spec)
        if leak := find_leak(prompt, asked.item):
            return Made(None, "", f"leak: the generation prompt names {leak!r}")
        key, digest = _make_key(asked), self._digest(asked, prompt)
        line = self._lines.get(key)
        if line is None and (at := self._at.get(key, {}).get(digest)) is not None:
            line = read_line_at(self._replies, at)
        if line is None or line.failed or line.request_digest != digest:
            return None
        named = str(next((image["name"] for image in line.images if image.get("made")), ""))
        path = inside(self._folder, f"{MADE}/{named}", dataset_error)
        return Made(path, line.response or "") if path.is_file() else None

    async def make(self, asked: Asked, writer: ReplyWriter, on_reply: Any) -> Made:
        """The drawing, asked for once however many orders of the options need it.

        on_reply: called with the reply, where there is one.

        Raises:
            BackendError: the budget is spent, the key is refused, or the work was cancelled.
        """
        if (known := self.known(asked)) is not None:
            return known
        name = (asked.key.id, asked.key.epoch)
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._make(asked, writer, on_reply))
        return await asyncio.shield(self._tasks[name])

    async def _make(self, asked: Asked, writer: ReplyWriter, on_reply: Any) -> Made:
        prompt = make_drawing_prompt(self._name, asked.item, self._maker.spec)
        images = [ImagePart(self._source.image(shown.item, shown.k), asked.long_side_px) for shown in asked.images]
        try:
            reply = await self._drawn(images, prompt, asked.key.epoch, on_reply)
        except BackendError as error:
            if error.kind in ("budget", "cancelled", "refused_key"):
                raise
            self._keep(asked, prompt, writer, error=f"{error.kind}: {error}")
            return Made(None, "", f"{error.kind}: {error}")
        data = reply.images[0] if reply.images else b""
        suffix = next((name for sign, name in _MAGIC.items() if data.startswith(sign)), "")
        if not suffix:
            self._keep(asked, prompt, writer, reply, error="no_image: the reply holds no JPEG or PNG")
            return Made(None, reply.text, "no_image: the reply holds no JPEG or PNG")
        path = self._folder / MADE / f"{digest_bytes(data)}.{suffix}"
        write_bytes(path, data)
        self._keep(asked, prompt, writer, reply, path=path)
        return Made(path, reply.text)

    async def _drawn(self, images: list[ImagePart], prompt: str, epoch: int, on_reply: Any) -> Reply:
        """The reply of who draws; where it holds words alone it is asked for again, for caches as another request."""
        options = getattr(self._maker, "options", None)
        for n in range(1 + (0 if options is None else min(options.retries, _AGAIN))):
            stage = f"{VISUAL_COT_IMAGE}-{n}" if n else VISUAL_COT_IMAGE
            settings = Settings(temperature=None, max_tokens=None, epoch=epoch, stage=stage)
            reply = await self._maker.edit(images, prompt, settings)
            on_reply(reply)
            if reply.images or reply.finish_reason == "content_filter":
                break
        return reply

    def _digest(self, asked: Asked, prompt: str) -> str:
        shown = [image.name for image in asked.images]
        return hash_stably(format_canonical_json([1, prompt, shown, asked.long_side_px, self._maker.spec]), size=16)

    def _keep(
        self,
        asked: Asked,
        prompt: str,
        writer: ReplyWriter,
        reply: Reply | None = None,
        path: Path | None = None,
        error: str = "",
    ) -> None:
        self.failed += bool(error)
        line = ReplyLine(
            **_make_key(asked)._asdict(),
            benchmark=asked.item.benchmark,
            model=self._maker.model if reply is None else reply.model,
            request_digest=self._digest(asked, prompt),
            response=None if reply is None else reply.text,
            images=(*({"name": shown.name} for shown in asked.images),
                    *(({"name": path.name, "made": True},) if path is not None else ())),
            finish_reason="" if reply is None else reply.finish_reason,
            usage={} if reply is None or reply.usage is None else {
                "prompt_tokens": reply.usage.prompt_tokens, "completion_tokens": reply.usage.completion_tokens},
            cost_usd=None if reply is None else reply.cost_usd,
            latency_s=0.0 if reply is None else reply.latency_s,
            error=error,
            time=round(time.time(), 3),
        )  # fmt: skip
        writer.append(line)
        self._lines[line.key] = line

    @property
    def under_way(self) -> list[asyncio.Task[Made]]:
        """What is being drawn."""
        return [task for task in self._tasks.values() if not task.done()]

    async def close(self) -> None:
        """Leave off what is still being drawn."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def save_intermediate(self, asked: Asked, made: Made, answer: str | None) -> None:
        """One file per sample with both stages, in the layout that judges of Visual CoT read."""
        prompt = make_drawing_prompt(self._name, asked.item, self._maker.spec)
        record = {
            "doc_id": asked.key.id,
            "task": f"{asked.item.benchmark.partition('-')[0].lower()}_{asked.item.task}_visual_cot",
            "generation_prompt": prompt,
            "generated_images": [] if made.image is None else [f"../{MADE}/{made.image.name}"],
            "images": [shown.name for shown in asked.images],
            "question": asked.text,
            "stage1_text": made.text or None,
            "stage1_problem": made.problem or None,
            "stage2_answer": answer,
        }
        turn = "".join(f"-{kind}{n}" for kind, n in (("r", asked.key.rotation), ("e", asked.key.epoch)) if n)
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", asked.key.id).strip(".") or hash_stably(asked.key.id)
        text = json.dumps(record, indent=2, ensure_ascii=False)
        write_bytes(self._folder / KEPT / f"{name}{turn}.json", text.encode("utf-8", "replace"))


def _make_key(asked: Asked) -> ReplyKey:
    return asked.key._replace(rotation=0, stage=VISUAL_COT_IMAGE)


def make_second_stage(asked: Asked, made: Made) -> Asked:
    """What is asked in the second stage: with the drawing and words about it, or, where there is none, as without."""
    return asked if made.image is None else add_images(asked, VISUAL_COT, [made.image])
