"""A core model that plans well: it knows what each question asks, calls the tool that measures it, and takes the option
that fits what came back best. It sees no truth; where tools tell nothing it guesses.

`python -m tests.agent.planner DATASET [--per-task 30]` prints what tools are worth to it (`docs/agent.md`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.agent.backend import AgentBackend, AgentOptions
from vgbench_gen.backends.scripted import Scripted, ScriptLine
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import ALPHABET, FloatArray, Item
from vgbench_gen.evaluation.background import reveal_item, tell_background
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import make_asked
from vgbench_gen.evaluation.scoring import make_case, score
from vgbench_gen.geometry import plans
from vgbench_gen.geometry.boxes import EDGES, measure_gap_m
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.depth_order import rate_orders
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact
from vgbench_gen.tasks.seen import LabelledScene

_PLANNERS = ("Plan which tools to call", "Generate a JSON-formatted tool-calling plan")  # of both modes
Call = tuple[str, dict[str, Any]]
_RESULT = re.compile(r"^(?:OBSERVATION: |[A-Za-z0-9]+: )(\{.*\})$", re.MULTILINE)


def ask_of(item: Item) -> str:
    """The words of a question as agents are asked."""
    options = AskOptions()
    return make_asked(item, options.settings(""), options, 0).text


class Planner(Scripted):
    """Plays the model.

    Args:
        items: the multi-choice questions that it may be asked, no two in the same words.
        oracle: whether its tools are oracle tools; classical ones otherwise.
        options: how requests are sent, and where replies are kept.
    """

    def __init__(self, items: Iterable[Item], oracle: bool, options: BackendOptions | None = None) -> None:
        self.oracle = oracle
        self._items = {ask_of(item): item for item in items}

        def play(call: Any) -> ScriptLine:
            return ScriptLine(reply=self.say(call.text), usage=(len(call.text) // 4, 50))

        super().__init__("scripted:planner", "planner", play, options or BackendOptions(retries=0))

    def say(self, text: str) -> str:
        """What it says to a prompt of either kind of agent, or to the question alone."""
        item = next((item for asked, item in self._items.items() if asked in text), None)
        assert item is not None, text[-400:]
        calls = plan_with_oracle(item) if self.oracle else plan_with_classical(item)
        if any(opening in text for opening in _PLANNERS):
            return f"```json\n{json.dumps([{'name': name, 'arguments': given} for name, given in calls])}\n```"
        results = [json.loads(found) for found in _RESULT.findall(text)]
        if '"actions"' in text and len(results) < len(calls):
            name, given = calls[len(results)]
            return json.dumps({"thought": "", "actions": [{"name": name, "arguments": given}]})
        answer = f"<answer>{self.choose(item, results, calls)}</answer>"
        if '"actions"' in text:
            end = {"name": "Terminate", "arguments": {"answer": answer}}
            return json.dumps({"thought": "", "actions": [end]})
        return answer

    def choose(self, item: Item, results: Sequence[Mapping[str, Any]], calls: Sequence[Call]) -> str:
        """The letter."""
        guess = ALPHABET[int(hash_stably("guess", item.id), 16) % len(item.options)]
        if not calls or len(results) < len(calls) or any("error" in result for result in results):
            return guess
        choose = choose_with_oracle if self.oracle else choose_with_classical
        place = choose(item, results[-len(calls) :])
        return guess if place is None else ALPHABET[place]


def find_rects(item: Item) -> list[list[int]]:
    """The rectangles that the question draws, as its words name them."""
    ops = [op for picture in RowEvidence.of(item).pictures for op in picture["ops"] if op["op"] == "region"]
    return [op["rect"] for op in ops]


def find_point(item: Item) -> list[float]:
    """The point that the question follows."""
    ops = [op for op in RowEvidence.of(item).pictures[0]["ops"] if op["op"] == "point"]
    return list(ops[0]["uv"])


def _name_pairs(item: Item) -> list[list[str]]:
    return [["image-0", f"image-{k}"] for k in range(1, len(item.images))]


# Kinds of which no tool measures anything: drawings alone, and objects that are called by their labels.
WITHOUT_TOOL = {"rotated_arrangement", *(name for name in tasks if isinstance(tasks[name], LabelledScene))}
HEIGHTS = ("size_comparison", "height_comparison")
LENGTHS = ("object_distance", "object_size", "object_gap")


def find_up(corners: FloatArray) -> FloatArray:
    """(3,) the direction of the edge of a box that is most upright, in the camera's frame."""
    edges = corners[[1, 3, 4]] - corners[0]
    edges /= np.linalg.norm(edges, axis=1, keepdims=True)
    return np.asarray(min((*edges, *-edges), key=lambda edge: float(edge[1])))  # y points down


