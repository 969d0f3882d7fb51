"""`unsloth`: conversations for unsloth's collator of vision models, and a script with settings that keep them whole.

Images are parts of the messages, as in unsloth's own notebooks; its collator reads them from paths.
"""

from __future__ import annotations

from vgbench_gen.publish.export import Export, Job, exports
from vgbench_gen.publish.training_rows import make_typed_records
from vgbench_gen.text.render import find_templates_root

_MODELS = {
    "qwen2.5-vl": "unsloth/Qwen2.5-VL-7B-Instruct",
    "qwen3-vl": "unsloth/Qwen3-VL-8B-Instruct",
    "internvl": "OpenGVLab/InternVL3-8B-hf",
}


@exports.register("unsloth")
class Unsloth(Export):
    """Writes `train.jsonl`, `train.py` and `images/`."""

    trains = True
    # Its collator resizes an image before the processor does: not the family's size.
    refuses = ("max_pixels",)

    def write(self, job: Job) -> str:
        job.json_lines("train.jsonl", make_typed_records(job))
        script = (find_templates_root() / "exports" / "unsloth" / "train.py").read_text("utf-8")
        model = _MODELS.get(job.train.family, _MODELS["qwen2.5-vl"])
        job.text("train.py", script.replace("{{ model }}", model))
        job.template("unsloth/README.md", "README.md")
        return "python train.py"
