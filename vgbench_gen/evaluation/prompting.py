"""From a question to what a model is sent: words from `templates/prompts/`, images in the order they are shown."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import ImagePart, Message, Part, Request, Settings, TextPart
from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError, UnknownNameError
from vgbench_gen.core.rng import format_canonical_json, hash_stably
from vgbench_gen.core.spread import choose_evenly
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.records import DRAWING, ReplyKey
from vgbench_gen.importers.base import ASKED
from vgbench_gen.text.render import find_templates_root

VISUAL_COT_IMAGE = DRAWING  # stage of the image that is made before an answer
LETTERS = string.ascii_uppercase  # other benchmarks have up to six options
_SLOT = re.compile(r"\{\{ ([a-z_]+) \}\}")
_NUMBERED_IMAGE = re.compile(r"\D*?([1-9])\D*")


class PromptSet(Config):
    """A file of `templates/prompts/`."""

    option: str
    """How one option is written."""
    prompts: dict[str, str]
    """The prompts by name, each with the slot `question`."""
    sources: dict[str, dict[str, str]]
    """Which prompt is used: by benchmark, or benchmark and task, and then by question type, or by form of asking
    ("visual-cot"). "*" stands for all others."""
    system: str = ""
    """What is sent before the question; "" for nothing."""
    image_tag: str = ""
    """What stands before each image where there are several; "" for nothing."""

    @cached_property
    def known(self) -> dict[str, dict[str, str]]:
        """`sources` by plain names."""
        return {_normalize_name(name): types for name, types in self.sources.items()}

    def prompt(self, benchmark: str, question_type: str, task: str = "") -> str:
        """The prompt of a question type, or form, of a benchmark's task; "SpatialScore/MMVP" is MMVP.

        Raises:
            ConfigError: the set has none for it.
        """
        tail = benchmark.rpartition("/")[2]
        for types in (self.known.get(_normalize_name(one)) for one in (f"{benchmark} {task}", benchmark, tail, "*")):
            for name in (question_type, "*"):
                if types and name in types and types[name] in self.prompts:
                    return self.prompts[types[name]]
        raise ConfigError(f"the prompt set has no prompt for {benchmark}, {question_type}; expected one under sources")


@lru_cache(maxsize=4096)
def _normalize_name(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum()) or name


@cache
def find_prompt_set(name: str) -> PromptSet:
    """The prompt set of this name.

    Raises:
        UnknownNameError: there is none.
        ConfigError: its file is not as it must be.
    """
    folder = find_templates_root() / "prompts"
    names = sorted(path.stem for path in folder.glob("*.toml") if path.stem != "check")
    if name not in names:
        raise UnknownNameError(f"no prompt set is called {name!r}. Known: {', '.join(names)}")
    found = load_toml(folder / f"{name}.toml", PromptSet)
    if unknown := {used for types in found.sources.values() for used in types.values()} - set(found.prompts):
        raise ConfigError(f"{folder / name}.toml: sources name {sorted(unknown)}; expected names under prompts.")
    return found


@dataclass(frozen=True, slots=True)
class Shown:
    """One image of a request."""

    item: Item
    """The question whose image it is."""
    k: int
    """Its place among the images of that question."""
    tag: str
    """What stands before it; "" for nothing."""

    @property
    def name(self) -> str:
        """In the dataset; names are digests of the bytes."""
        return self.item.images[self.k]


@dataclass(frozen=True, slots=True)
class ShownExample:
    """A question that is sent with its answer before the one asked."""

    text: str
    """Its words."""
    answer: str
    """Its right answer."""
    images: tuple[Shown, ...]
    """Its images."""


@dataclass(frozen=True)
class Asked:
    """One question as a model is asked it."""

    key: ReplyKey
    """What a reply to it is a reply to."""
    item: Item
    """The question with its options in the order in which they are shown."""
    images: tuple[Shown, ...]
    """The question's images in the order in which they are shown."""
    question: str
    """The digest of the question (`digest_question`)."""
    text: str
    """The words that are sent."""
    settings: Settings
    """How the model is to answer."""
    long_side_px: int = 0
    """To how many pixels the long side of an image is limited; 0 for no limit."""
    problem: str = ""
    """Why it cannot be asked ("too_many_images: ..."); "" where it can."""
    examples: tuple[ShownExample, ...] = ()
    """Questions that are sent with their answers before it."""
    added: tuple[Path, ...] = ()
    """Files of images that a model made, shown after the question's own. Their names are digests of their bytes."""

    @cached_property
    def digest(self) -> str:
        """Of the question (first half, see `digest_question`) and of how it is asked, whoever is asked."""
        shown = [[image.name, image.tag] for image in self.images]
        content: list[Any] = [1, shown, self.long_side_px, self.text, self.settings.model_dump(mode="json")]
        if self.examples:
            content.append([[one.text, one.answer, *(image.name for image in one.images)] for one in self.examples])
        if self.added:
            content.append(["added", *(path.name for path in self.added)])
        return self.question + hash_stably(format_canonical_json(content))

    def request(self, image: Callable[[Item, int], bytes | Path]) -> Request:
        """The request with its images read; examples come first, each answered as if by the model."""

        def told(images: tuple[Shown, ...], text: str, added: tuple[Path, ...] = ()) -> Message:
            parts: list[Part] = []
            for shown in images:
                if shown.tag:
                    parts.append(TextPart(shown.tag))
                parts.append(ImagePart(image(shown.item, shown.k), self.long_side_px))
            parts += [ImagePart(path, self.long_side_px) for path in added]
            return Message("user", (*parts, TextPart(text)))

        before = [
            message
            for one in self.examples
            for message in (told(one.images, one.text), Message("assistant", (TextPart(one.answer),)))
        ]
        return Request((*before, told(self.images, self.text, self.added)), self.settings)

    def record(self) -> list[dict[str, Any]]:
        """The images for the reply's line, those of examples among them."""
        examples: list[dict[str, Any]] = [
            {"name": image.name, "example": n} for n, one in enumerate(self.examples, 1) for image in one.images
        ]
        own = ({"name": shown.name} | ({"tag": shown.tag} if shown.tag else {}) for shown in self.images)
        return [*examples, *own, *({"name": path.name, "made": True} for path in self.added)]


