"""`verifiers`: an environment for verifiers 0.4 with questions, images and the scorer.

It does not import this package. It is found by the name of its module, so every dataset has another one.
"""

from __future__ import annotations

from vgbench_gen import __version__
from vgbench_gen.publish.export import Export, Job, exports
from vgbench_gen.publish.training_rows import make_typed_records


@exports.register("verifiers")
class Verifiers(Export):
    """Writes the module `NAME.py`, `pyproject.toml`, `train.jsonl`, `images/` and the scorer."""

    trains = True
    refuses = ("rationale",)  # only the prompt is shown

    def write(self, job: Job) -> str:
        job.json_lines("train.jsonl", make_typed_records(job))
        job.scorer()
        job.template("verifiers/environment.py", f"{job.name}.py")
        job.template("verifiers/package.toml", "pyproject.toml", version=__version__)
        job.template("verifiers/README.md", "README.md")
        return f"pip install -e . && vf-eval {job.name} --model NAME"
