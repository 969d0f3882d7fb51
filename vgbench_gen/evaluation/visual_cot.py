"""Visual chain of thought: a model first draws into the question's images, then the question is asked with the drawing.

Protocol: `docs/protocols.md#mmsi-visual-cot`. What the drawing shows is asked for by a prompt per category, which must
not name any candidate answer. Where no drawing can be had the question is asked without, and tables tell both ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from vgbench_gen.backends.base import Backend, ImagePart, Reply, Request, Settings, TextPart
from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.paths import inside
from vgbench_gen.core.rng import digest_bytes, hash_stably
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation.options import VISUAL_COT
from vgbench_gen.evaluation.prompting import VISUAL_COT_IMAGE, Asked, add_images
from vgbench_gen.evaluation.records import ReplyLine
from vgbench_gen.store.files import dataset_error, write_bytes
from vgbench_gen.text.render import find_templates_root

DEFAULT_SET = "seed"
_AGAIN = 2  # so often a chat that brought no image is asked again, where --retries allows it
MADE, KEPT = "made", "intermediate"  # folders beside a file of replies
_GEN = re.compile(r"\[GEN_PROMPT\](.*?)\[/GEN_PROMPT\]", re.DOTALL)
_QUESTION = re.compile(r"\[QUESTION\](.*?)\[/QUESTION\]", re.DOTALL)
_MAGIC = {b"\xff\xd8\xff": "jpg", b"\x89PNG\r\n\x1a\n": "png"}


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


class Drawing(NamedTuple):
    """What the first stage brought."""

    image: Path | None
    """The file of the drawing; None where there is none."""
    text: str = ""
    """The words of the reply."""
    problem: str = ""
    """Why there is no drawing ("leak: ..." where it was not even asked for)."""


def make_first_stage(asked: Asked, name: str, model: str) -> Asked:
    """The request for the drawing of a question: one for all orders of its options.

    Args:
        asked: the question.
        name: of the prompts (`read_prompts`).
        model: who draws.

    Raises:
        ConfigError: the set has no prompt for its task.
    """
    prompt = make_drawing_prompt(name, asked.item, model)
    leak = find_leak(prompt, asked.item)
    settings = Settings(temperature=None, max_tokens=None, epoch=asked.key.epoch, stage=VISUAL_COT_IMAGE)
    return Asked(
        key=asked.key._replace(rotation=0, stage=VISUAL_COT_IMAGE),
        item=asked.item,
        images=tuple(replace(shown, tag="") for shown in asked.images),
        question="",
        text=prompt,
        settings=settings,
        long_side_px=asked.long_side_px,
        problem=f"leak: the generation prompt names {leak!r}" if leak else "",
    )


async def draw(maker: Backend, request: Request, on_reply: Callable[[Reply], None]) -> Reply:
    """The reply with a drawing; where it holds words alone it is asked for again, for caches as another request.

    on_reply: called with each reply.

    Raises:
        BackendError: the request failed.
    """
    options = getattr(maker, "options", None)
    for n in range(1 + (0 if options is None else min(options.retries, _AGAIN))):
        stage = f"{VISUAL_COT_IMAGE}-{n}" if n else VISUAL_COT_IMAGE
        reply = await edit_images(
            maker, replace(request, settings=request.settings.model_copy(update={"stage": stage}))
        )
        on_reply(reply)
        if reply.images or reply.finish_reason == "content_filter":
            break
    return reply


async def edit_images(backend: Backend, request: Request) -> Reply:
    """The images of a request changed as its words say. Raises BackendError."""
    parts = request.messages[-1].parts
    words = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return await backend.edit([part for part in parts if isinstance(part, ImagePart)], words, request.settings)


def write_drawing(folder: Path, reply: Reply) -> Drawing:
    """Keep the drawing that a reply holds, under its digest in a folder of the model."""
    data = reply.images[0] if reply.images else b""
    suffix = next((name for sign, name in _MAGIC.items() if data.startswith(sign)), "")
    if not suffix:
        return Drawing(None, reply.text, "no_image: the reply holds no JPEG or PNG")
    path = folder / MADE / f"{digest_bytes(data)}.{suffix}"
    write_bytes(path, data)
    return Drawing(path, reply.text)


def find_drawing(folder: Path, line: ReplyLine) -> Drawing | None:
    """The drawing of a reply that was kept; None where its file is gone.

    Raises:
        DatasetError: its name leads out of the folder.
    """
    name = str(next((image["name"] for image in line.images if image.get("made")), ""))
    path = inside(folder, f"{MADE}/{name}", dataset_error)
    return Drawing(path, line.response or "") if path.is_file() else None


def make_second_stage(asked: Asked, drawing: Drawing) -> Asked:
    """What is asked in the second stage: with the drawing and words about it, or, where there is none, as without."""
    return asked if drawing.image is None else add_images(asked, VISUAL_COT, [drawing.image])


def write_both_stages(folder: Path, asked: Asked, prompt: str, drawing: Drawing, answer: str | None) -> None:
    """One file per question with both stages, in the layout that judges of Visual CoT read."""
    record = {
        "doc_id": asked.key.id,
        "task": f"{asked.item.benchmark.partition('-')[0].lower()}_{asked.item.task}_visual_cot",
        "generation_prompt": prompt,
        "generated_images": [] if drawing.image is None else [f"../{MADE}/{drawing.image.name}"],
        "images": [shown.name for shown in asked.images],
        "question": asked.text,
        "stage1_text": drawing.text or None,
        "stage1_problem": drawing.problem or None,
        "stage2_answer": answer,
    }
    turn = "".join(f"-{kind}{n}" for kind, n in (("r", asked.key.rotation), ("e", asked.key.epoch)) if n)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", asked.key.id).strip(".") or hash_stably(asked.key.id)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    write_bytes(folder / KEPT / f"{name}{turn}.json", text.encode("utf-8", "replace"))
