from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.core.gates import Gates, RegionGates
from vgbench_gen.evaluation.benchmarks.vgbench.tables import read_published
from vgbench_gen.pipeline.build import check_names, measure
from vgbench_gen.pipeline.plan import read_targets
from vgbench_gen.pipeline.recipe import Difficulty, Limits, Recipe, change_recipe, load_recipe
from vgbench_gen.tasks.base import tasks


def test_the_shipped_default() -> None:
    recipe = load_recipe("default")
    assert recipe.strategy == "default"
    assert recipe.margins == "enforced"
    assert recipe.tasks == ()


def test_own_file_overrides_single_gates(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('seed = 7\ntasks = ["metric_depth"]\n[gates.region]\nvalid_min = 0.8\n')
    recipe = load_recipe(path)
    assert recipe == load_recipe(str(path))
    assert (recipe.seed, recipe.tasks) == (7, ("metric_depth",))
    assert recipe.gates.region == RegionGates(valid_min=0.8)
    assert recipe.gates.depth == Gates().depth


def test_own_files_start_from_the_recipe_that_they_extend(tmp_path: Path) -> None:
    plain, base, top = tmp_path / "plain.toml", tmp_path / "base.toml", tmp_path / "deep" / "top.toml"
    top.parent.mkdir()
    plain.write_text('tasks = ["metric_depth"]\n')
    default = load_recipe("default")
    assert load_recipe(plain) == default.model_copy(update={"tasks": ("metric_depth",)})
    assert load_recipe({"extends": "default", "tasks": ["metric_depth"]}) == load_recipe(plain)
    assert load_recipe(plain).digest == default.digest
    # Tables are merged; totals and the number of facts stand for the whole.
    base.write_text('extends = "vgbench"\npairs = 0.5\n[gates.frame]\nmax_keyframes = 9\n')
    top.write_text('extends = "../base.toml"\nfacts_per_scene = 3\n[items]\nmetric_depth = { multi-choice = 5 }\n')
    found, published = load_recipe(top), load_recipe("vgbench")
    assert (found.pairs, found.facts_per_scene, found.facts_of, found.sources) == (0.5, 3, {}, {})
    assert found.items == {"metric_depth": {"multi-choice": 5}}
    assert (found.gates.frame.max_keyframes, found.gates.frame.keyframe_turn_deg) == (9, 5.0)
    assert (found.limits, found.difficulty) == (published.limits, published.difficulty)
    base.write_text('extends = "vgbench"\ntasks = ["metric_depth"]\n')
    assert load_recipe(base).items == {"metric_depth": published.items["metric_depth"]}
    base.write_text('extends = "deep/top.toml"\n')
    with pytest.raises(ConfigError, match=r"extends: found a circle \(.*top\.toml -> .*base\.toml -> .*top\.toml"):
        load_recipe(top)


def test_the_same_facts_are_measured_for_a_task_alone(raw_room: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('tasks = ["relative_depth"]\n')
    for name, recipe in (("mine", load_recipe(mine)), ("default", load_recipe("default"))):
        two = recipe.model_copy(update={"tasks": (*recipe.tasks, "relative_depth", "homography_to_matrix")[:2]})
        measure(two if name == "default" else recipe, raw_room / "wildrgbd", tmp_path / name)
    files = sorted((tmp_path / "mine" / "facts").rglob("*.parquet"))
    assert files
    for path in files:
        other = tmp_path / "default" / path.relative_to(tmp_path / "mine")
        alone, among = (pq.read_table(one).to_pylist() for one in (path, other))
        assert len(alone) > 3
        assert alone == [fact for fact in among if fact["task"] == "relative_depth"]


def test_seed_totals_and_tasks_can_be_changed() -> None:
    default = load_recipe("default")
    changed = change_recipe(default, 7, 20, ["metric_depth"])
    assert (changed.seed, changed.items_per_task, changed.tasks) == (7, 20, ("metric_depth",))
    assert changed.gates == default.gates
    table = {"metric_depth": {"multi-choice": 3}}
    assert change_recipe(load_recipe("vgbench"), items=table).total == 3
    assert change_recipe(default) is default


def test_a_table_of_totals_is_of_any_size() -> None:
    published = load_recipe("vgbench")
    tenth = change_recipe(published, 7, 600)
    assert (tenth.total, tenth.seed, tenth.gates) == (600, 7, published.gates)
    assert tenth.items["metric_depth"] == {"judgment": 6, "multi-choice": 6, "open-ended": 44}  # of 5.6, 5.8, 43.6
    assert tenth.sources == {"scannet": 122, "scannetpp": 87, "ca1m": 329, "wildrgbd": 62}  # the most of .4, .3, .9, .4
    for task, forms in published.items.items():
        for form, n in forms.items():
            assert abs(tenth.items[task][form] - n / 10) < (2 if form == "judgment" else 1)
    assert change_recipe(published, items=6000).items == published.items
    claims = Recipe(items={"metric_depth": {"judgment": 8}, "relative_depth": {"multi-choice": 0}})
    assert change_recipe(claims, items=5).items == {
        "metric_depth": {"judgment": 4},
        "relative_depth": {"multi-choice": 0},
    }
    assert change_recipe(published, items=20, tasks=["metric_depth"]).items_per_task == 20


def test_an_unknown_name_lists_what_is_shipped() -> None:
    with pytest.raises(ConfigError, match=r"no recipe is called 'defualt'\. Did you mean default\? Shipped: .*default"):
        load_recipe("defualt")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sed = 7\n", "sed"),
        ("seed = -1\n", "seed"),
        ('seed = "7"\n', "seed"),
        ("items_per_cell = 0\n", "items_per_cell"),
        ('margins = "loose"\n', "margins"),
        ("[gates.region]\nvalid = 0.8\n", "valid"),
        ("seed = \n", "mine.toml"),
        ("[items]\nmetric_depth = { judgment = 3 }\n", "judgments come as twins"),
        ("[items]\nmetric_depth = { judgement = 4 }\n", "judgement"),
        ("[items]\nmetric_depth = { multi-choice = -1 }\n", "multi-choice"),
        ("items_per_task = 9\n[items]\nmetric_depth = { multi-choice = 1 }\n", "not both"),
        ("[items]\nmetric_depth = { multi-choice = 5 }\n[sources]\nca1m = 4\n", "sum to the 5 items, not 4"),
        ("[items]\nmetric_depth = { multi-choice = 5 }\n[splits]\nval = 6\n", "sum to the 5 items, not 6"),
        ("[sources]\nca1m = 4\n", "only beside items"),
        ("extends = 7\n", "extends: found 7"),
        ('extends = "defualt"\n', "no recipe is called 'defualt'"),
        ('extends = "default"\nfacts_per_scene = "x"\n', "facts_per_scene"),
        ('tasks = ["object_distance"]\n[items]\nmetric_depth = { multi-choice = 5 }\n', "one of tasks"),
        ("[limits]\nscene_share = 0.0\n", "scene_share"),
        ("[difficulty]\neasy = 0.5\nmedium = 0.5\nhard = 0.5\n", "sum to 1, not 1.5"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=named) as caught:
        load_recipe(path)
    assert "mine.toml" in str(caught.value) or "defualt" in text


def test_digest_follows_what_facts_depend_on() -> None:
    base = Recipe()
    assert Recipe().digest == base.digest
    for same in (
        Recipe(distractor_seed=5),
        Recipe(strategy="sampled"),
        Recipe(items_per_cell=3),
        Recipe(margins="recorded"),
        Recipe(tasks=("metric_depth",)),
        Recipe(items={"metric_depth": {"multi-choice": 3}}, sources={"ca1m": 3}),
        Recipe(limits=Limits(forms_per_fact=1), difficulty=Difficulty(easy=1, medium=0, hard=0)),
    ):
        assert same.digest == base.digest
    changed = [
        Recipe(seed=1),
        Recipe(facts_per_scene=3),
        Recipe(facts_of={"metric_depth": 3}),
        Recipe(only_from={"metric_depth": ("ca1m",)}),
        Recipe(gates=Gates(region=RegionGates(valid_min=0.8))),
    ]
    assert len({recipe.digest for recipe in [base, *changed]}) == 6


def test_vgbench_is_the_published_one() -> None:
    """Every total of the paper's tables (SpatialScore, tables 1, 4 and 5)."""
    recipe = load_recipe("vgbench")
    assert recipe.total == 6000
    forms: Counter[str] = Counter()
    modality: Counter[str] = Counter()
    columns: Counter[str] = Counter()
    column_of = {
        "homography_to_matrix": "Homo.", "homography_to_image": "Homo.", "relative_pose": "Pose-Est.",
        "camera_parameters": "Camera", "view_after_motion": "3D-Recon.", "object_distance": "Distance",
        "metric_depth": "Depth", "relative_depth": "Depth", "point_tracking": "Tracking", "object_location": "Obj-Pos.",
    }  # fmt: skip
    for task, counts in recipe.items.items():
        forms.update(counts)
        modality[tasks[task].input_modality] += sum(counts.values())
        columns[column_of[task]] += sum(counts.values())
    assert forms == {"judgment": 1132, "multi-choice": 4032, "open-ended": 836}
    assert modality == {"single-image": 2800, "multi-images": 3200}
    assert columns == {
        "Homo.": 1000, "Pose-Est.": 550, "Camera": 500, "3D-Recon.": 550, "Distance": 600, "Depth": 1100,
        "Tracking": 1100, "Obj-Pos.": 600,
    }  # fmt: skip
    assert sum(recipe.items["metric_depth"].values()) == sum(recipe.items["relative_depth"].values()) == 550
    assert recipe.items["object_location"] == {"judgment": 300, "multi-choice": 300}
    assert recipe.sources == {"scannet": 1214, "scannetpp": 873, "ca1m": 3289, "wildrgbd": 624}
    assert set(recipe.items) == {task.name for task in tasks.values() if task.by_default}
    assert set(recipe.only_from) == {name for name in recipe.items if tasks[name].needs_objects}
    assert recipe.limits.forms_per_fact == 1


@pytest.mark.parametrize(
    ("name", "published", "column"),
    [("vsi-like", "VSI-Bench", "items"), ("mmsi-like", "MMSI-Bench", "items"),
     ("spatialcorpus", "SpatialScore v2", "corpus")],
)  # fmt: skip
def test_recipes_like_a_benchmark_have_its_numbers(name: str, published: str, column: str) -> None:
    """A kind that is added to a category of `published.toml` has to be added to the recipe as well."""
    wanted: Counter[str] = Counter()
    for category in read_published()[published].values():
        for k, kind in enumerate(category.kinds):
            n, kinds = getattr(category, column), len(category.kinds)
            wanted[kind] += n // kinds + (k < n % kinds)
    recipe = load_recipe(name)
    assert {task: sum(forms.values()) for task, forms in recipe.items.items()} == +wanted
    judged = sum(forms.get("judgment", 0) for forms in recipe.items.values())
    assert judged == (9776 if name == "spatialcorpus" else 0)  # the corpus asks for presence alone


def test_wide_asks_all_kinds_but_what_text_tells() -> None:
    recipe = load_recipe("wide")
    sizes = {("object_size", "multi-choice"), ("object_size", "open-ended")}
    told = {("route_turns", "multi-choice"), ("camera_parameters", "open-ended"), ("object_gap", "open-ended"), *sizes}
    told |= {("room_area", "multi-choice"), ("size_comparison", "judgment")}
    asked = {(task, form) for task, forms in recipe.items.items() for form in forms}
    assert asked == {(task.name, form) for task in tasks.values() for form in task.formats} - told
    assert recipe.total == 10_000


def test_a_scene_holds_at_most_its_share_of_a_task() -> None:
    recipe = load_recipe("vgbench")
    scenes = [("ca1m", f"{k}") for k in range(36)] + [("scannet", f"{k}") for k in range(100)] + [("wildrgbd", "x")]
    caps = read_targets(recipe, {name: tasks[name].formats for name in tasks.names()}, scenes, {}).caps
    assert caps["object_distance", "ca1m"] == 25  # 600 * 1.5 / 36
    assert caps["point_tracking", "scannet"] == 33  # 1,100 * 3 %
    assert ("metric_depth", "wildrgbd") not in caps  # the only one may hold all
    assert Limits(scene_share=0.03).scene_items(10, 500) == 2  # a pair of twins always fits
    assert Limits().scene_items(1000, 500) == 1000


def test_shipped_recipes_share_facts() -> None:
    """Those for a few scenes compose anew from what the other measured. `vgbench` has many scenes and takes fewer facts
    of each; `train` wants more."""
    digests = {name: load_recipe(name).digest for name in ("default", "vgbench", "vgbench-mini", "train")}
    assert digests["default"] == digests["vgbench-mini"]
    assert len(set(digests.values())) == 3
    mini = load_recipe("vgbench-mini")
    assert mini.total == 240
    assert set(mini.items) == {task.name for task in tasks.values() if task.by_default}


@pytest.mark.parametrize(
    "name", ["default", "vgbench", "vgbench-mini", "train", "wide", "vsi-like", "mmsi-like", "spatialcorpus"]
)
def test_shipped_recipes_name_what_exists_and_survive_the_manifest(name: str) -> None:
    recipe = load_recipe(name)
    check_names(recipe)
    assert parse_config(recipe.model_dump(mode="json"), Recipe, "manifest.json") == recipe


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"items": {"relative_depth": {"judgment": 2}}},
            "items.relative_depth.judgment: found 2; expected one of multi",
        ),
        ({"items": {"metric_dept": {"judgment": 2}}}, "Did you mean metric_depth"),
        ({"only_from": {"metric_dept": ("ca1m",)}}, "Did you mean metric_depth"),
        ({"only_from": {"metric_depth": ("ca1n",)}}, "Did you mean ca1m"),
        ({"items": {"metric_depth": {"judgment": 2}}, "sources": {"scanet": 2}}, "Did you mean scannet"),
    ],
)
def test_names_that_do_not_exist_are_said_before_anything_is_measured(changes: dict[str, object], named: str) -> None:
    with pytest.raises(VGBenchError, match=named):
        check_names(Recipe.model_validate(changes))
