"""What lmms-eval calls for this task; every function takes a row of the .jsonl file beside it."""

import json
import sys
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).resolve().parent
if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))
import vgbench_scorer  # noqa: E402

_WANTED = json.loads((FOLDER / "export.json").read_text("utf-8"))["scorer_version"]
if vgbench_scorer.version() != _WANTED:
    # Python keeps the first package of a name, which may be that of another export in the same run.
    raise ImportError(
        f"{vgbench_scorer.__file__}: found version {vgbench_scorer.version()} of the scorer; expected {_WANTED}. "
        "Run one of these exports at a time."
    )

# What its API models return in place of a reply.
NO_REPLY = ("[LMMS_EVAL_REQUEST_FAILED", "[LMMS_EVAL_BUDGET_EXCEEDED]")


def row(doc):
    """What the row holds: record, case, parts and system."""
    return json.loads(doc["vgbench"])


def images(doc):
    """For models that take images and text apart: all images, in order."""
    return [_open(part["path"]) for part in row(doc)["parts"] if part["type"] == "image"]


def text(doc, lmms_eval_specific_kwargs=None):
    """For models that take images and text apart: all words, in order."""
    found = row(doc)
    words = [part["text"] for part in found["parts"] if part["type"] == "text"]
    return "\n".join([found["system"], *words] if found["system"] else words)


def messages(doc, lmms_eval_specific_kwargs=None):
    """For chat models: images and words in the order in which they are shown."""
    found = row(doc)
    content = [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image", "url": _open(part["path"])}
        for part in found["parts"]
    ]
    system = [{"role": "system", "content": [{"type": "text", "text": found["system"]}]}] if found["system"] else []
    return [*system, {"role": "user", "content": content}]


def results(doc, replies):
    """The reply scored both ways; the log then holds what `vgbench compare --from lmms-eval` needs."""
    found = row(doc)
    reply = None if replies[0].startswith(NO_REPLY) else replies[0]
    grade = vgbench_scorer.grade(found["case"], reply)
    told = {name: found["record"][name] for name in ("id", "request_digest", "prompt_set")}
    # lmms-eval takes an interval from the field `score` of every metric, so it must be that metric's own.
    metrics = {name: {"score": float(grade["outcome"] == name)} for name in ("unreadable", "refused", "failed")}
    metrics["official"] = {"score": grade["official"], "outcome": grade["outcome"]}
    metrics[f"task_{found['record']['task']}"] = {"score": grade["score"], "outcome": grade["outcome"]}
    return {"sane": told | grade} | metrics


def mean(grades):
    """Mean score over replies; requests that failed are left out."""
    return vgbench_scorer.mean(grades)


def share(grades):
    """Share of all requests."""
    return sum(one["score"] for one in grades) / len(grades)


def _open(path):
    return Image.open(FOLDER / path).convert("RGB")
