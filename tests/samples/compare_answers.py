"""Written sample scenes, what is asked about them, and a comparison of every answer with the take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.samples.asked import Asked
from tests.samples.exact_truth import ExactScene
from vgbench_gen import build, load
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.samples.base import SampleSpec
from vgbench_gen.samples.captures import make_capture
from vgbench_gen.samples.make import make_samples


def compare_answers(
    specs: Sequence[SampleSpec], checks: Mapping[str, Callable[[Asked], None]], folder: Path
) -> dict[str, int]:
    """Kind -> how many of its facts were asked about and compared. checks: kind -> fails where an answer is wrong.

    specs: of ScanNet, whose frames and objects are numbered, or CA-1M.
    """
    takes = {spec.scene_id: make_capture(spec) for spec in specs}
    for dataset in sorted({spec.dataset for spec in specs}):
        make_samples([spec for spec in specs if spec.dataset == dataset], folder / "raw")
    recipe = load_recipe("default").model_copy(update={"tasks": tuple(checks), "facts_per_scene": 16})
    build(recipe, folder / "raw", folder / "out")
    datasets = {spec.scene_id: spec.dataset for spec in specs}
    scenes = {name: ExactScene(capture, datasets[name]) for name, capture in takes.items()}
    data, facts, problems = load(folder / "out"), defaultdict[str, set[str]](set), list[str]()
    for item in data:
        facts[item.task].add(f"{item.scene_id} {item.evidence['key']}")
        try:
            checks[item.task](Asked(item, scenes[item.scene_id], partial(data.image_bytes, item)))
        except AssertionError as error:
            problems.append(f"{item.task} {item.question_type} {item.scene_id} {item.evidence['key']}: {error}")
    counts = {task: len(found) for task, found in facts.items()}
    tally = Counter(problem.partition(" ")[0] for problem in problems)
    assert not problems, f"{dict(tally)} of facts {counts}\n" + "\n".join(problems[:20])
    return counts
