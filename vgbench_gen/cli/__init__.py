"""The program `vgbench`: one module per verb, found by scanning this folder.

A module here that is not `main` and does not start with an underscore has `register(app: typer.Typer) -> None`,
which adds its verb with an example as the epilog of its help. At its top it imports typer and light modules only;
everything else is imported inside the command, because `--help` must be fast.
"""
