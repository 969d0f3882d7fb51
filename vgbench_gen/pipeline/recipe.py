"""What to build: seed, totals, limits, strategy, gates. Read from TOML; the resolved recipe stands in the manifest."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, PrivateAttr, field_validator, model_validator

from vgbench_gen.core.config import Config, parse_config, read_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import LETTERS, QuestionType
from vgbench_gen.distractors.base import DEFAULT
from vgbench_gen.scenes.base import loaders
from vgbench_gen.tasks.base import tasks as registered_tasks
from vgbench_gen.text.bank import MAX_PER_CELL, Status
from vgbench_gen.text.render import Phrasing

_FOLDER = Path(__file__).resolve().parent.parent / "recipes"


Count = Annotated[int, Field(ge=0)]
Key = TypeVar("Key", bound=Hashable)


class Limits(Config):
    """How much one scene and one fact may give."""

    scene_share: float = Field(default=1.0, gt=0, le=1)
    """A scene holds at most max(scene_share, fair_share / scenes of its source) of a task's items
    (`docs/validity.md#repetition`); 1.0 sets no limit."""
    fair_share: float = Field(default=1.5, ge=1)
    """How many times its even share of a task's items a scene may hold in any case."""
    forms_per_fact: int = Field(default=1, ge=1)
    """The most question types in which one fact may be asked."""

    def scene_items(self, task_items: int, scenes: int) -> int:
        """The most items of a task that one of these scenes may hold, which is never less than one pair of twins."""
        share = min(1.0, max(self.scene_share, self.fair_share / max(scenes, 1)))
        return max(2, int(share * task_items + 1e-9))


class Difficulty(Config):
    """Shares of each task and question type that should be easy, medium and hard (terciles of the margin).

    They are met as nearly as the facts of the chosen scenes allow.
    """

    easy: float = Field(ge=0, le=1)
    """The share of easy items."""
    medium: float = Field(ge=0, le=1)
    """The share of medium items."""
    hard: float = Field(ge=0, le=1)
    """The share of hard items; the three sum to 1."""
    tolerance: float = Field(default=0.05, ge=0, le=1)
    """How far a share may be off before the build says so."""

    @model_validator(mode="after")
    def _sums_to_one(self) -> Self:
        total = self.easy + self.medium + self.hard
        if abs(total - 1) > 1e-6:
            raise ValueError(f"easy, medium and hard to sum to 1, not {total:g}")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """The share of each level by its name."""
        return {"easy": self.easy, "medium": self.medium, "hard": self.hard}


class WordSettings(Config):
    """Wordings that questions are drawn from beside the shipped ones; by default none.

    In English the shipped phrasings fill what the bank leaves of the wordings of a task and question type. In other
    languages the bank is all there is, and the names of things that are filled in stay English.
    """

    bank: str = ""
    """The file that `vgbench paraphrase` made, relative to the recipe's own folder where a file says so; empty for
    none."""
    use: Status = "reviewed"
    """Which entries are used: "reviewed" for those that a person has accepted, "proposed" for all."""
    language: str = "en"
    """The code of the language of the entries."""
    most: int = Field(default=MAX_PER_CELL, ge=1)
    """The most wordings of a task and question type."""
    # Travels with the recipe to other processes and machines, which may not have the file; never written to a manifest.
    _phrasings: tuple[Phrasing, ...] = PrivateAttr(default=())

    @property
    def phrasings(self) -> tuple[Phrasing, ...]:
        """The wordings that `with_phrasings` was given."""
        return self._phrasings

    def with_phrasings(self, phrasings: tuple[Phrasing, ...]) -> WordSettings:
        """These settings with the bank's wordings at hand."""
        words = self.model_copy()
        words._phrasings = phrasings
        return words


