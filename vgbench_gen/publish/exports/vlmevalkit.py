"""A dataset for VLMEvalKit (`open-compass/VLMEvalKit: docs/en/Development.md`): a table, its class and a start script.

VLMEvalKit finds datasets in a list of its own and has no place for those of others, so the start script adds ours to
that list and hands over to VLMEvalKit's own script.
"""

from __future__ import annotations

import csv
import json

from vgbench_gen.publish.export import Export, Job, exports

_COLUMNS = ("index", "question", "answer", "category", "task", "question_type", "image_path", "vgbench")


@exports.register("vlmevalkit")
class VLMEvalKit(Export):
    """`NAME.tsv`, `vgbench_dataset.py`, `run_vgbench.py`, `images/` and the scorer."""

    def write(self, job: Job) -> str:
        with (job.folder / f"{job.name}.tsv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, _COLUMNS, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
            table.writeheader()
            for row in job.rows():
                record = row.record()
                told = {
                    "name": job.name,
                    "record": record,
                    "case": row.case(),
                    "parts": row.parts(),
                    "system": job.settings.system,
                }
                columns = ("answer", "category", "task", "question_type")
                table.writerow(
                    {name: record[name] for name in columns}
                    | {
                        "index": record["id"],
                        "question": row.asked.text,
                        # Read by tools of VLMEvalKit that show rows; the class takes the paths from `vgbench`.
                        "image_path": json.dumps(list(row.images)),
                        "vgbench": json.dumps(told, ensure_ascii=False),
                    }
                )
        first = "The system prompt goes out as the first words of the user's turn."
        system = f" {first}" if job.settings.system else ""
        job.template("vlmevalkit/vgbench_dataset.py", "vgbench_dataset.py")
        job.template("vlmevalkit/run_vgbench.py", "run_vgbench.py")
        job.template("vlmevalkit/README.md", "README.md", system=system)
        job.scorer()
        return "python run_vgbench.py --model … --base-url … --work-dir outputs"
