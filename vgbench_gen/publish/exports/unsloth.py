"""`unsloth`: conversations for unsloth's collator of vision models, and a script with settings that keep them whole.

Images are parts of the messages, as in unsloth's own notebooks; its collator reads them from paths.
"""

from __future__ import annotations

from vgbench_gen.publish.export import Export, Job, exports
from vgbench_gen.publish.training_rows import find_model, make_typed_records


@exports.register("unsloth")
class Unsloth(Export):
    """Writes `train.jsonl`, `train.py` and `images/`."""

    trains = True
    # Its collator resizes an image before the processor does: not the family's size.
    refuses = ("max_pixels",)

    def write(self, job: Job) -> str:
        job.json_lines("train.jsonl", make_typed_records(job))
        job.template("unsloth/train.py", "train.py", model=find_model(job).replace("Qwen/", "unsloth/"))
        job.template("unsloth/README.md", "README.md")
        return "python train.py"
