"""To the Hub and back over HTTP, with faults; the Hub is `hub_server`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.publish.hub_server import TOKEN, Fault, Hub, hub_server
from tests.publish.published import REPO, STAYS, TRAVELS, publish, write_build
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.publish import hub as client
from vgbench_gen.publish import package as packaging
from vgbench_gen.publish.hub import HubError, Target, push
from vgbench_gen.publish.pull import pull
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import read_manifest

COMMIT = r"POST .*/commit/"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with two builds (`one`; `two` shows other images) and what is uploaded of them (`one-set`, `two-set`)."""
    root = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packaging, "make_croissant", lambda *_: (b"{}", []))
        publish(write_build(root / "one", [TRAVELS]), root / "one-set")
        publish(write_build(root / "two", [STAYS], scene="two"), root / "two-set")
    return root


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """An empty Hub that the client of this process talks to, and does not wait for."""
    from huggingface_hub import constants

    with hub_server() as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
        monkeypatch.setattr(client, "_FIRST_WAIT_S", 0.0)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.mark.timeout(900)
def test_a_set_goes_there_and_back_and_scores_the_same(small: Path, tmp_path: Path) -> None:
    def run(*lines: list[str]) -> list[Any]:
        """What the command lines, one after the other in a process of their own, print as JSON."""
        code = (
            "import json, sys; from vgbench_gen.cli.main import main; print([main(a) for a in json.loads(sys.argv[1])])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, json.dumps(lines)], env=environment,
            capture_output=True, text=True, timeout=250, check=False,
        )  # fmt: skip
        assert TOKEN not in done.stdout + done.stderr
        assert done.stdout.endswith(f"{[0] * len(lines)}\n"), done.stderr[-2000:]
        told: list[Any] = []
        decoder, rest = json.JSONDecoder(), done.stdout
        for _ in lines:
            value, end = decoder.raw_decode(rest)
            told, rest = [*told, value], rest[end:].lstrip()
        return told

    def scores(folder: Path) -> dict[str, list[Any]]:
        specs = ["baseline:random", "baseline:constant"]
        assert main(["eval", str(folder), *(part for spec in specs for part in ("--model", spec))]) == 0
        assert main(["compare", str(folder)]) == 0
        files = sorted((folder / "scores").glob("*.jsonl"))
        return {file.name: [json.loads(line) for line in file.read_text().splitlines()[2:]] for file in files}

    with hub_server() as server:
        faults = [Fault("PUT /lfs", 503), Fault("PUT /lfs", "cut"), Fault(COMMIT, 502)]
        faults += [Fault("GET /lfs", "half"), Fault("GET .*resolve", 500)]
        server.faults = faults
        environment = os.environ | {
            "HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": TOKEN,
        }  # fmt: skip
        publishing = ["publish", str(small / "one"), "--repo", REPO, "--out", str(small / "one-set"), "--no-check"]
        told, back = run([*publishing, "--json"], ["pull", REPO, "--out", str(tmp_path / "back"), "--json"])
        assert told["changed"] is True
        assert server.repos[REPO].private
        assert [fault.times for fault in server.faults] == [0] * 5
    assert back["fingerprint"] == read_manifest(small / "one")["fingerprint"]
    assert not (tmp_path / ".back.pull").exists()
    mine, theirs = load(small / "one"), load(tmp_path / "back")
    assert [(i, theirs.image_bytes(i, 0)) for i in theirs.ids()] == [(i, mine.image_bytes(i, 0)) for i in mine.ids()]
    found = scores(tmp_path / "back")
    assert sum(len(rows) for rows in found.values()) == 16
    assert found == scores(small / "one")


def test_one_commit_and_none_where_nothing_changed(small: Path, hub: Hub) -> None:
    first = push(small / "one-set", Target(REPO))
    repo = hub.repos[REPO]
    assert (first.changed, len(repo.history), repo.refs["main"]) == (True, 2, first.commit)
    again = push(small / "one-set", Target(REPO))
    assert (again.changed, again.commit, len(repo.history)) == (False, first.commit, 2)
    repo.add("main", repo.commits[first.commit] | {"NOTES.md": repo.commits[first.commit]["README.md"]})
    push(small / "two-set", Target(REPO))
    names = {
        path.relative_to(small / "two-set").as_posix() for path in (small / "two-set").rglob("*") if path.is_file()
    }
    # Files of the first set that the second has not are gone; what others put there stays.
    assert set(repo.at("main")[1]) == names | {"NOTES.md", ".gitattributes"}  # type: ignore[index]
    assert not any(name.startswith("assets/") for name in names)
    assert len(repo.history) == 4


def test_a_cut_upload_leaves_the_old_revision_and_is_taken_up(small: Path, hub: Hub) -> None:
    old = push(small / "two-set", Target(REPO))
    sent = hub.count("PUT /lfs")
    hub.faults = [Fault("NEVER", 0), Fault("PUT /lfs", 500, times=10_000)]
    hub.faults[0] = Fault("PUT /lfs", "lost", times=2)  # two objects arrive, whatever the client hears
    with pytest.raises(HubError, match=r"lab/small: found status 500 \(trouble\).*not sent again"):
        push(small / "one-set", Target(REPO))
    repo = hub.repos[REPO]
    assert (repo.refs["main"], len(repo.history)) == (old.commit, 2)
    arrived, before = len(hub.stored), hub.count("PUT /lfs")
    assert arrived > sent
    hub.faults = []
    done = push(small / "one-set", Target(REPO))
    assert repo.refs["main"] == done.commit
    assert hub.count("PUT /lfs") - before == len(hub.stored) - arrived  # only what was not there yet


