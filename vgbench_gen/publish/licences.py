"""The licence gate: which rows may be published with their pixels, and where the images of the others come from.

What is known about the images of other benchmarks stands in `licences.toml`; what is known about scans is said by their
loaders (`scenes.base.DatasetInfo`). What neither knows may not travel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationError, model_validator

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import Item
from vgbench_gen.scenes.base import Loader, loaders
from vgbench_gen.tasks.row_evidence import ShownEvidence

LICENCES = Path(__file__).with_name("licences.toml")
FLAG = "--with-pixels"
_SPATIALSCORE = "SpatialScore"  # family of `Item.benchmark`; imported whole
OWN = "VGBench"  # `Item.benchmark` of questions that this program made from scans


class Policy(Config):
    """What is known about the pixels of one source."""

    name: str
    """Name of the scan dataset or the benchmark, or the licence id of scenes that were made."""
    kind: Literal["scans", "benchmark", "made", "unknown"]
    """Kind of source: "scans" for a scan dataset, "benchmark" for a benchmark, "made" for scenes that were made and not
    scanned, "unknown" where nothing is known."""
    also: tuple[str, ...] = ()
    """Other names of the source."""
    licence: str
    """Word that a flag must repeat for the pixels to be published; "" where the licence is not established."""
    terms: str
    """What the terms are called under which the pixels stand."""
    url: str
    """Where the terms can be read; "" where this is not known."""
    pixels: bool
    """Whether the pixels may be published without a flag."""
    reason: str
    """Why they may be published or not, in one clause without a full stop."""
    notice: str = ""
    """What must be printed wherever the pixels are published; "" for nothing."""


class Licences(Config):
    """The file `licences.toml`, and with it the policies of scans.

    Raises:
        ValueError: a name stands for two policies.
    """

    policy: tuple[Policy, ...]
    """Policies of scan datasets, as their loaders state them, and of benchmarks and made scenes, as the file does."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        # Flags name a policy alone, so a scan dataset and a benchmark may not share a name either.
        names = Counter(_normalise_name(name) for policy in self.policy for name in (policy.name, *policy.also))
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ValueError(f"one policy per name, but {', '.join(twice)} stands for two")
        return self


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate decided about the rows of one policy."""

    policy: Policy
    rows: int
    """How many rows fall under it."""
    pixels: bool
    """Whether their images are published."""
    by_flag: bool
    """Whether that is so because a flag says it."""


class Gate:
    """The policies, and the flags given by whoever publishes.

    Args:
        licences: the policies.
        allowed: policies (by name) whose pixels travel by flag, and the licence that the flag names.
    """

    def __init__(self, licences: Licences, allowed: Mapping[str, str] | None = None) -> None:
        self._allowed = dict(allowed or {})
        self._made = {policy.name: policy for policy in licences.policy if policy.kind == "made"}
        self._by_name: dict[tuple[str, str], Policy] = {
            (policy.kind, _normalise_name(name)): policy.model_copy(update=self._stated(policy))
            for policy in licences.policy
            for name in (policy.name, *policy.also)
        }

    def policy(self, row: Mapping[str, Any] | Item) -> Policy:
        """The policy of a row, by its `benchmark`, `source` and `licence`; one that forbids where none is known."""
        benchmark, source, licence = (_read_text(row, name) for name in ("benchmark", "source", "licence"))
        benchmark = benchmark.rpartition("/")[2]  # `SpatialScore/MMVP` shows MMVP's images
        if benchmark == OWN and licence in self._made and source != "posed":  # whose owners state it themselves
            return self._made[licence]
        kind, name = ("scans", source) if benchmark == OWN else ("benchmark", benchmark)
        return self._by_name.get((kind, _normalise_name(name))) or _make_unknown_policy(name or "(no name)")

    def travels(self, row: Mapping[str, Any] | Item) -> bool:
        """Whether the row may be published with its pixels."""
        return self._pass(self.policy(row))

    def decisions(self, rows: Iterable[Mapping[str, Any] | Item]) -> list[Decision]:
        """One decision per policy met, sorted by name."""
        met: dict[str, Policy] = {}
        counts: Counter[str] = Counter()
        for row in rows:
            policy = self.policy(row)
            met[policy.name] = policy
            counts[policy.name] += 1
        return [
            Decision(policy, counts[name], self._pass(policy), self._pass(policy) and not policy.pixels)
            for name, policy in sorted(met.items())
        ]

    def _stated(self, policy: Policy) -> dict[str, str]:
        """What a flag adds to a policy whose licence is not established."""
        if policy.licence or policy.name not in self._allowed:
            return {}
        licence = self._allowed[policy.name]
        return {"licence": licence, "terms": f"{licence}, as stated by the publisher"}

    def _pass(self, policy: Policy) -> bool:
        return policy.pixels or policy.name in self._allowed


def make_gate(flags: Iterable[str] = (), path: Path = LICENCES) -> Gate:
    """The gate under some flags `NAME=LICENCE`, each of which lets the pixels of one source travel.

    Naming the licence is the point: who publishes says under which terms they have the right to.

    Raises:
        ConfigError: a flag of another form, a name without a policy, or another licence than the policy's.
    """
    licences = _read(path)
    by_name = {_normalise_name(name): policy for policy in licences.policy for name in (policy.name, *policy.also)}
    allowed = {}
    for flag in flags:
        name, _, licence = flag.partition("=")
        policy = by_name.get(_normalise_name(name))
        if policy is None:
            known = ", ".join(policy.name for policy in licences.policy)
            raise ConfigError(
                f"{FLAG} {flag}: found no policy for {name!r}; expected NAME=LICENCE with one of {known}."
            )
        if not licence or licence.lower() == "unknown" or licence != (policy.licence or licence):
            expected = f"{policy.name}={policy.licence or 'LICENCE'} ({policy.terms}, {policy.url})"
            raise ConfigError(
                f"{FLAG} {flag}: found {licence or 'no licence'!r}; expected {expected}. "
                f"Give it only if you may publish these pixels: {policy.reason}."
            )
        allowed[policy.name] = licence
    return Gate(licences, allowed)


@dataclass(frozen=True, slots=True)
class RowsWithoutImages:
    """How many rows are published without their images."""

    scans: int = 0
    """Rows whose images `vgbench pull --scenes` makes."""
    imports: Mapping[str, int] = field(default_factory=dict)
    """Rows by the NAME of `vgbench import NAME` that brings their images, "" where no import does."""

    @property
    def total(self) -> int:
        """All rows without images."""
        return self.scans + sum(self.imports.values())


def count_rows_without_images(items: Iterable[Item], gate: Gate) -> RowsWithoutImages:
    """Questions that the licence gate keeps without their images."""
    held = [item for item in items if not gate.travels(item)]
    told = Counter(import_name(item.benchmark) for item in held if not is_from_scans(item.benchmark, item.evidence))
    return RowsWithoutImages(len(held) - told.total(), dict(sorted(told.items())))


def is_from_scans(benchmark: str, evidence: Mapping[str, Any]) -> bool:
    """Whether the images of a row are made from scans: it is ours, or says from which frames."""
    ours = benchmark.rpartition("/")[2] == OWN
    return ours or ShownEvidence.is_in(evidence)


def import_name(benchmark: str) -> str:
    """NAME of `vgbench import NAME` for rows of a benchmark (`Item.benchmark`); "" where no import gives them."""
    # Knows all importers, which a set of our own questions does without.
    from vgbench_gen.importers.base import importers

    if benchmark.startswith(f"{_SPATIALSCORE}/"):
        return _SPATIALSCORE.casefold()
    for name in importers.names():
        if benchmark and benchmark in (importers[name].own, importers[name].benchmark):
            return str(name)
    # Some sources hold parts under names of their own, such as QSpatialBench-ScanNet.
    return next((str(n) for n in importers.names() if benchmark.startswith(f"{importers[n].title}-")), "")


@cache
def _read(path: Path) -> Licences:
    stated = load_toml(path, Licences)
    try:
        return Licences(policy=(*map(_of_loader, loaders.values()), *stated.policy))
    except ValidationError as error:
        raise ConfigError(f"{path}, with the loaders: {error.errors()[0]['msg']}. Rename one of the two.") from error


def _of_loader(loader: Loader) -> Policy:
    info = loader.info
    return Policy(
        name=loader.dataset,
        kind="scans",
        licence=info.licence,
        terms=info.terms,
        url=info.url,
        pixels=info.may_publish_pixels,
        reason=info.reason,
        notice=info.notice,
    )


def _make_unknown_policy(name: str) -> Policy:
    return Policy(
        name=name[:80],
        kind="unknown",
        licence="",
        terms="not established",
        url="",
        pixels=False,
        reason="no policy for this source: what is not known to be free stays at home",
    )


def _read_text(row: Mapping[str, Any] | Item, name: str) -> str:
    value = getattr(row, name) if isinstance(row, Item) else row.get(name)
    return value if isinstance(value, str) else ""


def _normalise_name(name: str) -> str:
    """Names that differ in case and punctuation alone are one: `CV-Bench` is `cvbench`, `ScanNet++` is `scannetpp`."""
    return "".join(c for c in name.lower().replace("+", "p") if c.isalnum())
