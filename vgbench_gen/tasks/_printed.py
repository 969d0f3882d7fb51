"""Which frames show print, which tells that an image is mirrored (`docs/validity.md#mirrored-images`)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from vgbench_gen.geometry import boxes, projection
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.view import SceneView, ViewFrame

# Things that bear letters, numbers or a screen, as scans call them.
PRINTED = frozenset(
    [
        *("book", "books", "bookshelf", "bookcase", "bookshelves", "magazine", "magazines", "newspaper", "paper"),
        *("papers", "paper stack", "document", "documents", "folder", "folders", "binder", "file", "envelope", "card"),
        *("poster", "posters", "sign", "exit sign", "signboard", "calendar", "map", "label", "sticker", "notice"),
        *("whiteboard", "blackboard", "chalkboard", "board", "bulletin board", "notice board", "pinboard", "clock"),
        *("wall clock", "alarm clock", "monitor", "monitors", "computer monitor", "tv", "television", "screen"),
        *("display", "laptop", "computer", "tablet", "phone", "telephone", "cell phone", "keyboard", "piano"),
        *("calculator", "printer", "copier", "scale", "thermometer", "thermostat", "bottle", "bottles", "can", "jar"),
        *("water bottle", "shampoo bottle", "soap bottle", "detergent", "box", "boxes", "cardboard box", "carton"),
        *("storage box", "tissue box", "cereal box", "pizza box", "package", "packet", "bag", "bags", "paper bag"),
        *("plastic bag", "shopping bag", "globe", "board game", "banner", "flag", "advertisement", "license plate"),
    ]
)
_SEEN_MIN = 0.002  # of the image that the box of such a thing covers; a smaller one cannot be read


def list_printed_frames(view: SceneView, frame_ids: Iterable[str]) -> list[str]:
    """Those of the frames that look like print, or that see a thing which bears some."""
    gates = view.gates.frame
    found = []
    for frame_id in sorted(set(frame_ids)):
        frame = view.frame(frame_id)
        if gates.print_share_min <= frame.print_share <= gates.print_share_max or _sees_printed_thing(frame, view):
            found.append(frame_id)
    return found


def _sees_printed_thing(frame: ViewFrame, view: SceneView) -> bool:
    size = np.array(frame.camera.size)
    for item in view.objects:
        if item.label.replace("_", " ") not in PRINTED:
            continue
        uv_px, z_m = projection.project(frame.camera, transform(frame.camera_from_world, boxes.corners(item.box)))
        if (z_m > 0).all():
            sides_px = np.ptp(np.clip(uv_px, -0.5, size - 0.5), axis=0)
            if float(sides_px.prod()) >= _SEEN_MIN * float(size.prod()):
                return True
    return False