def lay_out(results: Sequence[Mapping[str, Any]], like: FloatArray) -> FloatArray:
    """(things, 8, 2) measured boxes seen from above, their centres as far from each other as those of a drawing."""
    corners = np.array([one["corners_m"] for one in results])
    plan = corners @ plans.find_plan_axes(find_up(corners[0])).T
    wide, wanted = (np.linalg.norm(one.mean(axis=1) - one.mean(axis=(0, 1))) for one in (plan, like))
    return np.asarray(plan * wanted / wide)


def compare_heights(task: str, results: Sequence[Mapping[str, Any]]) -> FloatArray:
    """(1,) which object is taller, or ends higher."""
    corners = [np.array(one["corners_m"]) for one in results]
    up = find_up(corners[0])
    heights = [np.ptp(one @ up) if task == "size_comparison" else (one @ up).max() for one in corners]
    return np.array([float(np.argmax(heights))])


def measure_length(task: str, results: Sequence[Mapping[str, Any]]) -> FloatArray:
    """(1,) meters: between centres, along the longest side, or between boxes."""
    corners = np.array([one["corners_m"] for one in results])
    if task == "object_size":
        return np.array([np.linalg.norm(np.diff(corners[0][EDGES], axis=1), axis=-1).max()])
    if task == "object_gap":
        return np.array([measure_gap_m(*corners)])
    return np.array([np.linalg.norm(np.subtract(*(one["center_m"] for one in results)))])


def tell_motion(words: str, result: Mapping[str, Any]) -> bool:
    """Whether a measured motion turned, tilted and moved to every side that the words name."""
    R = np.array(result["rotation"])
    (x, y, _), (right, down, forward) = R[2], -R.T @ result["translation_m"]
    ways = {"turned right": x, "tilted down": y, "moved right": right, "moved down": down, "moved forward": forward}
    other = {"right": "left", "down": "up", "forward": "backward"}
    ways |= {f"{verb} {other[way]}": -far for (verb, way), far in ((key.split(), far) for key, far in ways.items())}
    return all(ways[part] > 0 for part in words.split(" and "))


def tell_angle(words: str, result: Mapping[str, Any]) -> bool:
    """Whether a measured rotation is by as many degrees as the words name, to within 3."""
    cosine = (np.trace(np.array(result["rotation"])) - 1) / 2
    return bool(abs(np.degrees(np.arccos(cosine)) - ANGLES_DEG[words.split()[0]]) <= 3.01)


def tell_stand(words: str, result: Mapping[str, Any]) -> bool:
    """Whether a measured motion went to the one of eight directions that the words name, to within 15 degrees."""
    right, _, ahead = -np.array(result["rotation"]).T @ result["translation_m"]
    where, *_, side = words.split()
    angle_deg = np.degrees(np.arctan2(right if side == "right" else -right, ahead))
    return bool(abs(angle_deg - {"ahead": 45, "straight": 90, "behind": 135}[where]) <= 15.01)


ANGLES_DEG = {"ten": 10, "twenty": 20, "thirty": 30, "forty": 40}
MOTION_WORDS = {
    "camera_motion_words": tell_motion,
    "camera_turn_angle": tell_angle,
    "camera_from_camera": tell_stand,
}


