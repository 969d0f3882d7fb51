"""`inspect`: a task for inspect_ai with questions, images and scorer; it does not import this package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgbench_gen.publish.export import Export, Job, exports


@exports.register("inspect")
class InspectTask(Export):
    """Writes the task `NAME.py`, its samples as JSON lines, `images/` and the scorer."""

    def write(self, job: Job) -> str:
        job.json_lines("samples.jsonl", _make_samples(job))
        job.scorer()
        # inspect_ai reads the task's name from the file without running it, so the name must be a literal.
        job.template("inspect/task.py", f"{job.name}.py")
        job.template("inspect/README.md", "README.md")
        return f"inspect eval {job.name}.py --model PROVIDER/MODEL"


def _make_samples(job: Job) -> Iterator[dict[str, Any]]:
    for row in job.rows():
        scene = f"{row.item.source}/{row.item.scene_id}"
        yield row.record() | {"scene": scene, "parts": row.parts(), "case": row.case()}
