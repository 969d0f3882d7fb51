from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from tests.publish.published import publish, write_build
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.publish import package as packaging
from vgbench_gen.publish.croissant import FILE as CROISSANT
from vgbench_gen.publish.croissant import CroissantError, check
from vgbench_gen.publish.package import Package, drop_local_paths, format_toml
from vgbench_gen.publish.pull import pull
from vgbench_gen.publish.smoke_test import NotOpenedError, open_with_datasets
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import read_manifest
from vgbench_gen.store.shards import iterate_rows


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_build(tmp_path_factory.mktemp("publish") / "small")


@pytest.fixture(scope="module")
def made(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Package:
    hard = tmp_path_factory.mktemp("hard") / "hard.txt"
    hard.write_text("scene005\nscene002\n")
    train = write_build(tmp_path_factory.mktemp("train") / "small", scene="other")
    return publish(build, tmp_path_factory.mktemp("out") / "set", hard=hard, train=train)


def test_rows_stand_under_their_configurations(made: Package) -> None:
    rows = {
        place: list(iterate_rows(sorted((made.folder / "data" / place).glob("*.parquet"))))
        for place in ("vgbench/metric_depth", "vgbench/relative_depth", "hard", "train")
    }
    ids = {place: [row["id"] for row in found] for place, found in rows.items()}
    assert ids["vgbench/metric_depth"] == [f"scene{k:03d}" for k in range(4)]
    assert ids["vgbench/relative_depth"] == [f"scene{k:03d}" for k in range(4, 8)]
    assert ids["hard"] == ["scene002", "scene005"]
    assert ids["train"] == [f"other{k:03d}" for k in range(8)]
    canary = read_manifest(made.folder)["published"]["canary"]
    for place, found in rows.items():
        assert {row["canary"] for row in found} == {"" if place == "train" else canary}
    assert {path.name for path in made.folder.rglob("*.parquet")} == {
        "test-00000-of-00001.parquet", "train-00000-of-00001.parquet",
    }  # fmt: skip


def test_pixels_that_may_not_travel_are_in_no_file(build: Path, made: Package) -> None:
    built = load(build)
    published = b"".join(path.read_bytes() for path in made.folder.rglob("*") if path.is_file())
    for item in built:
        for k in range(len(item.images)):
            body = built.image_bytes(item, k)[-400:-2]
            assert (body in published) == (item.source == "wildrgbd")
    for row in iterate_rows(sorted((made.folder / "data" / "vgbench").rglob("*.parquet"))):
        original = built.by_id(row["id"])
        assert [file["name"] for file in row["image_files"]] == list(original.images)
        travels = row["source"] == "wildrgbd"
        assert [digest_bytes(image["bytes"]) + ".jpg" for image in row["images"]] == list(original.images) * travels
    shown = {path.stem for path in (made.folder / "assets" / "examples").iterdir()}
    assert shown == {"metric_depth", "relative_depth"}
    card = (made.folder / "README.md").read_text()
    assert ("(WildRGB-D) —" in card, "(ScanNet) —" in card) == (True, False)
    assert [(d.policy.name, d.pixels) for d in made.decisions] == [("scannet", False), ("wildrgbd", True)]


@pytest.fixture
def without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare a test the metadata, which take a second."""
    monkeypatch.setattr(packaging, "make_croissant", lambda *_: (b"{}", []))


@pytest.mark.usefixtures("without_metadata")
def test_a_flag_that_names_the_licence_lets_pixels_travel(build: Path, tmp_path: Path) -> None:
    made = publish(build, tmp_path / "set", with_pixels=("scannet=ScanNet-TOU",))
    assert all(row["images"] for row in iterate_rows(sorted((made.folder / "data").rglob("*.parquet"))))
    assert "on the publisher's word that ScanNet-TOU allows it" in (made.folder / "README.md").read_text()
    with pytest.raises(ConfigError, match="ScanNet-TOU"):
        publish(build, tmp_path / "other", with_pixels=("scannet=MIT",))
    assert not (tmp_path / "other").exists()


def test_files_are_what_the_viewer_asks_for(made: Package) -> None:
    file = pq.ParquetFile(next((made.folder / "data" / "vgbench").rglob("*.parquet")))
    names = [file.schema.column(k).path for k in range(len(file.schema))]
    column = file.metadata.row_group(0).column(names.index("question"))
    assert column.has_offset_index
    assert column.has_column_index
    assert file.schema_arrow.names[:5] == ["images", "question", "options", "answer", "task"]  # it opens on these
    features = json.loads(file.schema_arrow.metadata[b"huggingface"])["info"]["features"]
    assert list(features) == file.schema_arrow.names
    assert features["canary"] == {"dtype": "string", "_type": "Value"}


def test_the_card_tells_what_is_in_it(made: Package) -> None:
    text = (made.folder / "README.md").read_text()
    front = yaml.safe_load(text.split("---\n")[1])
    files = {c["config_name"]: c["data_files"][0] for c in front["configs"]}
    assert list(files) == ["vgbench", "hard", "train", "metric_depth", "relative_depth"]
    assert front["configs"][0]["default"] is True
    assert files["train"]["split"] == "train"
    for each in files.values():
        for pattern in [each["path"]] if isinstance(each["path"], str) else each["path"]:
            assert list(made.folder.glob(pattern))
    for told in (
        "8 visual-geometry questions with 12 images in 2 tasks", "**4 of the questions (50 %) come without",
        "| **all** |  |  | 8 |  | 8 |", "**1 of 2 statistics passed, 1 failed**",
        "| metric_depth/multi-choice | 41 failed |  |", "| relative_depth/judgment |  | 41 |",
        "- metric\\_depth/multi-choice: accuracy of the best fixed rule (medoid) 41.2 %, chance 25, at most 28\n",
        "Copyright (c) 2024 rowdataset", "12 of 20 drafts were rejected", "@inproceedings{xia2024rgbd",
        "vgbench pull lab/small --out build/small", "vgbench pull build/small --scenes", "(assets/examples/",
        read_manifest(made.folder)["published"]["canary"],
    ):  # fmt: skip
        assert told in text, told
    assert "{{" not in text


def test_nothing_names_a_folder_of_this_machine(build: Path, made: Package) -> None:
    for path in made.folder.rglob("*"):
        if path.is_file():
            assert str(build.parent).encode() not in path.read_bytes(), path
    assert read_manifest(made.folder)["scenes"] == [{"scene_id": "broken", "error": "x.sens: found nothing"}]
    assert drop_local_paths("7c9be0a21f/iphone, https://a.b/c/d, ~/a/b.toml, /a/b/c") == (
        "7c9be0a21f/iphone, https://a.b/c/d, b.toml, c"
    )


def test_a_missing_package_is_named_before_rows_are_written(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mlcroissant", None)
    assert main(["publish", str(build), "--dry-run", "--out", str(tmp_path / "set")]) == 2
    told = capsys.readouterr().err
    assert "no package mlcroissant" in told
    assert "make extras" in told
    assert "rows" not in told
    assert not list(tmp_path.iterdir())


def test_croissant_is_what_the_validator_takes(made: Package) -> None:
    assert made.warnings == ()
    found = json.loads((made.folder / CROISSANT).read_bytes())
    assert {each["name"] for each in found["recordSet"]} == {
        "vgbench",
        "hard",
        "train",
        "metric_depth",
        "relative_depth",
    }
    assert {"rai:dataBiases", "rai:dataLimitations", "rai:personalSensitiveInformation"} <= set(found)
    assert [field["name"] for field in found["recordSet"][0]["field"]][-2:] == ["image_files", "canary"]
    import mlcroissant

    records = list(mlcroissant.Dataset(jsonld=found, mapping={"repo": str(made.folder)}).records("relative_depth"))
    assert [record["relative_depth/id"].decode() for record in records] == [f"scene{k:03d}" for k in range(4, 8)]
    assert [[image.size for image in record["relative_depth/images"]] for record in records[2:]] == [
        [(96, 64)],
        [(96, 64)] * 2,
    ]
    found["recordSet"][0]["field"][0]["source"]["fileSet"]["@id"] = "no such files"
    with pytest.raises(CroissantError, match="no such files"):
        check(json.dumps(found).encode())


@pytest.mark.usefixtures("without_metadata")
def test_the_same_inputs_are_not_written_again(build: Path, tmp_path: Path) -> None:
    first = publish(build, tmp_path / "set")
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*") if path.is_file()}
    again = publish(build, tmp_path / "set")
    assert (first.fresh, again.fresh) == (True, False)
    assert again.files == first.files
    assert before == {path: path.stat().st_mtime_ns for path in first.folder.rglob("*") if path.is_file()}
    other = publish(build, tmp_path / "other")
    assert other.files == first.files
    next((first.folder / "data").rglob("*.parquet")).unlink()
    assert publish(build, tmp_path / "set").fresh
    assert publish(build, tmp_path / "set", version="1.0.1").fresh
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(DatasetError, match="files that are no published set"):
        publish(build, tmp_path / "mine")


def test_what_does_not_belong_together_is_refused(build: Path, tmp_path: Path) -> None:
    strange = tmp_path / "ids.json"
    strange.write_text('["scene001", "nobody"]')
    with pytest.raises(ConfigError, match="1 ids that are not in the dataset, such as nobody"):
        publish(build, tmp_path / "set", hard=strange)
    with pytest.raises(ConfigError, match="2 scenes that the benchmark asks about"):
        publish(build, tmp_path / "set", train=write_build(tmp_path / "train"))
    manifest = read_manifest(write_build(tmp_path / "changed"))
    (tmp_path / "changed" / "manifest.json").write_text(json.dumps({**manifest, "fingerprint": "0" * 32}))
    with pytest.raises(DatasetError, match="changed after the build"):
        publish(tmp_path / "changed", tmp_path / "set")
    assert main(["publish", str(build), "--repo", "no name", "--dry-run"]) == 2
    assert main(["publish", str(build)]) == 2


@pytest.mark.parametrize(
    "name", ["default", "vgbench", "vgbench-mini", "train", "wide", "vsi-like", "mmsi-like", "spatialcorpus"]
)
def test_a_published_recipe_is_read_back(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name)
    (tmp_path / "recipe.toml").write_text(format_toml(recipe.model_dump(mode="json")))
    assert load_recipe(tmp_path / "recipe.toml") == recipe


@pytest.mark.usefixtures("without_metadata")
def test_datasets_opens_it_and_damage_is_told(
    build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # `datasets` takes a path for a pattern, and nobody needs a name on the Hub to try.
    odd = tmp_path / "[v1]* no--name..?"
    shutil.copytree(build, odd)
    assert main(["publish", str(odd), "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["opened"]["configurations"] == {"vgbench": 8, "metric_depth": 4, "relative_depth": 4}
    assert told["opened"]["images_decoded"] == 2 * 3
    assert told["without_images"] == 4
    for status, rows, problem in ((1, 8, "does not open: torn"), (0, 7, "other questions.*vgbench 7 of 8")):
        said = f"loading\n{json.dumps({'configurations': {'vgbench': rows}})}\n"
        done = subprocess.CompletedProcess([], status, said, "Traceback\ntorn\n")
        monkeypatch.setattr(subprocess, "run", lambda *_, done=done, **__: done)
        with pytest.raises(NotOpenedError, match=problem):
            open_with_datasets(odd / "publish", {"vgbench": 8})


def test_a_set_as_it_is_downloaded_says_how_it_is_opened(made: Package, tmp_path: Path) -> None:
    home = tmp_path / "my [sets]"
    home.symlink_to(made.folder)
    for folder in (home, home / "data", home / "data" / "vgbench"):
        with pytest.raises(DatasetError, match=r"vgbench pull '[^']*/my \[sets\]' --out FOLDER`"):
            load(folder)
    with pytest.raises(DatasetError, match=r"no parquet files but in .*/items; expected a built dataset\. Name that"):
        load(write_build(tmp_path / "builds" / "one").parent)


def test_a_set_in_the_hubs_cache_is_pulled_from_any_of_its_folders(made: Package, tmp_path: Path) -> None:
    repository = tmp_path / "datasets--lab--small"
    for number, file in enumerate(path for path in sorted(made.folder.rglob("*")) if path.is_file()):
        blob, link = repository / f"blobs/{number}", repository / "snapshots/aaaa" / file.relative_to(made.folder)
        for path in (blob, link):
            path.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(file.read_bytes())
        link.symlink_to(blob)
    for number, folder in enumerate((repository, repository / "snapshots/aaaa")):
        assert pull(str(folder), tmp_path / f"back{number}").rows == 8
    data = next((repository / "snapshots/aaaa/data").rglob("*.parquet"))
    data.unlink()
    data.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DatasetError, match=r"found a Git LFS pointer, not the file; expected .*git lfs pull"):
        pull(str(repository), tmp_path / "damaged")


def test_a_folder_is_pulled_and_checked(build: Path, made: Package, tmp_path: Path) -> None:
    back = pull(str(made.folder), tmp_path / "back")
    assert (back.rows, back.bare, back.fresh) == (8, 4, True)
    assert back.fingerprint == read_manifest(build)["fingerprint"] == read_manifest(tmp_path / "back")["fingerprint"]
    assert load(tmp_path / "back").ids() == load(build).ids()
    (tmp_path / "back" / "replies").mkdir()
    assert not pull(str(made.folder), tmp_path / "back").fresh
    assert (tmp_path / "back" / "replies").is_dir()
    hard = pull(str(made.folder), tmp_path / "hard", part="hard")
    assert load(tmp_path / "hard").ids() == ["scene002", "scene005"]
    assert hard.fingerprint == read_manifest(tmp_path / "hard")["fingerprint"]
    assert pull(str(made.folder), tmp_path / "train", part="train").rows == 8
    with pytest.raises(DatasetError, match="Give another folder"):
        pull(str(made.folder), tmp_path / "back", part="hard")
    with pytest.raises(ConfigError, match="expected one of hard, train, vgbench"):
        pull(str(made.folder), tmp_path / "x", part="easy")
