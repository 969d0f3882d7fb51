"""Targets of `vgbench export`, one file each, found by scanning this folder."""
