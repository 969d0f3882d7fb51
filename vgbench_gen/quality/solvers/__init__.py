"""The audit's questions to the solvers and image rules that tasks declare (`vgbench_gen.tasks.solving`)."""
