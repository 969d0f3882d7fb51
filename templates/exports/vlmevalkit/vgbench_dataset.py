"""The dataset class that VLMEvalKit needs for the .tsv file beside it; `run_vgbench.py` registers it."""

import csv
import json
import sys
from pathlib import Path

import pandas as pd
import vlmeval.dataset
from vlmeval.dataset.image_base import ImageBaseDataset
from vlmeval.smp import dump, get_intermediate_file_path, load

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
import vgbench_scorer  # noqa: E402

NAME = next(FOLDER.glob("*.tsv")).stem


class VGBench(ImageBaseDataset):
    """One table of questions."""

    TYPE = "VQA"
    MODALITY = "IMAGE"
    DATASET_URL = {NAME: ""}  # noqa: RUF012
    # A model's own way of asking would be another benchmark.
    force_use_dataset_prompt = True

    def load_data(self, dataset):
        """The table, every cell as text."""
        # A reader that guesses would take ids for numbers and answers such as "None" for gaps.
        return pd.read_csv(FOLDER / f"{NAME}.tsv", sep="\t", dtype=str, keep_default_na=False, quoting=csv.QUOTE_ALL)

    def build_prompt(self, line):
        """Images and words in the order in which they are shown."""
        row = json.loads((self.data.iloc[line] if isinstance(line, int) else line)["vgbench"])
        system = [{"type": "text", "value": row["system"]}] if row["system"] else []
        return system + [
            {"type": "text", "value": part["text"]}
            if part["type"] == "text"
            else {"type": "image", "value": str(FOLDER / part["path"])}
            for part in row["parts"]
        ]

    def evaluate(self, eval_file, **judge_kwargs):
        """Score a file of predictions; writes every grade beside it and returns the means."""
        given = load(eval_file)
        replies = dict(zip(map(str, given["index"]), given["prediction"], strict=True))
        grades, tasks = [], {}
        for index, words in zip(self.data["index"], self.data["vgbench"], strict=True):
            if str(index) not in replies:
                continue
            row = json.loads(words)
            grade = vgbench_scorer.grade(row["case"], self._reply(replies[str(index)]))
            tasks.setdefault(row["record"]["task"], []).append(grade)
            grades.append({"id": row["record"]["id"]} | grade)
        dump(grades, get_intermediate_file_path(eval_file, "_grades", "jsonl"))
        found = {"Overall": vgbench_scorer.mean(grades), "official": vgbench_scorer.mean(grades, "official")}
        found |= {name: vgbench_scorer.share(grades, name) for name in ("unreadable", "refused", "failed")}
        found |= {f"task_{task}": vgbench_scorer.mean(some) for task, some in sorted(tasks.items())}
        dump(found, get_intermediate_file_path(eval_file, "_score", "json"))
        return found

    @classmethod
    def _reply(cls, prediction):
        if not isinstance(prediction, str):
            return "" if pd.isna(prediction) else str(prediction)
        return None if prediction.startswith(cls.INFER_FAIL_MARKERS) else prediction


def register():
    """Make the dataset known to VLMEvalKit under its name."""
    vlmeval.dataset.VGBench = VGBench
    vlmeval.dataset.DATASET_CLASSES.insert(0, VGBench)
    vlmeval.dataset.SUPPORTED_DATASETS.append(NAME)
