"""Procedural indoor scenes, rendered on the CPU, in the official layouts: nobody needs a licence to try."""

FRAMES = 20
"""Of one scene, where nobody says another number."""
