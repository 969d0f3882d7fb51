"""Speed and memory of vgbench_gen, as ratios measured in one run: `python -m bench` or `make bench`."""
