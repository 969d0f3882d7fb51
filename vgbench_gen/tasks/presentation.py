"""What a task hands over: pictures, slots and options of a question, claims of a judgment, marks that explain it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.store.pictures import Picture
from vgbench_gen.text.numbers import format_fixed
from vgbench_gen.text.render import fill_word


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that `vgbench show` draws over a shown picture."""

    kind: str
    """"point" (every point a dot), "line" (points joined in order) or "rect" (two points, opposite corners)."""
    points_px: tuple[tuple[float, float], ...]
    """Pixels of the shown picture."""
    label: str = ""
    """Beside the first point."""
    right: bool = True
    """Whether it is part of the truth; otherwise it is part of a wrong option."""


@dataclass(frozen=True, slots=True, eq=False)
class WorldPoint:
    """A point that the overlay of a question marks in its images, for views of a scene in space."""

    label: str
    """As the marks are labelled."""
    point_m: FloatArray
    """(3,) in the world of the scan, meters."""
    right: bool = True
    """Whether it is part of the truth; otherwise it is part of a wrong option."""


@dataclass(frozen=True, slots=True, eq=False)
class WorldBox:
    """The box of an object that a question is about, for plans of a scene."""

    instance_id: str
    """The object in its scan."""
    label: str
    """What the scan calls it."""
    corners_m: FloatArray
    """Corners (8, 3) in the world of the scan, meters."""


@dataclass(frozen=True, slots=True, eq=False)
class Presentation:
    """Everything a question shows, before words are chosen."""

    pictures: tuple[Picture, ...]
    """In the order shown."""
    slots: Mapping[str, str]
    """Name of a slot in the templates -> the string that fills it."""
    options: tuple[str, ...] = ()
    """Texts without letters, in the order of the option set."""
    answer: str = ""
    """The open-ended answer with its unit; "" for other question types."""


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """One half of a pair of judgments: the same pixels, other words."""

    slots: Mapping[str, str]
    """The claim's own slots."""
    value: FloatArray
    """The claimed value as printed."""
    separation: float
    """Distance from the truth over the required margin."""
    key: str = ""
    """Candidate that the claim is about; "" where it was computed."""

    def get_candidate(self, fact: Fact) -> Candidate:
        """The candidate of the fact's pool that the claim is about, or a computed one, with the claimed value."""
        about = next((member for member in fact.candidates if member.key == self.key), Candidate(self.key, self.value))
        return replace(about, value=self.value)


@dataclass(frozen=True, slots=True, eq=False)
class ClaimPair:
    """A true and a false claim about the same pixels."""

    pictures: tuple[Picture, ...]
    """In the order shown."""
    slots: Mapping[str, str]
    """Slots that both claims share."""
    true: Claim
    """The claim that holds."""
    false: Claim
    """The claim that does not hold."""
    tolerance: float
    """What "true" means, in the task's unit or as a ratio."""


@dataclass(slots=True)
class Margins:
    """Collects value-over-limit ratios of the gates a draft passed, for its difficulty."""

    ratios: dict[str, float] = field(default_factory=dict)
    """Name of the gate -> ratio, at least 1 where it holds."""

    def at_least(self, name: str, value: float, limit: float) -> bool:
        """Record `value >= limit` and say whether it holds."""
        self.ratios[name] = round(float(value / limit), 4) if limit else 1.0
        return value >= limit

    def at_most(self, name: str, value: float, limit: float) -> bool:
        """Record `value <= limit` and say whether it holds."""
        self.ratios[name] = round(float(limit / value), 4) if value > 0 else 1e3
        return value <= limit


def say_signed(x: float, decimals: int, keys: tuple[str, str]) -> str:
    """A number without its sign, in the phrase of that sign; keys: of the positive and of the negative one."""
    text = format_fixed(x, decimals)
    return fill_word(keys[text.startswith("-")], value=text.removeprefix("-"))


def make_number_slots(options: int) -> dict[str, str]:
    """Slots of a question whose options are the images after the first one: how many there are, and their numbers."""
    *before, last = (str(number) for number in range(2, options + 2))
    return {
        "count": fill_word(f"number.n{options}"),
        "shown": fill_word(f"number.n{options + 1}").capitalize(),
        "last": last,
        "listed": f"{', '.join(before)} and {last}",
    }
