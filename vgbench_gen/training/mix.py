"""Mixtures: training parts drawn from built datasets by shares, each part from physical rooms of its own."""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.config import MAX_CONFIG_BYTES, load_toml
from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_text
from vgbench_gen.executors import Engine
from vgbench_gen.importers.places import read_training_scenes, read_visits
from vgbench_gen.pipeline.build import build_dataset
from vgbench_gen.pipeline.recipe import Recipe, load_recipe
from vgbench_gen.pipeline.rows import count_rows
from vgbench_gen.pipeline.subset import find_absent_partners
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.files import dataset_error, fill_folder, write_bytes
from vgbench_gen.store.provenance import MANIFEST, code_version, dataset_fingerprint, read_manifest, write_manifest
from vgbench_gen.store.schema import ITEMS, Row
from vgbench_gen.store.shards import iterate_rows, list_light_columns, write_embedded_rows
from vgbench_gen.tasks.base import read_gates
from vgbench_gen.training.mix_file import BUILDS, MIX, Mix, MixSource
from vgbench_gen.training.rooms import COLUMNS, MixRow, RoomName, Rooms, scan_rows

FILTERS = {"tasks": "task", "types": "question_type", "difficulty": "difficulty"}
Progress = Callable[[str, int, int], None]
_Given = defaultdict[RoomName, tuple[int, frozenset[str]]]
"""Room -> how many rows it has given, and their frames."""


