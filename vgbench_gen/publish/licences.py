"""The license gate: which rows may be published with their images, and where users get the images of the others.

`licences.toml` holds the terms of the images of other benchmarks; loaders state those of their scans
(`scenes.base.DatasetInfo`). Images of any other source are not published.
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
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.types import Item
from vgbench_gen.scenes.base import Loader, loaders
from vgbench_gen.tasks.row_evidence import ShownEvidence

LICENCES = Path(__file__).with_name("licences.toml")
FLAG = "--with-pixels"
_SPATIALSCORE = "SpatialScore"  # `vgbench import spatialscore` imports all its sources together
OWN = "VGBench"  # `Item.benchmark` of questions that this program made from scans


class Policy(Config):
    """The terms of the images of one source."""

    name: str
    """Name of the scan dataset or the benchmark, or the license id of synthetic scenes."""
    kind: Literal["scans", "benchmark", "made", "unknown"]
    """"scans" for a scan dataset, "benchmark" for a benchmark, "made" for synthetic scenes, "unknown" if the source is
    not known."""
    also: tuple[str, ...] = ()
    """Other names of the source."""
    licence: str
    """License that `--with-pixels` must name; "" if the license is not established."""
    terms: str
    """Name of the terms of the images."""
    url: str
    """Address of the terms; "" if unknown."""
    pixels: bool
    """Whether the images may be published without a flag."""
    reason: str
    """Why they may or may not be published, in one clause without a full stop."""
    notice: str = ""
    """Notice that must accompany published images; "" for none."""


class Licences(Config):
    """The policies of `licences.toml` and of the loaders.

    Raises:
        ValueError: two policies have the same name.
    """

    policy: tuple[Policy, ...]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        # --with-pixels names a policy without its kind, so a scan dataset and a benchmark may not share a name.
        names = Counter(_normalise_name(name) for policy in self.policy for name in (policy.name, *policy.also))
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ValueError(f"one policy per name, but {', '.join(twice)} stands for two")
        return self


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about all rows of one policy."""

    policy: Policy
    rows: int
    """Number of rows under the policy."""
    pixels: bool
    """Whether their images are published."""
    by_flag: bool
    """Whether they are published only because of `--with-pixels`."""


class Gate:
    """Decides by policies and flags whether images may be published.

    Args:
        licences: the policies.
        allowed: name of a policy -> license that `--with-pixels` gives for it.
    """

    def __init__(self, licences: Licences, allowed: Mapping[str, str]) -> None:
        self._allowed = dict(allowed)
        self._made = {policy.name: policy for policy in licences.policy if policy.kind == "made"}
        self._by_name: dict[tuple[str, str], Policy] = {
            (policy.kind, _normalise_name(name)): policy.model_copy(update=self._stated(policy))
            for policy in licences.policy
            for name in (policy.name, *policy.also)
        }

    def policy(self, row: Mapping[str, Any] | Item) -> Policy:
        """The policy of a row, by its `benchmark`, `source` and `licence`; for an unknown source one that forbids."""
        benchmark, source, licence = (_read_text(row, name) for name in ("benchmark", "source", "licence"))
        benchmark = benchmark.rpartition("/")[2]  # `SpatialScore/MMVP` shows MMVP's images
        if benchmark == OWN and licence in self._made and source != "posed":  # users state the license of posed scenes
            return self._made[licence]
        kind, name = ("scans", source) if benchmark == OWN else ("benchmark", benchmark)
        return self._by_name.get((kind, _normalise_name(name))) or _make_unknown_policy(name or "(no name)")

    def travels(self, row: Mapping[str, Any] | Item) -> bool:
        """Whether the row may be published with its images."""
        return self._pass(self.policy(row))

    def decisions(self, rows: Iterable[Mapping[str, Any] | Item]) -> list[Decision]:
        """One decision per policy of the rows, sorted by name."""
        policies: dict[str, Policy] = {}
        counts: Counter[str] = Counter()
        for row in rows:
            policy = self.policy(row)
            policies[policy.name] = policy
            counts[policy.name] += 1
        return [
            Decision(policy, counts[name], self._pass(policy), self._pass(policy) and not policy.pixels)
            for name, policy in sorted(policies.items())
        ]

    def _stated(self, policy: Policy) -> dict[str, str]:
        """The license that a flag states for a policy without an established one."""
        if policy.licence or policy.name not in self._allowed:
            return {}
        licence = self._allowed[policy.name]
        return {"licence": licence, "terms": f"{licence}, as stated by the publisher"}

    def _pass(self, policy: Policy) -> bool:
        return policy.pixels or policy.name in self._allowed


