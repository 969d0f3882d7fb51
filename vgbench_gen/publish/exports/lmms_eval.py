"""A task for lmms-eval (`EvolvingLMMs-Lab/lmms-eval: docs/guides/task_guide.md`): YAML, functions, rows, images."""

from __future__ import annotations

import json
from typing import Any

from vgbench_gen.evaluation.scoring import SCORER_VERSION
from vgbench_gen.publish.export import Export, Job, exports

_MEANS, _SHARES = ("sane", "official"), ("unreadable", "refused", "failed")


@exports.register("lmms-eval")
class LmmsEval(Export):
    """Writes `NAME.yaml`, `vgbench_task.py`, `NAME.jsonl`, `images/` and the scorer, for `--include_path`."""

    def write(self, job: Job) -> str:
        import yaml

        tasks: set[str] = set()

        def records() -> Any:
            for row in job.rows():
                record = row.record()
                tasks.add(record["task"])
                # Nested data are one text column, because Arrow would give every row the keys of all rows.
                data = {"record": record, "case": row.case(), "parts": row.parts(), "system": job.settings.system}
                columns = {name: record[name] for name in ("id", "task", "category", "question_type", "answer")}
                yield columns | {"question": row.asked.text, "vgbench": json.dumps(data, ensure_ascii=False)}

        job.json_lines(f"{job.name}.jsonl", records())
        job.text(f"{job.name}.yaml", _HEAD + yaml.dump(_make_task(job, tasks), Dumper=_make_dumper(), sort_keys=False))
        job.template("lmms-eval/vgbench_task.py", "vgbench_task.py")
        job.template("lmms-eval/README.md", "README.md")
        job.scorer()
        return f"lmms_eval --include_path . --tasks {job.name} --model … --log_samples --output_path logs"


_HEAD = "# Written by `vgbench export`; README.md beside it says how to run it.\n"


class _Function(str):
    """The name of a function, which YAML marks with the tag `!function`."""


def _make_dumper() -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", f"vgbench_task.{name}"))
    return Dumper


def _make_task(job: Job, tasks: set[str]) -> dict[str, Any]:
    means = [*_MEANS, *(f"task_{task}" for task in sorted(tasks))]
    aggregation = dict.fromkeys(means, "mean") | dict.fromkeys(_SHARES, "share")
    metrics = [
        {"metric": name, "aggregation": _Function(function), "higher_is_better": function == "mean"}
        for name, function in aggregation.items()
    ]
    return {
        "task": job.name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"{job.name}.jsonl"}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_visual": _Function("images"),
        "doc_to_text": _Function("text"),
        "doc_to_messages": _Function("messages"),
        "doc_to_target": "answer",
        "process_results": _Function("results"),
        "generation_kwargs": {
            "max_new_tokens": job.settings.max_tokens,
            "temperature": job.settings.temperature,
            "do_sample": False,
            "until": [],  # the default, a blank line, would cut off reasoning
        },
        "reasoning_tags": "none",  # our reader removes the tags
        "metric_list": metrics,
        "metadata": {"version": SCORER_VERSION, "dataset": job.source.fingerprint, "prompts": job.options.prompt_set},
    }
