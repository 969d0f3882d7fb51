"""How many objects of a label the frames show in all, each counted once however often it is seen. Of four numbers in a
row each is right equally often for every label, by frames that show more of them or fewer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._sightings import SEEN_MIN, get_sightings
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.seen import FramesEvidence, FramesTask
from vgbench_gen.text.render import fill_word

DRAWS = 400  # of frames


@tasks.register("object_count")
class ObjectCount(FramesTask):
    """See the module."""

    name = "object_count"
    category, subcategory = "Counting", "Object Counting"
    asked = "how many objects of one label several images show together"
    convention: ClassVar = {"shown": "a quarter of its surface, in one image at least", "count": "objects, not views"}
    margins: ClassVar = {"gap_min": 0.9}  # of a count

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Frames in which each object of a label, and whatever could be called so, is either shown or hidden."""
        found, drawn, numbers = get_sightings(view), self.draw_frames(view, rng, DRAWS), list_numbers()
        own = {name: found.list_instances(name) for name in found.names}
        # Of other names a reader could count what is called otherwise as well.
        names = [k for k, one in own.items() if len(one) >= self.options - 1 and one == found.list_alike(k)]
        if not names:
            yield reject(self, view, view.id, "objects_too_few", 0, self.options - 1)
        for name in (names[k] for k in rng.permutation(len(names))):
            for rows in drawn:
                part = np.ix_(rows, own[name])
                shown = found.shown[part].any(axis=0)
                if (shown | found.hidden[part].all(axis=0)).all():
                    for first in range(max(0, int(shown.sum()) - self.options + 1), len(own[name]) - self.options + 2):
                        labels = numbers[first : first + self.options]
                        if shown.sum() in range(first, first + self.options) and len(labels) == self.options:
                            shares = np.where(found.shown[part], found.shares[part], 0.0)
                            yield self.measure(view, rows, labels, shares, name)

    def value(self, seen: FramesEvidence) -> FloatArray:
        """Minus how far each number is from that of the objects shown."""
        count = (seen.shares.max(axis=-2, initial=0.0) >= SEEN_MIN).sum(axis=-1)
        off = np.abs(count[..., None] - np.array([list_numbers().index(label) for label in seen.labels]))
        return np.asarray(-off, dtype=np.float64)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """How many objects each image shows that none before it does."""
        seen, known, said = FramesEvidence.of(fact.truth_candidate), set[int](), list[str]()
        for n, shares in enumerate(seen.shares.tolist(), 1):
            new = {k for k, share in enumerate(shares) if share >= SEEN_MIN} - known
            if new:
                words = {"image": pen.word("option.image", n=str(n)), "count": pen.word(f"number.n{len(new)}")}
                said.append(pen.word(f"count.{'more' if known else 'first'}", **words))
                known |= new
        told = {"about": seen.about, "images": str(len(seen.shares)), "case": "any" if said else "none"}
        return told | {"new": pen.join(said or [seen.about]), "total": pen.word(f"number.n{len(known)}")}

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By the depth pixels that lie on each."""
        own = get_sightings(view).list_instances(measured.evidence.about)
        return self.value(measured.evidence.with_fields(shares=self.find_areas(view, measured.frames, own)))


@cache
def list_numbers() -> list[str]:
    """The answers from none to eight; "three" alone would be read as the third option."""
    return [fill_word("option.counted", value=fill_word(f"number.n{count}")) for count in range(9)]