class Recipe(Config):
    """The settings of a build.

    `items` gives the number of items per task and question type and `items_per_task` the number over all question types
    of a task; these must be met. With neither, each task and question type gets what the scenes give up to
    `items_per_cell`. Twins count as two.
    """

    seed: int = Field(default=20260, ge=0)
    """The seed of everything random."""
    facts_per_scene: int = Field(default=36, ge=1)
    """The most facts of one task from one scene."""
    facts_of: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """The same for single tasks, by name, in place of `facts_per_scene`."""
    tasks: tuple[str, ...] = ()
    """The names of the tasks; when empty those of `items`, or all."""
    strategy: str = DEFAULT
    """The strategy that chooses wrong options; "default" for each task's own."""
    options: Annotated[int, Field(ge=2, le=6)] = len(LETTERS)
    """How many options a multi-choice question has, the right one among them."""
    options_of: dict[str, Annotated[int, Field(ge=2, le=6)]] = Field(default_factory=dict)
    """The same for single tasks, by name, in place of `options`."""
    distractor_seed: int = Field(default=0, ge=0)
    """Another number redraws the options and, where these can be asked as well, nothing else."""
    margins: Literal["enforced", "recorded"] = "enforced"
    """Whether options must keep their margins or these are only recorded; see `distractors.base`."""
    items_per_cell: int = Field(default=400, ge=1)
    """The most items of a task and question type, where no number is asked for."""
    items_per_task: int = Field(default=0, ge=0)
    """How many items of each task there must be over all its question types; 0 leaves it open."""
    items: dict[str, dict[QuestionType, Count]] = Field(default_factory=dict)
    """How many items there must be, by task and question type; empty leaves it open."""
    sources: dict[str, Count] = Field(default_factory=dict)
    """How many items each scan dataset gives over all tasks, summing to the total; empty leaves it open."""
    splits: dict[str, Count] = Field(default_factory=dict)
    """How many items each official split gives over all tasks, summing to the total; empty leaves it open."""
    only_from: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The sources that a task is measured in and takes questions from, by task; a task that is not named takes all."""
    only_splits: tuple[str, ...] = ()
    """The official splits that scenes may come from; all when empty."""
    pairs: float = Field(default=0.15, ge=0, le=1)
    """The share of the multi-choice and of the open-ended items of each task that stand in consistency pairs, one truth
    asked from two sides (`Task.counterpart`); 0 for none. Both halves count as items, so no total changes by it."""
    headline: bool = False
    """Whether results on it are quoted, so that words come from reviewed wordings alone and no option from a language
    model (`docs/validity.md#options-from-a-language-model`)."""
    wording: WordSettings = WordSettings()
    """The wordings that questions are drawn from."""
    limits: Limits = Limits()
    """How much one scene and one fact may give."""
    difficulty: Difficulty | None = None
    """The shares of easy, medium and hard items; None takes them as they come."""
    gates: Gates = Field(default_factory=Gates)
    """What scenes, frames, regions, objects and pairs must pass."""

    @field_validator("gates", mode="before")
    @classmethod
    def _know_gates_of_tasks(cls, value: Any) -> Any:
        registered_tasks.names()  # imports each task, and with it the gates that a recipe may name
        return value

    @model_validator(mode="after")
    def _totals_fit(self) -> Self:
        for task, forms in self.items.items():
            if forms.get("judgment", 0) % 2:
                raise ValueError(f"items.{task}.judgment to be even, because judgments come as twins")
            if self.tasks and task not in self.tasks:
                raise ValueError(f"items.{task} to be one of tasks = {list(self.tasks)}")
        if self.strategy == "llm":
            raise ValueError(
                'strategy without a model, such as "default"; options from a language model never enter a headline '
                "set, and a finished dataset gets them by `vgbench distractors --strategy llm`"
            )
        if self.items and self.items_per_task:
            raise ValueError("either items or items_per_task, not both")
        for name in ("sources", "splits"):
            table = getattr(self, name)
            if table and not self.items:
                raise ValueError(f"{name} only beside items, whose total it shares out")
            if table and sum(table.values()) != self.total:
                raise ValueError(f"{name} to sum to the {self.total} items, not {sum(table.values())}")
        return self

    @property
    def total(self) -> int:
        """The number of items that `items` asks for; 0 where it fixes none."""
        return sum(sum(forms.values()) for forms in self.items.values())

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks that are named anywhere, else all that are asked by default."""
        by_default = (task.name for task in registered_tasks.values() if task.by_default)
        return self.tasks or tuple(sorted(self.items)) or tuple(by_default)

    def find_most_facts(self, task: str) -> int:
        """The most facts of a task from one scene."""
        return self.facts_of.get(task, self.facts_per_scene)

    def count_options(self, task: str) -> int:
        """The options of a multi-choice question of a task."""
        return registered_tasks[task].count_options(self.options_of.get(task, self.options))

    def with_noise(self, sources: Iterable[str]) -> Recipe:
        """The recipe with the noise that loaders state of these sources, where it says nothing of them itself.

        What is not said at all stays open: `NoiseGates.of` then takes the largest errors known.
        """
        unsaid = set(sources).intersection(loaders.names()) - self.gates.noise.stated.keys()
        stated = {name: noise for name in sorted(unsaid) if (noise := loaders[name].info.noise) is not None}
        if not stated:
            return self
        gates = self.gates.model_copy(update={"noise": self.gates.noise.model_copy(update=stated)})
        return self.model_copy(update={"gates": gates})

    @property
    def choosing(self) -> dict[str, str | int]:
        """What the draws of options and claims depend on, beside facts and gates."""
        return {name: getattr(self, name) for name in ("seed", "strategy", "distractor_seed", "margins")}

    @property
    def digest(self) -> str:
        """Digest of the settings that facts depend on."""
        settings = self.model_dump(mode="json", include={"seed", "facts_per_scene", "facts_of", "only_from", "gates"})
        del settings["gates"]["noise"]
        for table in ("facts_of", "only_from"):
            if not settings[table]:  # recipes without it keep the facts of builds from before there was such a table
                del settings[table]
        text = json.dumps(settings, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_recipe(source: str | Path | Mapping[str, Any]) -> Recipe:
    """A shipped recipe by name, one's own by path, or its keys.

    One's own starts from the recipe that its key `extends` names, a shipped one or a file beside it, and from `default`
    where it has no such key.

    Raises:
        ConfigError: no such recipe, or it does not fit; names file and key.
    """
    where = "recipe" if isinstance(source, Mapping) else str(source)
    return parse_config(_read_tables(source, Path(), ()), Recipe, where)


def _read_tables(source: str | Path | Mapping[str, Any], folder: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """The keys of a recipe over those of the recipes that it extends, each checked by itself.

    Args:
        source: of the recipe.
        folder: from which a relative path leads.
        seen: files that extend this one.
    """
    if isinstance(source, Mapping):
        path, data, where = folder / "recipe", dict(source), "recipe"
    else:
        path = _find_file(source, folder)
        data, where = read_toml(path), str(path)
    if path.resolve() in seen:
        names = " -> ".join(str(one) for one in (*seen, path.resolve()))
        raise ConfigError(f"{where}: extends: found a circle ({names}); expected a recipe that does not lead back.")
    base = data.pop("extends", "" if path.parent == _FOLDER else "default")
    if not isinstance(base, str):
        raise ConfigError(f"{where}: extends: found {base!r}; expected a shipped recipe's name or a .toml file.")
    bank = data["wording"].get("bank") if isinstance(data.get("wording"), Mapping) else None
    if isinstance(bank, str) and bank and not Path(bank).is_absolute():
        data["wording"] = {**data["wording"], "bank": str(path.parent / bank)}
    if base:
        data = _put_over(_read_tables(base, path.parent, (*seen, path.resolve())), data)
    parse_config(data, Recipe, where)
    return data


def _find_file(name: str | Path, folder: Path) -> Path:
    if Path(name).suffix == ".toml":
        return folder / name
    path = _FOLDER / f"{name}.toml"
    if not path.is_file():
        shipped = sorted(p.stem for p in _FOLDER.glob("*.toml"))
        near = difflib.get_close_matches(str(name), shipped, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigError(
            f"no recipe is called {str(name)!r}.{hint} Shipped: {', '.join(shipped)}. Or give a .toml file."
        )
    return path


def _put_over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a recipe with changes, table by table.

    Totals stand for the whole: new ones take the place of those of the base. A new number of facts per scene, or
    of options, holds for all tasks, also for those that the base has another number for.
    """
    kept = dict(base)
    gone = set()
    if not changes.keys().isdisjoint(("items", "items_per_task")):
        gone = {"items", "items_per_task", "sources", "splits", "tasks"}
    elif isinstance(wanted := changes.get("tasks"), list) and any(task not in wanted for task in kept.get("items", ())):
        kept["items"] = {task: forms for task, forms in kept["items"].items() if task in wanted}
        gone = {"sources", "splits"}
    gone |= {of for name, of in (("facts_per_scene", "facts_of"), ("options", "options_of")) if name in changes}
    found = {name: value for name, value in kept.items() if name not in gone}
    for name, value in changes.items():
        old = found.get(name)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        found[name] = _put_over(found[name], value) if both else value
    return found


def change_recipe(
    recipe: Recipe,
    seed: int | None = None,
    items: int | Mapping[str, Mapping[str, int]] | None = None,
    tasks: Sequence[str] = (),
) -> Recipe:
    """The recipe with another seed, other totals or other tasks.

    items: of each task over all its question types, or, of a recipe with a table of totals, of all tasks together in
        the proportions of that table; or such a table itself.

    Raises:
        ConfigError: the totals do not fit.
    """
    if isinstance(items, int) and recipe.items and not tasks:
        return _scale(recipe if seed is None else recipe.model_copy(update={"seed": seed}), items)
    changes: dict[str, Any] = {} if seed is None else {"seed": seed}
    if tasks:
        changes["tasks"] = list(tasks)
    if items is not None:
        changes["items_per_task" if isinstance(items, int) else "items"] = items
    if not changes:
        return recipe
    base = recipe.model_dump(mode="json")
    if isinstance(items, int) and not tasks:
        changes["tasks"] = base["tasks"]
    return parse_config(_put_over(base, changes), Recipe, "recipe")


def _scale(recipe: Recipe, total: int) -> Recipe:
    """The recipe with `total` items in the proportions of its totals, one fewer where only twins could make it up."""
    cells = {(task, form): n for task, forms in recipe.items.items() for form, n in forms.items()}
    shared = _share_out(cells, total, lambda cell: 2 if cell[1] == "judgment" else 1)
    items: dict[str, dict[str, int]] = {task: {} for task in recipe.items}
    for (task, form), n in shared.items():
        items[task][form] = n
    there = sum(shared.values())
    parts = {name: _share_out(getattr(recipe, name), there, lambda _: 1) for name in ("sources", "splits")}
    return parse_config(recipe.model_dump(mode="json") | parts | {"items": items}, Recipe, "recipe")


def _share_out(counts: Mapping[Key, int], total: int, step_of: Callable[[Key], int]) -> dict[Key, int]:
    """Whole steps near the proportions of the counts, by the largest remainder; empty for none."""
    wanted = {key: n * total / max(sum(counts.values()), 1) for key, n in counts.items()}
    found = {key: int(want // step_of(key)) * step_of(key) for key, want in wanted.items()}
    for key in sorted(counts, key=lambda key: -(wanted[key] - found[key]) / step_of(key)):
        if counts[key] and sum(found.values()) + step_of(key) <= total:
            found[key] += step_of(key)
    return found