def make_asked(
    item: Item,
    settings: Settings,
    options: AskOptions,
    rotation: int = 0,
    epoch: int = 0,
    other: Item | None = None,
    examples: Sequence[Item] = (),
) -> Asked:
    """What a model is asked about an item.

    Args:
        item: the row.
        settings: as `AskOptions.settings` gives them.
        options: how it is asked.
        rotation: of its options, see `rotate_options`.
        epoch: repeat.
        other: the item whose images are shown instead of its own.
        examples: items that are sent with their answers before it.
    """
    words = find_prompt_set(options.prompt_set)
    turned = rotate_options(item, rotation)
    order, problem = _choose_images(item, options, rotation, other)
    tags = words.image_tag if len(order) > 1 else ""
    return Asked(
        key=ReplyKey(item.id, rotation, epoch, options.stage, options.prompt_set),
        item=turned,
        images=tuple(Shown(of, k, _fill(tags, number=str(n))) for n, (of, k) in enumerate(order, start=1)),
        question=digest_question(turned),
        text=_fill_text(turned, words),
        settings=settings.model_copy(update={"epoch": epoch}),
        long_side_px=options.long_side_px,
        problem=problem,
        examples=tuple(
            ShownExample(_fill_text(one, words), one.answer, tuple(Shown(one, k, "") for k in range(len(one.images))))
            for one in examples
        ),
    )


def _choose_images(
    item: Item, options: AskOptions, rotation: int, other: Item | None
) -> tuple[list[tuple[Item, int]], str]:
    """Choose the images that are shown.

    Returns:
        Each image as an item and the place among its images, and why the question cannot be asked, "" where it can.
    """
    order = [(item, k) for k in order_images(item, rotation)]
    if other is not None:
        order = [(other, k) for k in range(len(other.images))]
    if (item if other is None else other).input_modality == "video":
        order = [order[k] for k in choose_evenly(len(order), options.video_frames)]
    if options.blind:
        order = []
    if options.wrong_images and other is None:
        return order, f"no_other_images: no {item.task} question of this form about another scene is there"
    if options.first_image:
        return order[:1], ""
    if options.max_images and len(order) + bool(options.visual_cot) > options.max_images:
        told = f"{len(order)}{' and a drawing' if options.visual_cot else ''}"
        return order, f"too_many_images: {told}, of which at most {options.max_images} may be sent"
    return order, ""


