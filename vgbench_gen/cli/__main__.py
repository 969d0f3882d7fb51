"""`python -m vgbench_gen.cli`: the program where its script is not on the path."""

from vgbench_gen.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
