"""Sizes of things do not return from room to room, and what is stretched stays whole."""

from __future__ import annotations

from functools import cache

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray
from vgbench_gen.samples.furniture import MAKERS, make
from vgbench_gen.samples.furniture.sizes import VARIETY
from vgbench_gen.samples.furniture.style import Style, make_style
from vgbench_gen.samples.programs import PROGRAMS
from vgbench_gen.samples.rooms import plan_room

NEAR = 0.02


@cache
def sizes() -> tuple[FloatArray, FloatArray]:
    """(N, 3) sides of annotated boxes, the level ones sorted, and (N,) their rooms: two of each of four kinds."""
    found, room = [], []
    for number in range(8):
        plan = plan_room(3, f"sizes {number}", list(PROGRAMS)[number % 4])
        for item in plan.objects():
            if not item.structural:
                found.append([*sorted(item.box.size_m[:2]), item.box.size_m[2]])
                room.append(number)
    return np.array(found), np.array(room)


def returning(triples: FloatArray, room: FloatArray) -> float:
    """Share of boxes that another room has too, each side within 2 %."""
    logs = np.log(triples)
    near = (np.abs(logs[:, None] - logs[None]) < NEAR).all(axis=-1) & (room[:, None] != room[None])
    return float(near.any(axis=1).mean())


def test_size_triples_return_in_other_rooms_no_more_than_by_chance() -> None:
    triples, room = sizes()
    rng = np.random.default_rng(0)
    # Chance: what is left once each side has been made longer or shorter at random, whatever it was.
    spread = np.log(1.3)
    chance = [returning(triples * np.exp(rng.uniform(-spread, spread, triples.shape)), room) for _ in range(20)]
    assert len(triples) > 250
    assert returning(triples, room) < 2 * float(np.mean(chance)) + 0.01


def style() -> Style:
    return make_style(rng_for(0, "style"))


def test_things_differ_by_name_alone() -> None:
    look = style()
    for kind in MAKERS:
        one, same, other = (
            make(kind, rng_for(0, "maker"), look, rng_for(0, "size", name)).extent_m() for name in ("a", "a", "b")
        )
        np.testing.assert_array_equal(one, same)
        ratio = (other[1] - other[0]) / (one[1] - one[0])
        assert np.abs(np.log(ratio)).max() > 0.004, kind


def test_stretched_things_keep_their_shelves_and_normals() -> None:
    look = style()
    assert set(VARIETY) <= set(MAKERS)
    for kind in MAKERS:
        for k in range(2):
            model = make(kind, rng_for(k, "maker", kind), look, rng_for(k, "size", kind))
            low, high = model.extent_m()
            assert abs(low[2]) < 1e-9
            assert high[2] < 2.4
            for part in model.parts:
                corners = part.vertices_m[part.faces]
                across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
                flat = np.linalg.norm(across, axis=1) > 1e-12
                shown = part.normals[part.faces].mean(axis=1)
                np.testing.assert_allclose(np.linalg.norm(part.normals, axis=1), 1, atol=1e-9)
                assert ((across * shown).sum(axis=1)[flat] > 0).all(), kind
            tops = [np.unique(np.round(part.vertices_m[:, 2], 5)) for part in model.parts]
            for shelf in model.shelves:
                assert (np.abs(shelf.center_m[:2]) + shelf.half_m < np.maximum(-low[:2], high[:2]) + 1e-9).all(), kind
                assert min(np.abs(top - shelf.center_m[2]).min() for top in tops) < 0.0105, kind
