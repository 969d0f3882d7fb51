"""Targets of `vgbench export`, one module each; the folder is scanned for them."""
