"""A task for lmms-eval (`EvolvingLMMs-Lab/lmms-eval: docs/guides/task_guide.md`): YAML, functions, rows, images."""

from __future__ import annotations

import json
from typing import Any

from vgbench_gen.evaluation.scoring import SCORER_VERSION
from vgbench_gen.publish.export import Export, Job, exports

_MEANS, _SHARES = ("sane", "official"), ("unreadable", "refused", "failed")


@exports.register("lmms-eval")
class LmmsEval(Export):
    """`NAME.yaml`, `vgbench_task.py`, `NAME.jsonl`, `images/` and the scorer; runs with `--include_path`."""

    def write(self, job: Job) -> str:
        import yaml

        tasks: set[str] = set()

        def records() -> Any:
            for row in job.rows():
                record = row.record()
                tasks.add(record["task"])
                # One column of text: Arrow would give every row the options and tags of all others.
                told = {"record": record, "case": row.case(), "parts": row.parts(), "system": job.settings.system}
                columns = ("id", "task", "category", "question_type", "answer")
                yield {name: record[name] for name in columns} | {
                    "question": row.asked.text,
                    "vgbench": json.dumps(told, ensure_ascii=False),
                }

        job.json_lines(f"{job.name}.jsonl", records())
        job.text(f"{job.name}.yaml", _HEAD + yaml.dump(_make_task(job, tasks), Dumper=_make_dumper(), sort_keys=False))
        job.template("lmms-eval/vgbench_task.py", "vgbench_task.py")
        job.template("lmms-eval/README.md", "README.md")
        job.scorer()
        return f"lmms_eval --include_path . --tasks {job.name} --model … --log_samples --output_path logs"


_HEAD = "# Written by `vgbench export`; README.md beside it says how to run it.\n"


class _Function(str):
    """A name that the YAML file marks as a function."""


def _make_dumper() -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", f"vgbench_task.{name}"))
    return Dumper


def _make_task(job: Job, tasks: set[str]) -> dict[str, Any]:
    means = [*_MEANS, *(f"task_{task}" for task in sorted(tasks))]
    metrics = [
        {
            "metric": name,
            "aggregation": _Function("mean" if name in means else "share"),
            "higher_is_better": name in means,
        }
        for name in (*means, *_SHARES)
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
            "until": [],  # left out, it would be a blank line, and cut reasoning off
        },
        "reasoning_tags": "none",  # our reader knows what to do with them
        "metric_list": metrics,
        "metadata": {"version": SCORER_VERSION, "dataset": job.source.fingerprint, "prompts": job.options.prompt_set},
    }