def add_images(asked: Asked, form: str, added: Sequence[Path]) -> Asked:
    """The same question in the words of a form, with images that were made for it."""
    text = _fill_text(asked.item, find_prompt_set(asked.key.prompt_set), form)
    return replace(asked, text=text, added=tuple(added))


def digest_question(item: Item) -> str:
    """Of a question's words, options and images in the order in which they are shown, without the prompt around them:
    the first half of `Asked.digest`, by which a saved reply is known to be one to this very question."""
    own = item.evidence[ASKED]["text"] if ASKED in item.evidence else ""
    parts = (own, item.question, item.context, *item.options)
    return hash_stably("question", str(len(parts)), *parts, *item.images)


def _fill_text(item: Item, words: PromptSet, form: str = "") -> str:
    prompt = words.prompt(item.benchmark, form or item.question_type, item.task)
    return _fill(prompt, question=make_full_text(item, words))


def make_full_text(item: Item, words: PromptSet) -> str:
    """Question, context and lettered options as one text; of other people's questions their own text, word for word,
    with the options of the item in the places of theirs.
    """
    if ASKED in item.evidence:
        return _make_own_text(item, item.evidence[ASKED])
    options = [
        _fill(words.option, letter=letter, text=text) for letter, text in zip(LETTERS, item.options, strict=False)
    ]
    return "\n".join(part for part in (item.question, item.context, *options) if part)


def _make_own_text(item: Item, own: Mapping[str, Any]) -> str:
    text, at, parts = own["text"], 0, []
    for option, (start, end) in zip(item.options, own["options_at"], strict=True):
        parts += [text[at:start], option]
        at = end
    return "".join([*parts, text[at:]])


def list_rotations(question_type: str, options: int, circular: bool) -> range:
    """The rotations in which a question is asked."""
    return range(options if circular and question_type == "multi-choice" and options > 1 else 1)


def rotate_options(item: Item, rotation: int) -> Item:
    """The item with its options moved up by `rotation` places, the first ones to the end, and its answer with them.

    Where the options are the images after the first one, the images move and the texts that number them stay.

    Raises:
        ConfigError: the item has no such rotation.
    """
    if not rotation:
        return item
    n = len(item.options)
    if item.question_type != "multi-choice" or not 0 <= rotation < n:
        raise ConfigError(f"item {item.id}: found rotation {rotation}; expected 0 to {max(n, 1) - 1}")
    place = (LETTERS.index(item.answer) - rotation) % n
    images = tuple(item.images[k] for k in order_images(item, rotation))
    options = item.options if _is_showing_options(item) else item.options[rotation:] + item.options[:rotation]
    return replace(item, options=options, answer=LETTERS[place], images=images)


def order_images(item: Item, rotation: int) -> tuple[int, ...]:
    """Places of the item's images in the order in which they are shown under a rotation of its options."""
    order = tuple(range(len(item.images)))
    if not rotation or not _is_showing_options(item):
        return order
    return (0, *order[1 + rotation :], *order[1 : 1 + rotation])


def _is_showing_options(item: Item) -> bool:
    """Whether option j is the image of number j + 2, in words that only count them."""
    if len(item.images) != len(item.options) + 1:
        return False
    numbers = [_NUMBERED_IMAGE.fullmatch(text) for text in item.options]
    return [match and match.group(1) for match in numbers] == [str(j + 2) for j in range(len(item.options))]


def _fill(template: str, **slots: str) -> str:
    # One pass: a question that holds "{{ letter }}" stays as it is.
    return _SLOT.sub(lambda match: slots.get(match.group(1), match.group()), template)
