"""How the hard questions of a release were chosen, and whether people have looked at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.publish.words import load_word
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.provenance import MANIFEST, read_manifest

FLAG = "--candidates"
_PROGRAM = "baseline:"
Status = Literal["reviewed", "candidate", "listed"]


@dataclass(frozen=True, slots=True)
class Vote:
    """What a manifest says of hard questions and how they were chosen."""

    status: Status
    """What people said of the questions: "reviewed" where people accepted every question, "candidate" where they did
    not, "listed" where the ids come from a list of which nothing is known."""
    rule: Mapping[str, Any]
    """Rule of the vote, as `quality.voting.rule` writes it; empty where the status is "listed"."""
    panel: int = 0
    """Number of models that voted."""
    programs: int = 0
    """Number of them that are baselines."""
    chosen: int = 0
    """Number of questions that were chosen."""
    accepted: int = 0
    """Number of them that people accepted."""

    def record(self) -> dict[str, Any]:
        """The vote as the published manifest holds it."""
        return {name: getattr(self, name) for name in self.__slots__} | {"rule": dict(self.rule)}

    @property
    def key(self) -> str:
        """Name of the configuration's words."""
        return f"hard_{self.status}"


def vote_of(path: Path) -> Vote:
    """The vote behind `--hard PATH`: of the manifest beside it, or "listed" where there is none.

    Raises:
        DatasetError: the manifest's record is damaged.
    """
    folder = next((f for f in (path, path.parent) if path.suffix != ".json" and (f / MANIFEST).is_file()), None)
    found = None if folder is None or path.suffix == ".txt" else read_own_vote(read_manifest(folder), folder)
    return found or Vote("listed", {})


def read_own_vote(manifest: Mapping[str, Any], folder: Path) -> Vote | None:
    """The vote by which a dataset itself was chosen from a larger one; None where it was not.

    Raises:
        DatasetError: its record is damaged.
    """
    record = manifest.get("hard")
    if record is None:
        return None
    try:
        status, rule, panel = record["status"], dict(record["rule"]), record["panel"]
        if status not in get_args(Status):
            raise ValueError(f"status {status!r}")
        if isinstance(panel, int):  # as `record` writes it, in a set that was pulled
            return Vote(**{name: record[name] for name in Vote.__slots__})
        programs = sum(str(member["model"]).startswith(_PROGRAM) for member in panel)
        accepted = sum(item["review"] == "accepted" for item in record["items"])
        return Vote(status, rule, len(panel), programs, len(record["items"]), accepted)
    except (KeyError, TypeError, ValueError) as error:
        remedy = "Vote again (`vgbench vote`)."
        raise dataset_error(folder / MANIFEST, f"a damaged record of a vote ({error})", "a vote", remedy) from error


def require_reviewed(vote: Vote | None, allowed: bool) -> None:
    """Refuse to upload hard questions of which it is not known that people accepted them, unless a flag says so.

    Raises:
        ConfigError: nobody said `--candidates`.
    """
    if vote is None or vote.status == "reviewed" or allowed:
        return
    found = (
        f"candidates: {vote.accepted} of {vote.chosen} hard questions were accepted by people"
        if vote.status == "candidate"
        else "hard questions from a list, which does not say who accepted them"
    )
    remedy = f"Review them and vote again (`vgbench review`, `vgbench vote --reviewed`), or give {FLAG} to publish them"
    raise ConfigError(f"found {found}; expected reviewed ones. {remedy} as what they are.")


def vote_section(vote: Vote | None, whole: bool) -> str:
    """Markdown on the vote: rule, panel, status; "" where there is none. whole: it chose the whole set."""
    if vote is None:
        return ""
    blocks = ["### The hard questions"]
    if whole:
        blocks.append(load_word("hard.whole"))
    if vote.rule:
        slots = {"wrong": str(vote.rule["wrong"]), "models": str(vote.rule["models"])}
        if vote.rule["large"]:
            billions = f"{float(vote.rule['large_from_billions']):g}"
            told = [load_word("hard.rule", **slots, large=str(vote.rule["large"]), billions=billions)]
        else:
            told = [load_word("hard.rule_any", **slots)]
        policy = str(vote.rule["policy"])
        told += [load_word(f"hard.policy_{policy}"), load_word("hard.panel", panel=str(vote.panel))]
        told += [load_word("hard.programs", programs=str(vote.programs))] if vote.programs else []
        blocks.append(" ".join(told))
    blocks.append(load_word(f"hard.{vote.status}", chosen=f"{vote.chosen:,}", accepted=f"{vote.accepted:,}")
                  if vote.status == "candidate" else load_word(f"hard.{vote.status}"))  # fmt: skip
    return "\n\n".join(blocks)
