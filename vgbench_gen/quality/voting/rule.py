"""When a question is hard, as configuration: thresholds for a panel of models, and what counts as a vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError

FOLDER = Path(__file__).parent
Policy = Literal["paper", "robust"]
# What has become of a model's answer to a question; "missing" where there is none.
Vote = Literal["right", "wrong", "unreadable", "refused", "failed", "missing"]
VOTES: tuple[Vote, ...] = ("right", "wrong", "unreadable", "refused", "failed", "missing")
COUNTED_WRONG: Mapping[Policy, tuple[Vote, ...]] = {
    "paper": ("wrong", "unreadable", "refused"),
    "robust": ("wrong",),
}
"""What counts as a wrong answer; what is neither here nor "right" is no vote."""


class Balance(Config):
    """How the hard questions are chosen from the candidates."""

    target: int = Field(default=1400, ge=1)
    rank_points: float = Field(default=3.0, ge=0, le=100)
    """How many percentage points off even each rank of the truth by size may be among the questions of one task, form
    and source, besides rounding; letters are even but for rounding."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Questions per category, for datasets that have all of these categories; others share the target evenly over
    tasks."""

    @model_validator(mode="after")
    def _check_sums(self) -> Balance:
        if self.counts and (min(self.counts.values()) < 0 or sum(self.counts.values()) != self.target):
            raise ValueError(f"counts of 0 and more with the sum {self.target}, which is the target")
        return self


class Rule(Config):
    """A question is hard where at least `wrong` of `models` models are wrong, `large` of them large."""

    models: int = Field(default=20, ge=1)
    """The number of models that vote."""
    wrong: int = Field(default=16, ge=1)
    """How many of them have to be wrong."""
    large: int = Field(default=2, ge=0)
    """How many of those have to be large."""
    large_from_billions: float = Field(default=32.0, gt=0)
    """The billions of parameters from which a model is large."""
    policy: Policy = "paper"
    """Which outcomes count as wrong, see `COUNTED_WRONG`."""
    panel: tuple[str, ...] = ()
    """The specs or names of those who vote; where empty, all that gave replies, without baselines."""
    balance: Balance = Field(default_factory=Balance)
    """How the questions are chosen."""

    @model_validator(mode="after")
    def _check_reachable(self) -> Rule:
        if self.wrong > self.models or self.large > self.models:
            raise ValueError(f"wrong and large of at most {self.models}, which is the number of models")
        return self


@dataclass(frozen=True, slots=True)
class Voter:
    """A model of the panel."""

    name: str
    billions: float | None = None
    """Its billions of parameters, None where they are unknown; such a model is not large."""

    def is_large(self, rule: Rule) -> bool:
        """Whether the rule calls it large."""
        return self.billions is not None and self.billions >= rule.large_from_billions


def load_rule(name: str) -> Rule:
    """A shipped rule by its name, or one of your own by its file.

    Raises:
        ConfigError: there is none, or it is not as it must be.
    """
    shipped = sorted(path.stem for path in FOLDER.glob("*.toml"))
    if name in shipped:
        return load_toml(FOLDER / f"{name}.toml", Rule)
    path = Path(name)
    if path.suffix != ".toml":
        raise ConfigError(f"rule: found {name!r}; expected {', '.join(shipped)} or a .toml file. Name one of them.")
    return load_toml(path, Rule)


def fit_rule(rule: Rule, panel: Sequence[Voter], wrong: int | None = None, large: int | None = None) -> Rule:
    """The rule for this panel, with thresholds given in place of its own.

    Args:
        rule: as configured.
        panel: who votes.
        wrong, large: instead of the rule's; both are needed where the panel has another size than the rule is for.

    Raises:
        ConfigError: the panel has another size and thresholds are missing, they cannot be reached, or it has fewer
            large models than the rule needs.
    """
    if len(panel) != rule.models and (wrong is None or large is None):
        raise ConfigError(
            f"panel: found {len(panel)} models; the rule is for {rule.models}, of which {rule.wrong} and {rule.large} "
            f"large ones must be wrong. Give --wrong N and --large N for this panel, or name other models with --model."
        )
    changes = {"models": len(panel), "wrong": rule.wrong if wrong is None else wrong}
    changes["large"] = rule.large if large is None else large
    for name, least in (("wrong", 1), ("large", 0)):
        if not least <= changes[name] <= len(panel):
            raise ConfigError(
                f"--{name}: found {changes[name]}; expected {least} to {len(panel)}, the models that vote. Name more "
                "with --model; baselines vote only where they are named."
            )
    there = sum(voter.is_large(rule) for voter in panel)
    if there < changes["large"]:
        unknown = [voter.name for voter in panel if voter.billions is None]
        hint = " Give --large with a smaller number."
        if unknown:
            hint += f" Unknown sizes: {', '.join(unknown)}; say them with --size MODEL=BILLIONS."
        raise ConfigError(
            f"panel: found {there} models of {rule.large_from_billions:g} billion parameters or more; expected at "
            f"least {changes['large']}, or nothing could ever be hard.{hint}"
        )
    return rule.model_copy(update=changes)