def write_mix(
    path: Path,
    out: Path,
    workers: int = 1,
    allow_short: bool = False,
    progress: Progress = lambda stage, done, total: None,
) -> dict[str, Any]:
    """Write the parts of a mixture as datasets `out/<part>`; returns what `out/mix.json` says.

    Under "short" it has a line for each share that cannot be filled; then nothing is written unless `allow_short`.
    Images are streamed; ids, rooms and half a kilobyte per picture are in memory.

    Args:
        path: file of a `Mix`.
        out: folder; an older mixture in it is replaced.
        workers: processes that build sources.
        allow_short: write what there is.
        progress: called with (stage, rows done, rows in all).

    Raises:
        ConfigError: the file is wrong, or asks for what its datasets do not have.
        DatasetError: a dataset or list cannot be read, or `out` holds other files.
        QuotasNotMet: a recipe cannot be built.
    """
    mix, text = load_toml(path, Mix), read_text(path, "a TOML file", config_error, MAX_CONFIG_BYTES)
    _check_only_ours(out)
    inputs = _Inputs(mix, path.parent, out / BUILDS, workers, progress)
    chosen = choose_rows(mix, {name: one.rows for name, one in inputs.sources.items()}, inputs.rooms, inputs.guarded)
    record = {"mix": text, "code": code_version(), **inputs.describe(chosen)}
    if chosen.short and not allow_short:
        return record
    with fill_folder(out) as folder:
        for part, by_source in chosen.rows.items():
            rows = [row for some in by_source.values() for row in some]
            record["parts"][part] |= _write_part(folder / part, rows, inputs, partial(progress, f"writing {part}"))
        write_bytes(folder / MIX, (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode())
        if (out / BUILDS).is_dir():
            (out / BUILDS).rename(folder / BUILDS)
    return record


def _check_only_ours(out: Path) -> None:
    """Raise DatasetError where `out` holds what no mixture wrote and would be lost: exports, replies to a part."""
    entries = list(out.iterdir()) if out.is_dir() else [out] if out.exists() else []
    parts = [entry for entry in entries if (out / MIX).is_file() and (entry / "items").is_dir()]
    inside = [entry for part in parts for entry in part.iterdir() if entry.name not in ("items", MANIFEST)]
    strange = [entry for entry in entries if entry.name not in (MIX, BUILDS) and entry not in parts] + inside
    if strange:
        found, remedy = f"{min(strange)}, which no mixture wrote", "Move it, or give another --out."
        raise dataset_error(out, found, "a new folder, or a mixture and nothing else", remedy)


# --- what there is --------------------------------------------------------------------------------------------------


@dataclass
class _Opened:
    name: str
    """As the file names it."""
    number: int
    items: Dataset
    manifest: dict[str, Any]
    rows: list[MixRow] = field(default_factory=list)

    @cached_property
    def fingerprint(self) -> str:
        return str(self.manifest.get("fingerprint") or dataset_fingerprint(self.items))


class _Inputs:
    """All datasets of a mixture, which are read, and before that built if they are recipes; arguments of `write_mix`.

    sources: by label. lists: file with guarded scenes -> digest of these. guarded: rooms, as `Rooms.find` names them.
    """

    def __init__(self, mix: Mix, base: Path, builds: Path, workers: int, progress: Progress) -> None:
        self.mix, self._opened = mix, dict[Path, _Opened]()
        visits = base / mix.visits if mix.visits else None
        self.rooms, self.sources = Rooms(read_visits(visits)), dict[str, _Opened]()
        for source in mix.sources:
            folder = base / source.dataset if source.dataset else _build(source, base, builds, workers)
            self.sources[source.label] = self._open(source.dataset or source.recipe, folder)
        shown = len(self._opened)
        self.guards = [self._open(name, base / name) for name in mix.guard.datasets]
        done, total = 0, sum(len(one.items) for one in self._opened.values())
        for one in self._opened.values():
            for row in scan_rows(one.items, one.number, self.rooms, need_pixels=one.number < shown):
                one.rows.append(row)
                progress("reading rows", done := done + 1, total)
        self.rooms.join_alike()
        self.guarded = {self.rooms.find(row.room) for one in self.guards for row in one.rows}
        lists = {name: read_training_scenes(base / name, visits) for name in mix.guard.rooms}
        self.guarded |= {
            self.rooms.find(room) for room in self.rooms if any(one.covers(room) for one in lists.values())
        }
        self.lists = {name: hash_stably(*map("/".join, sorted(one.places)), size=16) for name, one in lists.items()}
        self._check_names()

    def _open(self, name: str, folder: Path) -> _Opened:
        place = folder.resolve()
        if place not in self._opened:
            home = next((each for each in (place, place.parent) if (each / MANIFEST).is_file()), None)
            self._opened[place] = _Opened(name, len(self._opened), load(folder), read_manifest(home) if home else {})
        return self._opened[place]

    def _check_names(self) -> None:
        """Raise ConfigError where a source asks for a value of a column that no row of it has."""
        for source in self.mix.sources:
            for key, column in FILTERS.items():
                known = {getattr(row, column) for row in self.sources[source.label].rows}
                if strange := sorted(set(getattr(source, key)) - known):
                    where, expected = f"source {source.label}: {key}", f"some of {', '.join(sorted(known))}"
                    raise config_error(where, repr(strange[0]), expected, "Mend that name.")

    def describe(self, chosen: MixChoice) -> dict[str, Any]:
        """What `mix.json` says of inputs and counts."""
        find, parts = self.rooms.find, dict[str, Any]()
        for part, rows_of in chosen.rows.items():
            rows = [row for some in rows_of.values() for row in some]
            shares = {name: {"wanted": chosen.wanted[part][name], "rows": len(some)} for name, some in rows_of.items()}
            parts[part] = {"rows": len(rows), "rooms": len({find(row.room) for row in rows}), "sources": shares}
            for key, of in FILTERS.items():
                parts[part][key] = dict(sorted(Counter(getattr(row, of) for row in rows).items()))
        sources = {
            label: {"from": one.name, "fingerprint": one.fingerprint, "rows": len(one.rows)}
            | {"taken": sum(len(rows[label]) for rows in chosen.rows.values())}
            | {"left_out": dict(sorted(chosen.left_out[label].items()))}
            for label, one in self.sources.items()
        }
        guard = {
            "splits": list(self.mix.guard.allow_splits),
            "lists": self.lists,
            "datasets": {one.name: one.fingerprint for one in self.guards},
            "rooms": sorted("/".join(room) for room in self.rooms if find(room) in self.guarded),
        }
        joined = self.rooms.list_joined()
        return {"short": chosen.short, "sources": sources, "guard": guard, "joined_rooms": joined, "parts": parts}


def _build(source: MixSource, base: Path, builds: Path, workers: int) -> Path:
    recipe = load_recipe(base / source.recipe if source.recipe.endswith(".toml") else source.recipe)
    build_dataset(recipe, [base / name for name in source.scenes], builds / source.label, Engine(workers=workers))
    return builds / source.label


# --- what goes where ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class MixChoice:
    """Which rows go where."""

    rows: dict[str, dict[str, list[MixRow]]] = field(default_factory=dict)
    """Part -> source -> its rows there."""
    wanted: dict[str, dict[str, int]] = field(default_factory=dict)
    """Part -> source -> how many there should be."""
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    """Source -> reason -> its rows that are in no part of it."""
    short: list[str] = field(default_factory=list)
    """A line for each share that is not filled, with what would help."""


def choose_rows(
    mix: Mix, rows_of: Mapping[str, Sequence[MixRow]], rooms: Rooms, guarded: Container[RoomName]
) -> MixChoice:
    """Deal rooms to parts, then draw the rows of each part.

    Args:
        mix: the settings.
        rows_of: all rows of each source.
        rooms: of the rows.
        guarded: rooms, as `Rooms.find` names them, of which no row is taken.
    """
    chosen, fit = MixChoice(), dict[str, list[MixRow]]()
    for source in mix.sources:
        reasons = [_find_refusal(mix, source, row, rooms, guarded) for row in rows_of[source.label]]
        chosen.left_out[source.label] = Counter(filter(None, reasons))
        fit[source.label] = [row for row, reason in zip(rows_of[source.label], reasons, strict=True) if not reason]
    shares = {source.label: source.share for source in mix.sources}
    chosen.wanted = {part: _share_out(total, shares) for part, total in _share_out(mix.rows, mix.parts).items()}
    part_of, taken, given = _deal_rooms(mix, fit, rooms, chosen.wanted), set[str](), _Given(lambda: (0, frozenset()))
    for part in mix.parts:
        chosen.rows[part] = {label: [] for label in fit}
        for label in sorted(fit, key=lambda label: len(fit[label])):  # what another source holds as well goes first
            there = [row for row in fit[label] if part_of[rooms.find(row.room)] == part]
            free, wanted = [row for row in there if row.id not in taken], chosen.wanted[part][label]
            found, left = _draw(mix, free, wanted, rooms, given, rng_for(mix.seed, "mix", part, label))
            left += Counter({"in another source": len(there) - len(free)})
            if wanted - len(found) > bool(left["not needed"]):  # of twins, one may be one too many
                why = (left or chosen.left_out[label]).most_common(3)
                out = ", ".join(f"{count} {reason}" for reason, count in why) or "none"
                helps = "raise these limits" if left else "add scenes"
                line = f"{label} in {part}: {len(found)} of {wanted} rows; left out: {out}"
                chosen.short.append(f"{line}. To fill it, {helps}; or lower rows or its share.")
            taken.update(row.id for row in found)
            chosen.rows[part][label] = found
            chosen.left_out[label] += left
    return chosen


def _find_refusal(mix: Mix, source: MixSource, row: MixRow, rooms: Rooms, guarded: Container[RoomName]) -> str:
    """Why a row is not taken, or ""."""
    for key, column in FILTERS.items():
        if getattr(source, key) and getattr(row, column) not in getattr(source, key):
            return f"not in {key}"
    if row.split not in mix.guard.allow_splits:
        return f"split {row.split}"
    if rooms.find(row.room) in guarded:
        return "guarded room"
    return "max_images" if row.images > (source.max_images or math.inf) else ""


def _share_out(total: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Whole numbers in proportion to weights, each within 1 of its share."""
    exact = {name: total * weight / sum(weights.values()) for name, weight in weights.items()}
    found = {name: int(share) for name, share in exact.items()}
    for name in sorted(exact, key=lambda name: found[name] - exact[name])[: total - sum(found.values())]:
        found[name] += 1
    return found


def _deal_rooms(
    mix: Mix, fit: Mapping[str, Sequence[MixRow]], rooms: Rooms, wanted: Mapping[str, Mapping[str, int]]
) -> dict[RoomName, str]:
    """The part of each room: one that it helps most to get what is wanted, then one that lacks its share of rooms.

    Rooms with most rows are dealt first.
    """
    held: dict[RoomName, Counter[str]] = defaultdict(Counter)
    for label, rows in fit.items():
        for row in rows:
            held[rooms.find(row.room)][label] += 1
    most = mix.max_per_room or math.inf
    needs = {(part, label): count for part, counts in wanted.items() for label, count in counts.items()}
    lacks = {(part, label): share * len(fit[label]) for part, share in mix.parts.items() for label in fit}
    part_of: dict[RoomName, str] = {}

    def measure_gain(part: str, counts: Mapping[str, int]) -> tuple[float, float]:
        gains = (min(count, most, needs[part, label]) for label, count in counts.items())
        return sum(gains), sum(count * lacks[part, label] / len(fit[label]) for label, count in counts.items())

    for room in sorted(held, key=lambda room: (-held[room].total(), hash_stably(str(mix.seed), *room))):
        part_of[room] = part = max(mix.parts, key=lambda part: measure_gain(part, held[room]))
        for label, count in held[room].items():
            needs[part, label] = max(needs[part, label] - int(min(count, most)), 0)
            lacks[part, label] -= count
    return part_of


def _draw(
    mix: Mix, rows: Sequence[MixRow], wanted: int, rooms: Rooms, given: _Given, rng: np.random.Generator
) -> tuple[list[MixRow], Counter[str]]:
    """(rows drawn, reason -> rows that were not); twins and pairs are drawn together, so that one row may lack."""
    together = defaultdict[tuple[str, RoomName], list[MixRow]](list)
    for row in rows:
        together[row.partner, rooms.find(row.room)].append(row)
    units, found, left = list(together.items()), list[MixRow](), Counter[str]()
    for (_, room), unit in (units[k] for k in rng.permutation(len(units)).tolist()):
        if len(found) + len(unit) > wanted:
            left["not needed"] += len(unit)
            continue
        count, frames = given[room][0] + len(unit), given[room][1].union(*(row.frames for row in unit))
        if count > (mix.max_per_room or math.inf):
            left["max_per_room"] += len(unit)
        elif len(frames) > (mix.max_frames_per_room or math.inf):
            left["max_frames_per_room"] += len(unit)
        else:
            found += unit
            given[room] = count, frames
    return found, left


# --- what is written ------------------------------------------------------------------------------------------------


def _write_part(
    folder: Path, rows: Sequence[MixRow], inputs: _Inputs, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Write rows as a dataset; returns its fingerprint and how many rows lost a partner that is not there."""
    kept, places = {row.id for row in rows}, defaultdict[int, set[int]](set)
    for row in rows:
        places[row.dataset].add(row.place)
    used = [one for one in {one.number: one for one in inputs.sources.values()}.values() if one.number in places]
    apart = {name: empty for one in used for name, empty in find_absent_partners(one.items, kept).items()}
    streams = [_read_places(one.items, places[one.number]) for one in used]

    def number_rows() -> Iterator[Row]:
        for index, (_, row) in enumerate(heapq.merge(*streams, key=itemgetter(0))):
            yield {**row, "index": index, **apart.get(row["id"], {})}
            progress(index + 1, len(rows))

    paths = write_embedded_rows(folder / "items", number_rows(), ITEMS, "items")
    counts = count_rows(iterate_rows(paths, list_light_columns))
    note = {"fingerprint": counts["fingerprint"], "without_partner": len(apart)}
    origin = {"part": folder.name, "from": {one.name: one.fingerprint for one in used}, **note}
    manifest = {"code": code_version(), "counts": {"items": len(rows)}, **counts, "mix": origin}
    write_manifest(folder, manifest | _join_recipes(used))
    return note


def _read_places(items: Dataset, places: Collection[int]) -> Iterator[tuple[float, Row]]:
    """(how far through, row) of some rows: merged by the first, datasets are mixed evenly."""
    for k, row in enumerate(iterate_rows(items.paths, COLUMNS, 32, places)):
        yield (k + 0.5) / len(places), row


def _join_recipes(used: Sequence[_Opened]) -> dict[str, Any]:
    """A "recipe" with the gates by which all rows can be verified; nothing where their datasets had different ones."""
    recipes = [one.manifest.get("recipe") for one in used]
    if not all(isinstance(recipe, dict) and isinstance(recipe.get("gates"), dict) for recipe in recipes):
        return {}
    gates = [read_gates(one.manifest["recipe"]["gates"], one.name).model_dump(mode="json") for one in used]
    noise: dict[str, Any] = {}
    for one in gates:
        noise |= one["noise"]
    if any({**one, "noise": {**noise, **one["noise"]}} != {**gates[0], "noise": noise} for one in gates):
        return {}
    return {"recipe": Recipe(gates=read_gates({**gates[0], "noise": noise}, MANIFEST)).model_dump(mode="json")}
