"""A dataset for VLMEvalKit (`open-compass/VLMEvalKit: docs/en/Development.md`): a table, its class and a start script.

VLMEvalKit has a fixed list of datasets. The start script adds the exported dataset to it and calls VLMEvalKit's own
script.
"""

from __future__ import annotations

import csv
import json

from vgbench_gen.publish.export import Export, Job, exports

_COLUMNS = ("index", "question", "answer", "category", "task", "question_type", "image_path", "vgbench")


@exports.register("vlmevalkit")
class VLMEvalKit(Export):
    """Writes `NAME.tsv`, `vgbench_dataset.py`, `run_vgbench.py`, `images/` and the scorer."""

    def write(self, job: Job) -> str:
        with (job.folder / f"{job.name}.tsv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, _COLUMNS, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
            table.writeheader()
            for row in job.rows():
                record = row.record()
                data = {"name": job.name, "record": record, "case": row.case(), "parts": row.parts()}
                data["system"] = job.settings.system
                columns = {name: record[name] for name in ("answer", "category", "task", "question_type")}
                columns |= {"index": record["id"], "question": row.asked.text}
                # `image_path` is for the tools of VLMEvalKit that show rows; the class reads the paths in `vgbench`.
                columns["image_path"] = json.dumps(list(row.images))
                table.writerow(columns | {"vgbench": json.dumps(data, ensure_ascii=False)})
        system = " The system prompt goes out as the first words of the user's turn." if job.settings.system else ""
        job.template("vlmevalkit/vgbench_dataset.py", "vgbench_dataset.py")
        job.template("vlmevalkit/run_vgbench.py", "run_vgbench.py")
        job.template("vlmevalkit/README.md", "README.md", system=system)
        job.scorer()
        return "python run_vgbench.py --model … --base-url … --work-dir outputs"