def make_gate(flags: Iterable[str] = (), path: Path = LICENCES) -> Gate:
    """The gate with the flags `NAME=LICENCE` of `--with-pixels`, each of which allows the images of one source.

    With the license the publisher states the terms that permit publication.

    Raises:
        ConfigError: a malformed flag, a name without a policy, or another license than the policy's.
    """
    licences = _read(path)
    by_name = {_normalise_name(name): policy for policy in licences.policy for name in (policy.name, *policy.also)}
    allowed = {}
    for flag in flags:
        name, _, licence = flag.partition("=")
        policy = by_name.get(_normalise_name(name))
        if policy is None:
            known = ", ".join(policy.name for policy in licences.policy)
            found = f"no policy for {name!r}"
            raise config_error(f"{FLAG} {flag}", found, f"NAME=LICENCE with one of {known}", "Check the name.")
        if not licence or licence.lower() == "unknown" or licence != (policy.licence or licence):
            expected = f"{policy.name}={policy.licence or 'LICENCE'} ({policy.terms}, {policy.url})"
            remedy = f"Give it only if you may publish these images: {policy.reason}."
            raise config_error(f"{FLAG} {flag}", f"{licence or 'no licence'!r}", expected, remedy)
        allowed[policy.name] = licence
    return Gate(licences, allowed)


@dataclass(frozen=True, slots=True)
class RowsWithoutImages:
    """Numbers of rows that are published without their images."""

    scans: int = 0
    """Rows whose images `vgbench pull --scenes` makes."""
    imports: Mapping[str, int] = field(default_factory=dict)
    """NAME of `vgbench import NAME` -> rows whose images it brings; "" counts rows that no import covers."""

    @property
    def total(self) -> int:
        """All rows without images."""
        return self.scans + sum(self.imports.values())


def count_rows_without_images(items: Iterable[Item], gate: Gate) -> RowsWithoutImages:
    """Count the questions whose images the license gate keeps back."""
    bare = [item for item in items if not gate.travels(item)]
    others = Counter(import_name(item.benchmark) for item in bare if not is_from_scans(item.benchmark, item.evidence))
    return RowsWithoutImages(len(bare) - others.total(), dict(sorted(others.items())))


def is_from_scans(benchmark: str, evidence: Mapping[str, Any]) -> bool:
    """Whether the images of a row are made from scans: the question is ours, or its evidence names frames."""
    return benchmark.rpartition("/")[2] == OWN or ShownEvidence.is_in(evidence)


def import_name(benchmark: str) -> str:
    """NAME of `vgbench import NAME` for a benchmark (`Item.benchmark`); "" if no importer reads it."""
    # Imported here because this loads all importers, which our own questions do not need.
    from vgbench_gen.importers.base import importers

    if benchmark.startswith(f"{_SPATIALSCORE}/"):
        return _SPATIALSCORE.casefold()
    for name in importers.names():
        if benchmark and benchmark in (importers[name].own, importers[name].benchmark):
            return str(name)
    # Parts of a source may have their own benchmark names, such as QSpatialBench-ScanNet.
    return next((str(n) for n in importers.names() if benchmark.startswith(f"{importers[n].title}-")), "")


@cache
def _read(path: Path) -> Licences:
    stated = load_toml(path, Licences)
    try:
        return Licences(policy=(*map(_make_scan_policy, loaders.values()), *stated.policy))
    except ValidationError as error:
        raise ConfigError(f"{path}, with the loaders: {error.errors()[0]['msg']}. Rename one of the two.") from error


def _make_scan_policy(loader: Loader) -> Policy:
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
    """The name without case and punctuation, so that `CV-Bench` is `cvbench` and `ScanNet++` is `scannetpp`."""
    return "".join(c for c in name.lower().replace("+", "p") if c.isalnum())