def test_a_commit_whose_answer_was_lost_is_not_made_twice(small: Path, hub: Hub) -> None:
    hub.faults = [Fault(COMMIT, "lost")]
    done = push(small / "one-set", Target(REPO))
    assert len(hub.repos[REPO].history) == 2
    assert hub.repos[REPO].refs["main"] == done.commit


def test_somebody_elses_commit_is_not_overwritten(small: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    push(small / "two-set", Target(REPO))
    repo = hub.repos[REPO]
    theirs = repo.commits[repo.refs["main"]] | {"NOTES.md": repo.commits[repo.refs["main"]]["README.md"]}

    def then(text: str) -> None:
        if text == "committing":
            repo.add("main", theirs)

    with pytest.raises(HubError, match="somebody else made meanwhile"):
        push(small / "one-set", Target(REPO), then)
    assert repo.at("main") == (repo.history[-1], theirs)


def test_branches_and_pull_requests(small: Path, hub: Hub) -> None:
    push(small / "one-set", Target(REPO, revision="next"))
    repo = hub.repos[REPO]
    assert set(repo.at("main")[1]) == {".gitattributes"}  # type: ignore[index]
    assert "README.md" in repo.at("next")[1]  # type: ignore[index]
    asked = push(small / "two-set", Target(REPO, pull_request=True))
    assert asked.url.endswith("/discussions/1")
    assert repo.refs["refs/pr/1"] == asked.commit != repo.refs["main"]
    hub.faults = [Fault(COMMIT, "lost")]
    with pytest.raises(HubError, match="discussions"):
        push(small / "one-set", Target(REPO, pull_request=True))
    assert sum(ref.startswith("refs/pr/") for ref in repo.refs) == 2


def test_who_may_and_who_may_see(small: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HubError, match=r"found status 403 .*write access"):
        push(small / "one-set", Target("others/small"))
    push(small / "one-set", Target("lab/open", public=True))
    assert not hub.repos["lab/open"].private
    with pytest.raises(ConfigError, match="--public"):
        push(small / "two-set", Target("lab/open"))
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(HubError, match="found status 401") as refused:
        push(small / "one-set", Target(REPO))
    assert "hf_another" not in str(refused.value)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN_PATH", os.devnull)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(ConfigError, match="HF_TOKEN"):
        push(small / "one-set", Target(REPO))


def test_what_is_pulled_is_checked(small: Path, hub: Hub, tmp_path: Path) -> None:
    push(small / "one-set", Target(REPO))
    repo = hub.repos[REPO]
    sha, files = repo.at("main")  # type: ignore[misc]
    name = "data/vgbench/metric_depth/test-00000-of-00001.parquet"
    blob = files[name]
    damaged = bytearray(blob.data)
    damaged[len(damaged) // 2] ^= 1
    worse = type(blob)(bytes(damaged), True)
    hub.stored[worse.sha256] = worse.data
    repo.add("main", files | {name: worse})
    with pytest.raises(DatasetError, match="SHA-256"):
        pull(REPO, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    # The same place is taken up, from the revision that is whole.
    assert pull(REPO, tmp_path / "back", revision=sha).rows == 8
    manifest = json.loads(files["manifest.json"].data)
    manifest["published"]["schema_version"] = 99
    changed = type(blob)(json.dumps(manifest).encode(), False)
    repo.add("main", files | {"manifest.json": changed})
    with pytest.raises(DatasetError, match="schema version 99"):
        pull(REPO, tmp_path / "other")
    manifest["published"] |= {"schema_version": 2}
    manifest["published"]["sets"]["vgbench"]["files"] = ["data/../../../.bashrc"]
    repo.add("main", files | {"manifest.json": type(blob)(json.dumps(manifest).encode(), False)})
    with pytest.raises(DatasetError, match="a place below"):
        pull(REPO, tmp_path / "other")
    with pytest.raises(HubError, match="404"):
        pull("lab/none", tmp_path / "other")
    with pytest.raises(ConfigError, match="OWNER/NAME"):
        pull("no name", tmp_path / "other")


@pytest.mark.parametrize("name", ["audit/../../stolen", "audit/../../../.bashrc", "/tmp/stolen", "audit\\..\\stolen"])
def test_no_name_in_a_manifest_reaches_out_of_the_folder(small: Path, tmp_path: Path, name: str) -> None:
    """What lies in a folder is taken as what comes from the Hub."""
    source = tmp_path / "from" / "set"
    shutil.copytree(small / "one-set", source)
    stolen = source / name
    if ".." in name:
        stolen.parent.resolve().mkdir(parents=True, exist_ok=True)
        (source / "audit").mkdir(exist_ok=True)
        stolen.write_text("theirs")
    manifest = json.loads((source / "manifest.json").read_bytes())
    digest = hashlib.sha256(b"theirs").hexdigest()
    manifest["published"]["files"][name] = {"bytes": 6, "sha256": digest}
    (source / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "to").mkdir()
    with pytest.raises(DatasetError, match="a place below"):
        pull(str(source), tmp_path / "to" / "set")
    assert not any((tmp_path / "to").iterdir())
