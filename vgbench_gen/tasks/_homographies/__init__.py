"""What the two homography tasks share: the pool of warps, their checks and their solvers."""
