"""The program `vgbench`: one module per verb, found by scanning this folder.

A function of a module here that is marked by `_verbs.verb` is a verb; modules that begin with an underscore have none.
At its top a module imports typer and light modules only; everything else is imported inside the command, because
`--help` must be fast.
"""