def name_motion(item: Item, result: Mapping[str, Any]) -> FloatArray:
    """(1,) the only label among the options whose words a measured motion has."""
    task, fact, tell = tasks[item.task], rebuild_fact(item), MOTION_WORDS[item.task]
    named = [one.value for one in fact.candidates if tell(task.print_option(one, fact), result)]
    assert len(named) <= 1
    return np.asarray(named[0] if named else np.array([np.nan]))


def find_match(results: Sequence[Mapping[str, Any]]) -> int:
    """The object of image 2 nearest to that of image 1, by both geometries and the motion between the cameras."""
    queries, others, motion = results
    centre_m = np.array(motion["rotation"]) @ queries["results"][0]["center_m"] + np.array(motion["translation_m"])
    return int(np.argmin([np.linalg.norm(centre_m - one["center_m"]) for one in others["results"]]))


def plan_with_oracle(item: Item) -> list[Call]:
    """The calls that measure what is asked."""
    boxes = {"image": "image-0", "bboxes": find_rects(item)}
    if item.task in WITHOUT_TOOL:
        return []
    if item.task == "metric_depth":
        return [("EstimateRegionDepth", boxes)]
    if item.task in ("relative_depth", "depth_order"):
        return [("EstimateRegionDepth", boxes | {"mode": "median"})]
    if item.task in ("object_location", "orthographic_view", *LENGTHS, *HEIGHTS):
        return [("EstimateObjectGeometryProperties", boxes)]
    if item.task == "box_match":
        rects = find_rects(item)
        objects = [{"image": "image-0", "bboxes": rects[:1]}, {"image": "image-1", "bboxes": rects[1:]}]
        return [
            *(("EstimateObjectGeometryProperties", one) for one in objects),
            ("EstimateRelativePose", {"image": ["image-0", "image-1"]}),
        ]
    if item.task == "camera_parameters":
        return [("EstimateCameraParameters", {"image": "image-0"})]
    if item.task == "point_tracking":
        return [("TrackPoint", {"image": ["image-0", "image-1"], "point": find_point(item)})]
    name = "EstimateHomographyMatrix" if item.task.startswith("homography") else "EstimateRelativePose"
    return [(name, {"image": pair}) for pair in _name_pairs(item)]


def sort_rects(calls: Iterable[Call]) -> list[Call]:
    """The same calls with rectangles from left to right, and the kind of mean that is meant."""
    told = [(name, dict(given)) for name, given in calls]
    for name, given in told:
        given |= {"bboxes": sorted(given["bboxes"])} if "bboxes" in given else {}
        given |= {"mode": given.get("mode", "mean")} if name == "EstimateRegionDepth" else {}
    return told


def choose_with_oracle(item: Item, results: Sequence[Mapping[str, Any]]) -> int | None:
    """The place of the option that what was measured fits best."""
    task, fact, row = tasks[item.task], rebuild_fact(item), RowEvidence.of(item)
    if item.task == "relative_depth":
        depths = results[0]["depths"]
        place = int(np.argmax(depths) if item.ask == "deepest" else np.argmin(depths))
        return [record.show["rect"] for record in row.options].index(find_rects(item)[place])
    if item.task == "box_match":
        return [record.show["rect"] for record in row.options].index(find_rects(item)[1 + find_match(results)])
    found = [_read_measured(item, result) for result in results]
    if len(found) > 1:  # options are images; what is asked stands in the question
        return int(np.argmin([task.metric(one, row.truth.value, fact) for one in found]))
    return int(np.argmin([task.metric(found[0], option.value, fact) for option in row.options]))


