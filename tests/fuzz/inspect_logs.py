"""Logs of inspect_ai as a target, both forms: `.eval`, an archive of JSON, and `.json`.

Needs that package (`bash tools/inspect.sh`); where it is not installed there is no such target.
"""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from functools import partial
from pathlib import Path

from tests.fuzz.answered import use_log, write_set
from tests.fuzz.verbs import Target, run_verb
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.publish.export import export


def write_inspect(data: Path) -> None:
    """The replies of one model in both forms."""
    from inspect_ai.log import read_eval_log, write_eval_log

    source = write_set(data)
    run_verb("eval", str(source.folder), "--model", "baseline:truth")
    export(source, "inspect-log", data / "exported", AskOptions())
    shutil.rmtree(source.folder / "replies")
    (packed,) = (data / "exported").glob("*.eval")
    (data / "log").mkdir()
    write_eval_log(read_eval_log(str(packed)), str(data / "log/model_vgbench_set.json"))
    # As it stands, it is packed in a way that `zipfile` alone does not know, so that its members could not be damaged.
    with (
        zipfile.ZipFile(packed) as found,
        zipfile.ZipFile(data / "log/model_vgbench_set.eval", "w", zipfile.ZIP_DEFLATED) as out,
    ):
        for name in found.namelist():
            out.writestr(name, found.read(name))
    shutil.rmtree(data / "exported")


INSPECT_TARGETS = (
    (Target("log of inspect_ai", write_inspect, partial(use_log, "inspect"), "log", stays=True),)
    if importlib.util.find_spec("inspect_ai")
    else ()
)
