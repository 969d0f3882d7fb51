"""Which objects may be asked about by what the scan calls them (`docs/validity.md#objects`)."""

from __future__ import annotations

# Parts of the building: their annotated boxes say where a scan ended, not how large a thing is, and everything else
# stands inside their rectangles.
STRUCTURAL = frozenset(
    [
        *("wall", "floor", "ceiling", "roof", "room", "structure", "pillar", "column", "beam", "stairs", "staircase"),
        *("door frame", "doorframe", "window frame", "windowframe", "window sill", "windowsill", "baseboard"),
        *("skirting", "skirting board", "molding", "moulding"),
    ]
)
# Bookkeeping words, for which nobody checked what the box encloses, and mirrors, whose depth is that of other things.
# All of them still make a rectangle ambiguous.
GENERIC = frozenset(
    [
        *("", "object", "objects", "thing", "item", "items", "stuff", "misc", "other", "others", "clutter", "remove"),
        *("unknown", "undefined", "unlabeled", "unlabelled", "unannotated", "void", "otherfurniture", "otherprop"),
        *("otherstructure", "split", "mirror", "reflection", "mirror reflection"),
    ]
)
# Things that go on where their box ends: one annotator boxes a door with its frame or a whole run of cabinets, the next
# a leaf or one unit, and no reader of a picture can tell which. All of them still make a rectangle ambiguous.
UNBOUNDED = frozenset(
    [
        *("door", "doors", "sliding door", "cabinet door", "cabinet doors", "closet door", "closet doors"),
        *("shower door", "shower doors", "window", "windows", "cabinet", "cabinets", "kitchen cabinet"),
        *("kitchen cabinets", "bathroom cabinet", "wall cabinet", "kitchen unit", "built-in cabinet", "closet"),
        *("closets", "counter", "kitchen counter", "bathroom counter", "countertop", "counter top", "worktop"),
        *("curtain", "curtains", "shower curtain", "blind", "blinds", "drapes", "partition", "divider", "railing"),
        *("handrail", "rail", "fence", "pipe", "pipes", "cable", "cables", "wire", "wires", "panel", "wall panel"),
        *("backsplash", "ledge", "shower", "shower wall", "shower walls"),
    ]
)


def is_structural(label: str) -> bool:
    """Whether a label (lower case) names a part of the building."""
    return label.replace("_", " ") in STRUCTURAL


def is_bounded(label: str) -> bool:
    """Whether things of a label (lower case) end where their box ends."""
    return label.replace("_", " ") not in UNBOUNDED


def is_thing(label: str) -> bool:
    """Whether a label (lower case) names a thing and no part of the building."""
    return not is_structural(label) and label not in GENERIC