def _read_measured(item: Item, result: Mapping[str, Any]) -> FloatArray:
    """In the task's own space."""
    if item.task == "metric_depth":
        return np.array(result["depths"])
    if item.task == "object_location":
        return np.array(result["results"][0]["corners_m"])
    if item.task in LENGTHS:
        return measure_length(item.task, result["results"])
    if item.task == "depth_order":
        return np.array([float(np.argmax(rate_orders(np.array(result["depths"]))))])
    if item.task in HEIGHTS:
        return compare_heights(item.task, result["results"])
    if item.task in MOTION_WORDS:
        return name_motion(item, result)
    if item.task == "orthographic_view":
        return lay_out(result["results"], np.array(item.answer_value).reshape(item.answer_shape))
    if item.task == "camera_parameters":
        ((fx, _, cx), (_, fy, cy), _) = result["intrinsic"]
        known = {"fx": fx, "fy": fy, "cx": cx, "cy": cy, "hfov": result["hfov_deg"], "vfov": result["vfov_deg"]}
        return np.array([known[item.ask]])
    if item.task == "point_tracking":
        return np.array(result["tracks"][0]["point"])
    if item.task.startswith("homography"):
        return np.array(result["homography_matrix"])
    return np.column_stack([result["rotation"], result["translation_m"]])


def plan_with_classical(item: Item) -> list[Call]:
    """The calls that say most of the options; none for metric depths, distances and boxes in space, which one image
    without a scale does not tell."""
    row = RowEvidence.of(item)
    values = [np.asarray(option.value, dtype=np.float64) for option in row.options]
    asked = np.asarray(row.truth.value, dtype=np.float64)  # where options are images, what the question states
    pairs = _name_pairs(item)
    if item.task == "point_tracking":
        candidates = [value.ravel().tolist() for value in values]
        return [("TrackPoint", {"image": pairs[0], "point": find_point(item), "candidates": candidates})]
    if item.task == "camera_parameters":
        return [("EstimateCameraFromVanishingPoints", {"image": "image-0"} | _read_stated(item))]
    if item.task == "homography_to_matrix":
        return [("CheckHomography", {"image": pairs[0], "matrices": [value.tolist() for value in values]})]
    if item.task == "homography_to_image":
        return [("CheckHomography", {"image": pair, "matrices": [asked.tolist()]}) for pair in pairs]
    if item.task == "relative_pose":
        motions = [_write_motion(value) for value in values]
        return [("CheckMotion", {"image": pairs[0], "motions": motions, "cameras": _read_cameras(item)})]
    if item.task == "view_after_motion":
        given = {"motions": [_write_motion(asked)], "cameras": _read_cameras(item)[:1]}
        return [("CheckMotion", {"image": pair} | given) for pair in pairs]
    return []


def _write_motion(value: FloatArray) -> dict[str, Any]:
    pose = value.reshape(-1, 4)[:3]
    return {"rotation": pose[:, :3].round(4).tolist(), "translation": pose[:, 3].round(4).tolist()}


def _read_cameras(item: Item) -> list[dict[str, float]]:
    """As the question states them: whole pixels."""
    revealed = reveal_item(item)
    assert revealed is not None
    cameras = {one.image: one.camera for one in revealed.cameras}
    shown = [cameras[k] for k in sorted(cameras)][:2]
    return [{"fx": round(c.fx), "fy": round(c.fy), "cx": round(c.cx), "cy": round(c.cy)} for c in shown]


def _read_stated(item: Item) -> dict[str, float]:
    """What the words of a question about a camera give beside what they ask."""
    found = {}
    for name, key in (("fx", "focal_px"), ("cx", "cx"), ("cy", "cy")):
        stated = re.search(rf"\b{name} = (\d+(?:\.\d+)?)", item.context)
        if stated and item.ask != name:
            found[key] = float(stated[1])
    return found | ({"centre_is_middle": False} if item.ask in ("cx", "cy") else {})


