"""Logs of other programs, one reader each, found by scanning this folder."""
