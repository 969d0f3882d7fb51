"""Models with downloaded weights behind plain functions of numpy arrays: boxes, masks, depth, matches, flow, angles.

Each class loads one folder as `save_pretrained` writes it. Pixels follow `vgbench_gen.geometry`: (0, 0) is the centre
of the top-left pixel, so that a share s of a width W is s W - 0.5. Nothing here is imported before a tool with weights
is called; all of it needs the extra `transformers`.
"""