def choose_with_classical(item: Item, results: Sequence[Mapping[str, Any]]) -> int | None:
    """The place of the option that fits best, also where its lead is too small for the tool to say so."""
    first = results[0]
    if item.task == "point_tracking":
        return _find_largest(first.get("candidate_scores"))
    if item.task == "homography_to_matrix":
        best = first.get("best")
        return _find_largest(first.get("correlations")) if best is None else int(best)
    if item.task == "homography_to_image":
        return _find_largest([(result.get("correlations") or [None])[0] for result in results])
    if item.task == "relative_pose":
        return _find_largest(first.get("shares"))
    if item.task == "view_after_motion":
        return _find_largest([(one.get("shares") or [None])[0] for one in results])
    told = {"hfov": first.get("hfov_deg"), "vfov": first.get("vfov_deg")}
    focal, principal = first.get("focal_px"), first.get("principal_point")
    told |= dict(zip(("fx", "fy"), np.broadcast_to(focal, 2), strict=True)) if focal else {}
    told |= {"cx": principal[0], "cy": principal[1]} if principal else {}
    value = told.get(item.ask)
    if value is None:
        return None
    row = RowEvidence.of(item)
    return int(np.argmin([abs(float(np.ravel(option.value)[0]) - float(value)) for option in row.options]))


def _find_largest(values: Sequence[Any] | None) -> int | None:
    known = [-np.inf if value is None else float(value) for value in values or ()]
    return int(np.argmax(known)) if known and np.isfinite(known).any() else None


def choose_items(source: Source, per_task: int) -> list[Item]:
    """Multi-choice questions, so many of each task, from all over the set, no two in the same words."""
    by_task: dict[str, list[int]] = defaultdict(list)
    for row in source.rows():
        if row.question_type == "multi-choice":
            by_task[row.task].append(row.row)
    found: dict[str, Item] = {}
    for task in sorted(by_task):
        rows = by_task[task]
        for k in range(min(per_task, len(rows))):
            item = source.item(rows[k * len(rows) // min(per_task, len(rows))])
            found.setdefault(ask_of(item), item)
    return list(found.values())


def answer(
    source: Source, items: Sequence[Item], kind: str, tools: tuple[str, ...], mode: str
) -> dict[str, Counter[str]]:
    """Task -> how many answers were right, and how many there are.

    kind: of agent; "" for the model alone.
    """
    planner = Planner(items, oracle="oracle" in tools)
    given = AskOptions()
    told = AgentOptions.model_validate({"tools": tools, "mode": mode})
    spec = f"agent:{kind}+scripted:planner"
    agent = AgentBackend(spec, kind, planner, told) if kind else planner  # type: ignore[arg-type]

    async def run() -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = defaultdict(Counter)
        gate = asyncio.Semaphore(2)

        async def ask(item: Item) -> None:
            asked = make_asked(item, given.settings(""), given, 0)
            async with gate:
                background = tell_background(asked, "oracle" in tools)
                request = asked.request(source.image)
                reply = await agent.ask_about(request.messages, given.settings(""), background)
            found[item.task]["asked"] += 1
            found[item.task]["right"] += score(make_case(item), reply.text).score >= 1

        async with agent:
            await asyncio.gather(*(ask(item) for item in items))
        return found

    return asyncio.run(run())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--per-task", type=int, default=30)
    parser.add_argument("--kind", default="react")
    told = parser.parse_args()
    source = benchmarks["vgbench"].open(told.dataset)
    items = choose_items(source, told.per_task)
    columns = {
        "alone": answer(source, items, "", (), "sane"),
        "none": answer(source, items, told.kind, ("none",), "sane"),
        "classical": answer(source, items, told.kind, ("classical",), "sane"),
        "oracle": answer(source, items, told.kind, ("oracle",), "sane"),
    }
    print("| task | n | " + " | ".join(columns) + " |")
    print("| --- |" + " --- |" * (1 + len(columns)))
    for task in sorted(columns["alone"]):
        shares = [f"{100 * found[task]['right'] / found[task]['asked']:.0f}" for found in columns.values()]
        print(f"| {task} | {columns['alone'][task]['asked']} | " + " | ".join(shares) + " |")


if __name__ == "__main__":
    main()
