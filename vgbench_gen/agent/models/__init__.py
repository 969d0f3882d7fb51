"""Models with downloaded weights that take and return numpy arrays: boxes, masks, depth, matches, flow, orientations.

Pixels follow `vgbench_gen.geometry`: (0, 0) is the centre of the top-left pixel, so a share s of a width W is the pixel
s W - 0.5. These modules are imported when a tool with weights is first called; they need the extra `transformers`.
"""
