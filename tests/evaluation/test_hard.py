"""A vote from replies to a written subset: what is kept, what people refused and what is told, on 160 questions."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.score_rows import failed, row
from tests.store.examples import make_item, textured
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation import hard
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.benchmarks.vgbench.questions import Built
from vgbench_gen.evaluation.board import make_entry
from vgbench_gen.evaluation.json_lines import encode_line
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import ReplyWriter, name_replies_file, read_header
from vgbench_gen.evaluation.saved import score_source
from vgbench_gen.quality.review.lines import ReviewLine, digest_item
from vgbench_gen.quality.voting.choice import choose_balanced
from vgbench_gen.quality.voting.rule import VOTES, Balance, Rule
from vgbench_gen.report.vote_lines import format_votes
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.provenance import dataset_fingerprint, read_manifest, write_manifest
from vgbench_gen.store.shards import write_items

Capture = pytest.CaptureFixture[str]
SIZES = (1, 7, 32, 72)
SPECS = [f"openai:model-{size}b" for size in SIZES]
RULE = Rule(models=4, wrong=3, large=1, balance=Balance(target=40))
TASKS = ("metric_depth", "relative_depth")
# Of item k, the models that are wrong: none, the two small ones, three with one or two large ones, all.
WRONG = ((), (0, 1), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3))


def rows(name: str) -> list[Item]:
    found = []
    for k in range(160):
        place: dict[str, Any] = {
            "id": f"q{k:03}",
            "index": k,
            "images": [name],
            "task": TASKS[k % 2],
            "group_id": f"g{k}",
            "evidence": {"z_m": k},
        }
        if k % 4 < 3:
            found.append(make_item(**place, answer="ABCD"[(k // 7) % 4], answer_value=(2.4,)))
        else:
            truth = ("Yes", "No")[k // 8 % 2]
            found.append(make_item(**place, question_type="judgment", options=(), answer=truth, twin_id=f"t{k // 8}"))
    return found


def reply(item: Item, wrong: bool) -> str:
    if not wrong:
        return item.answer
    return {"Yes": "No", "No": "Yes"}.get(item.answer, "ABCD"["ABCD".find(item.answer) - 1])


def answer(folder: Path, spec: str, said: Callable[[int, Item], ReplyLine]) -> Path:
    items = load(folder)
    path = name_replies_file(folder / "replies", spec)
    with ReplyWriter(
        path, Header(dataset=dataset_fingerprint(items), benchmark="VGBench", spec=spec, model=spec)
    ) as writer:
        for k, item in enumerate(items):
            writer.append(said(k, item))
    return path


def line(item: Item, response: str | None, spec: str = "", **more: Any) -> ReplyLine:
    key = ReplyKey(item.id, more.pop("rotation", 0), more.pop("epoch", 0), more.pop("stage", ""))
    return ReplyLine(key=key, benchmark="VGBench", model=spec, request_digest="", response=response, **more)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """160 questions with the replies of four models, and of a baseline that is not asked to vote."""
    folder = tmp_path_factory.mktemp("voted") / "set"
    media = MediaStore(folder / "media")
    items = rows(media.put(encode_jpeg(textured(64, 48)), "jpg"))
    write_items(folder / "items", items, media)
    write_manifest(folder, {"fingerprint": dataset_fingerprint(items), "counts": {"items": 160}, "seed": 7})
    for m, spec in enumerate(SPECS):
        answer(folder, spec, lambda k, item, m=m: line(item, reply(item, m in WRONG[k % 5])))  # type: ignore[misc]
    answer(folder, "baseline:truth", lambda k, item: line(item, item.answer))
    return folder


@pytest.fixture
def voted(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "set"))


def test_hard_is_what_enough_models_get_wrong(voted: Path) -> None:
    found = hard.count_votes(Built(voted), RULE)
    assert [voter.name for voter in found.panel] == sorted(SPECS)
    assert sorted(voter.billions or 0 for voter in found.panel) == list(SIZES)
    places = {one.id: k for k, one in enumerate(found.subjects)}
    expected = {item.id: k % 5 >= 2 for k, item in enumerate(load(voted))}
    assert {one.id: bool(found.tally.hard[places[one.id]]) for one in found.subjects} == expected
    choice = hard.choose_hard(found, seed=0)
    report = hard.make_report(found, choice, 0)
    folder = hard.write_votes(voted, found, choice, report)
    told = [json.loads(text) for text in (folder / "candidates.jsonl").read_text().splitlines()]
    assert {record["id"] for record in told} == {name for name, is_hard in expected.items() if is_hard}
    first = next(record for record in told if record["id"] == "q003")
    assert {name for name, vote in first["votes"].items() if vote == "wrong"} == {SPECS[m] for m in WRONG[3]}
    assert (first["wrong"], first["right"], first["large_wrong"], first["without_vote"]) == (3, 1, 2, 0)
    assert [record["id"] for record in told if record["chosen"]] == list(choice.ids)
    assert (folder / "undecided.jsonl").read_text() == ""
    assert report["agreement"]["n"] == 160
    pairs = {frozenset(pair["models"]): pair["kappa"] for pair in report["agreement"]["pairs"]}
    # They differ on every fifth question; with two and one of five right, 0.56 agree by chance.
    assert pairs[frozenset(SPECS[:2])] == pytest.approx((0.8 - 0.56) / 0.44)
    assert [record["hard"] for record in report["tasks"]] == [48, 48]


def test_a_new_model_leaves_the_scores_of_others_alone(voted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = hard.count_votes(Built(voted), RULE)
    assert set(first.fresh) == set(SPECS)
    before = {path.name: path.stat().st_mtime_ns for path in (voted / "scores").iterdir()}
    added = answer(voted, "openai:fifth-78b", lambda k, item: line(item, reply(item, True)))
    second = hard.count_votes(Built(voted), RULE, wrong=4, large=2)
    assert second.fresh == ("openai:fifth-78b",)
    after = {path.name: path.stat().st_mtime_ns for path in (voted / "scores").iterdir()}
    assert {name: after[name] for name in before} == before
    names = [voter.name for voter in second.panel]
    assert (second.votes[:, [names.index(spec) for spec in sorted(SPECS)]] == first.votes).all()
    # Replies that came since are counted; so are all where the scorer has changed.
    with ReplyWriter(added, read_header(added)) as writer:
        writer.append(line(load(voted)[0], load(voted)[0].answer))
    third = hard.count_votes(Built(voted), RULE, wrong=4, large=2)
    assert third.fresh == ("openai:fifth-78b",)
    assert VOTES[third.votes[0, names.index("openai:fifth-78b")]] == "right"
    monkeypatch.setattr("vgbench_gen.evaluation.saved.SCORER_VERSION", 10**6)
    assert len(hard.count_votes(Built(voted), RULE, wrong=4, large=2).fresh) == 5


def test_what_is_no_answer_is_kept_as_what_it_is(voted: Path) -> None:
    texts = (None, "", "I'm sorry, but I can't help with that.")

    def said(k: int, item: Item) -> ReplyLine:
        if k % 4 == 3:
            return line(item, reply(item, True))
        return line(item, texts[k % 4], error="" if k % 4 else "server_error: 500")

    name_replies_file(voted / "replies", SPECS[0]).unlink()  # a failure would not take the place of an answer
    path = answer(voted, SPECS[0], said)
    items = load(voted)
    with ReplyWriter(path, read_header(path)) as writer:
        # A later repeat counts where the first failed, and only there; other orders and blind replies never do.
        writer.append(line(items[0], items[0].answer, epoch=1))
        writer.append(line(items[2], items[2].answer, epoch=1))
        writer.append(line(items[4], items[4].answer, stage="blind"))
        writer.append(line(items[8], items[8].answer, rotation=1))
        writer.append(line(items[0], "A").model_copy(update={"key": ReplyKey("nowhere")}))
    found = hard.count_votes(Built(voted), RULE)
    column = [VOTES[code] for code in found.votes[:, [v.name for v in found.panel].index(SPECS[0])].tolist()]
    assert column[:9] == [
        "right",
        "unreadable",
        "refused",
        "wrong",
        "failed",
        "unreadable",
        "refused",
        "wrong",
        "failed",
    ]
    assert any("1 replies are not scored (unknown id)" in note for note in found.notes)
    # Where two others are wrong, the failed reply would have made three.
    assert found.tally.undecided.sum() == sum(k % 4 == 0 and k % 5 == 2 for k in range(160))


def test_graded_scores_vote_by_a_factor_of_two() -> None:
    assert hard.vote_of(row("a", 0.4, delta_2=1.0), "mra") == "right"
    assert hard.vote_of(row("a", 0.1, delta_2=0.0), "mra") == "wrong"
    assert hard.vote_of(row("a", 0.0, delta_2=1.0), "exact") == "wrong"
    assert hard.vote_of(row("a", 1.0), "delta") == "right"
    assert hard.vote_of(failed("a"), "mra") == "failed"


def review(folder: Path, item: Item, verdicts: str, flags: tuple[str, ...] = ()) -> None:
    """Two people's lines; each letter of verdicts is v(alid) or i(nvalid)."""
    (folder / "review").mkdir(exist_ok=True)
    for reviewer, verdict in zip(("ann", "bob"), verdicts, strict=True):
        with (folder / "review" / f"{reviewer}.jsonl").open("a") as file:
            for stage, more in (
                ("answer", {"answer": item.answer, "confidence": "sure"}),
                ("verdict", {"verdict": {"v": "valid", "i": "invalid"}[verdict], "flags": list(flags)}),
            ):
                record = {
                    "stage": stage, "reviewer": reviewer, "item": item.id, "digest": digest_item(item), "planted": "",
                    "batch": "b", "time": "2026-01-01T00:00:00.000+00:00", **more,
                }  # fmt: skip
                file.write(ReviewLine.model_validate_json(json.dumps(record)).model_dump_json(by_alias=True) + "\n")


def test_people_decide_what_may_be_chosen(voted: Path, tmp_path: Path) -> None:
    items = {item.id: item for item in load(voted)}
    found = hard.count_votes(Built(voted), RULE)
    wanted = [name for name in hard.choose_hard(found, seed=0).ids if items[name].question_type == "multi-choice"]
    bad, good = wanted[:3], wanted[3:15]
    for name in bad:
        review(voted, items[name], "ii", ("wrong_answer",))
    for name in good:
        review(voted, items[name], "vv")
    found = hard.count_votes(Built(voted), RULE)
    assert Counter(found.status.values()) == {"refused": 3, "accepted": 12}
    choice = hard.choose_hard(found, seed=0)
    assert not set(choice.ids) & set(bad)
    only = hard.choose_hard(found, seed=0, reviewed_only=True)
    assert only.ids
    assert set(only.ids) <= set(good)
    hard.write_hard(voted, tmp_path / "open", found, choice, 0)
    hard.write_hard(voted, tmp_path / "people", found, only, 0)
    assert read_manifest(tmp_path / "open")["hard"]["status"] == "candidate"
    record = read_manifest(tmp_path / "people")["hard"]
    assert record["status"] == "reviewed"
    assert {entry["review"] for entry in record["items"]} == {"accepted"}


def test_yes_no_questions_of_a_pair_are_chosen_together() -> None:
    common: dict[str, Any] = {"question_type": "judgment", "options": (), "images": [], "task": TASKS[0]}
    items = [make_item(id=f"{truth}{k}", answer=truth, pair_id=f"p{k}", group_id=f"p{k}", **common)
             for truth in ("Yes", "No") for k in range(20)]  # fmt: skip
    subjects = [hard.make_subject(item, make_entry(item)) for item in items]
    chosen = set(choose_balanced(subjects, subjects, Balance(target=10), seed=0).ids)
    pairs = Counter(item.pair_id for item in items if item.id in chosen)
    assert (len(chosen), set(pairs.values())) == (10, {2})


def test_the_command_writes_a_dataset(voted: Path, tmp_path: Path, capsys: Capture) -> None:
    rule = tmp_path / "rule.toml"
    rule.write_text("models = 4\nwrong = 3\nlarge = 1\n[balance]\ntarget = 40\n")
    out = tmp_path / "set-hard"
    assert main(["vote", str(voted), "--rule", str(rule), "--no-audit"]) == 0
    told = capsys.readouterr().out
    assert "160 questions: 96 hard, 0 undecided" in told
    assert "4 models counted, 4 scored now, 0 with saved scores." in told
    kept, items = load(out), {item.id: item for item in load(voted)}
    ids = (voted / "votes/chosen.txt").read_text().split()
    assert [item.id for item in kept] == ids == [name for name in items if name in set(ids)]
    assert 36 <= len(kept) <= 40
    for place, item in enumerate(kept):
        assert (item.index, item.question, item.evidence) == (place, items[item.id].question, items[item.id].evidence)
    assert kept.image_bytes(kept[7], 0) == load(voted).image_bytes(kept[7].id, 0)
    manifest = read_manifest(out)
    assert manifest["fingerprint"] == dataset_fingerprint(kept)
    assert manifest["hard"]["from"] == dataset_fingerprint(load(voted))
    assert manifest["seed"] == 7
    assert [member["model"] for member in manifest["hard"]["panel"]] == sorted(SPECS)
    # Again: the same, in the place of the first; not where somebody's work lies.
    assert main(["vote", str(voted), "--rule", str(rule), "--dry-run"]) == 0
    assert "4 models counted, 0 scored now, 4 with saved scores." in capsys.readouterr().out
    assert main(["vote", str(voted), "--rule", str(rule), "--no-audit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"] == len(kept)
    assert read_manifest(out) == manifest
    # A model without replies has no vote; nearly empty ones and copies are named, and so is what is replaced.
    answer(voted, "openai:gone", lambda _, item: line(item, None, error="transport: unreachable"))
    answer(voted, "openai:few", lambda k, item: line(item, item.answer, error="" if k < 9 else "transport: gone"))
    answer(voted, "table:copy", lambda k, item: line(item, reply(item, 0 in WRONG[k % 5])))
    assert main(["vote", str(voted), "--rule", str(rule), "--no-audit"]) == 2
    assert "found 6 models; the rule is for 4" in capsys.readouterr().err
    assert main(["vote", str(voted), "--rule", str(rule), "--no-audit", "--wrong", "3", "--large", "1"]) == 0
    told = capsys.readouterr().out
    assert "note: openai:gone has no vote: all of its requests failed." in told
    assert "note: openai:few: replies to 9 of 160 questions alone." in told
    assert f"note: table:copy: the same answers as {SPECS[0]}, each of which has a vote. Leave one out." in told
    assert f"in {out}, which replace those of another rule and panel" in told
    (out / "replies").mkdir()
    assert main(["vote", str(voted), "--rule", str(rule), "--wrong", "3", "--large", "1"]) == 2
    assert "an older hard subset with replies" in capsys.readouterr().err


@pytest.mark.parametrize(("policy", "told"), [("paper", "count as wrong"), ("robust", "are no votes")])
def test_who_declined_more_than_a_quarter_is_named(made: Path, policy: Any, told: str) -> None:
    found = hard.count_votes(Built(made), RULE.model_copy(update={"policy": policy}))
    for column, refused in enumerate((40, 41)):  # of 160
        found.votes[:refused, column] = VOTES.index("refused")
    lines = format_votes(hard.make_report(found, hard.choose_hard(found, 0), 0))
    (line,) = (line for line in lines if "did not attempt" in line)
    name = found.panel[1].name
    assert line == f"{name} refused or did not attempt 41 of 160 questions, which {told} (policy {policy})"


def test_a_hard_set_is_scored_by_the_replies_to_its_source(voted: Path, tmp_path: Path, capsys: Capture) -> None:
    found = hard.count_votes(benchmarks["vgbench"].open(voted), RULE)
    choice = hard.choose_hard(found, 0)
    out = tmp_path / "somewhere"
    hard.write_hard(voted, out, found, choice, 0)
    source = benchmarks["vgbench"].open(out)
    notes: list[str] = []
    scored = score_source(source, notes=notes)
    assert {one.header.spec for one in scored} == {*SPECS, "baseline:truth"}
    whole = {
        one.header.spec: {row.id: row for row in one.rows} for one in score_source(benchmarks["vgbench"].open(voted))
    }
    for one in scored:
        assert [row.id for row in one.rows] == list(choice.ids)
        assert all(row == whole[one.header.spec][row.id] for row in one.rows)
        assert not one.header.ignored  # what the log says of other questions is nothing to tell
        assert one.path.parent == out / "scores"
    assert f"are those to the same questions in {voted / 'replies'}" in notes[0]
    # Whoever was asked the hard set itself is scored by that.
    items = {item.id: item for item in load(out)}
    path = name_replies_file(out / "replies", SPECS[0])
    with ReplyWriter(
        path, Header(dataset=source.fingerprint, benchmark="VGBench", spec=SPECS[0], model=SPECS[0])
    ) as writer:
        writer.append(line(items[choice.ids[0]], items[choice.ids[0]].answer))
    (own,) = (one for one in score_source(source) if one.header.spec == SPECS[0])
    assert (len(own.rows), own.rows[0].score) == (1, 1.0)
    assert main(["compare", str(out)]) == 0
    assert "nobody was asked again" in capsys.readouterr().out


def test_a_hard_set_is_asked_what_its_source_was_not_asked_alike(voted: Path, tmp_path: Path, capsys: Capture) -> None:
    script = tmp_path / "model.jsonl"
    script.write_text(json.dumps({"match": "", "reply": "B", "times": 0}) + "\n")
    out = tmp_path / "hard"
    found = hard.count_votes(benchmarks["vgbench"].open(voted), RULE)
    choice = hard.choose_hard(found, 0)
    hard.write_hard(voted, out, found, choice, 0)

    def ask(folder: Path, *options: str) -> dict[str, Any]:
        assert main(["eval", str(folder), "--model", f"scripted:{script}", "--json", *options]) == 0
        (told,) = json.loads(capsys.readouterr().out)
        return {name: told[name] for name in ("total", "kept", "taken", "asked")} if "taken" in told else told

    n = len(choice.ids)
    assert ask(voted) == {"total": 160, "kept": 0, "taken": 0, "asked": 160}
    (log,) = (voted / "replies").glob("scripted*")
    # A reply that failed is no reply, and one to other words is one to another question.
    lines = log.read_text().splitlines()
    chosen = [k for k, text in enumerate(lines) if json.loads(text).get("key", {}).get("id") in choice.ids]
    lost, other = (json.loads(lines[k]) for k in chosen[:2])
    lines[chosen[0]] = encode_line(lost | {"response": None, "error": "api_error: gone"}).decode().strip()
    lines[chosen[1]] = encode_line(other | {"request_digest": "0" * len(other["request_digest"])}).decode().strip()
    log.write_text("\n".join(lines) + "\n")
    estimate = ask(out, "--estimate")
    assert (estimate["requests"], estimate["kept"]) == (2, n - 2)
    assert ask(out) == {"total": n, "kept": n - 2, "taken": n - 2, "asked": 2}
    assert ask(out) == {"total": n, "kept": n, "taken": 0, "asked": 0}
    assert ask(out, "--blind") == {"total": n, "kept": 0, "taken": 0, "asked": n}
    assert ask(out, "--temperature", "0.5") == {"total": n, "kept": 0, "taken": 0, "asked": n}
    assert ask(out, "--replies", str(tmp_path / "anew")) == {"total": n, "kept": 0, "taken": 0, "asked": n}
    (own,) = (one for one in score_source(benchmarks["vgbench"].open(out), replies=out / "replies"))
    assert {row.id for row in own.rows} == set(choice.ids)
    shutil.rmtree(out / "replies")
    assert main(["eval", str(out), "--model", f"scripted:{script}"]) == 0
    assert f"\n  {n - 2} replies to the same request on the parent dataset were reused" in capsys.readouterr().out


def test_partners_that_were_not_chosen_are_not_named(voted: Path, tmp_path: Path) -> None:
    found = hard.count_votes(Built(voted), RULE)
    items = {item.id: item for item in load(voted)}
    chosen = hard.choose_hard(found, seed=0)
    twins = Counter(items[name].twin_id for name in chosen.ids)
    lonely = [name for name in chosen.ids if items[name].twin_id and twins[items[name].twin_id] == 1]
    both = [name for name in chosen.ids if items[name].twin_id and twins[items[name].twin_id] == 2]
    assert lonely
    assert both
    hard.write_hard(voted, tmp_path / "out", found, chosen, 0)
    kept = {item.id: item for item in load(tmp_path / "out")}
    assert tuple(kept) == chosen.ids
    assert {kept[name].twin_id for name in lonely} == {""}
    assert [kept[name].twin_id for name in both] == [items[name].twin_id for name in both]
    assert read_manifest(tmp_path / "out")["hard"]["without_partner"] == len(lonely)
    assert read_manifest(tmp_path / "out")["fingerprint"] == dataset_fingerprint(kept.values())


def test_what_does_not_fit_is_said(voted: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["vote", str(voted), "--dry-run"]) == 2
    assert "found 4 models; the rule is for 20" in capsys.readouterr().err
    assert not (tmp_path / "set-hard").exists()
    common = ["vote", str(voted), "--dry-run", "--wrong", "3", "--large", "1"]
    assert main([*common, "--target", "30", "--policy", "robust"]) == 0
    assert not (tmp_path / "set-hard").exists()
    assert "policy robust" in capsys.readouterr().out
    (voted / "votes").mkdir()  # which a dry run does not make
    kept = {voted / "votes" / name: f"of a real vote: {name}" for name in (hard.CANDIDATES, hard.CHOSEN, hard.REPORT)}
    for path, text in kept.items():
        path.write_text(text)
    assert main([*common, "--target", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"] <= 30
    assert {path: path.read_text() for path in kept} == kept
    for more, message in (
        (["--policy", "kind"], "expected paper or robust"),
        (["--size", "nobody=32"], "expected a model that votes"),
        (["--size", f"{SPECS[0]}=many"], "a model and its billions"),
        (["--ask"], "found no baseline in the panel"),
        (["--model", "openai:other"], "no replies of openai:other"),
    ):
        assert main([*common, *more]) == 2
        assert message in capsys.readouterr().err
    for path in (voted / "replies").glob("openai*"):
        path.unlink()
    with pytest.raises(DatasetError, match="replies of baselines alone"):
        hard.count_votes(Built(voted), RULE)
    shutil.copy(name_replies_file(voted / "replies", "baseline:truth"), voted / "replies" / "again.jsonl")
    with pytest.raises(ConfigError, match="no reply to prompt set 'final_line'; there are: paper"):
        hard.count_votes(Built(voted), RULE, ["baseline:truth"], wrong=1, large=0, prompt_set="final_line")


def test_scripted_models_are_as_good_as_they_say(voted: Path, tmp_path: Path, capsys: Capture) -> None:
    rule = tmp_path / "rule.toml"
    panel = [
        f"baseline:noisy?size={size}B&seed={k}&accuracy={share}"
        for k, (size, share) in enumerate(((1, 0.2), (7, 0.4), (32, 0.6), (72, 0.9)))
    ]
    panel += ["baseline:noisy?accuracy=1.0&accuracy.metric_depth=0.0", "baseline:noisy?unreadable=0.5&refused=0.5"]
    rule.write_text(f"models = 6\nwrong = 4\nlarge = 1\npanel = {json.dumps(panel)}\n")
    assert main(["vote", str(voted), "--rule", str(rule), "--ask", "--dry-run", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    shares = {model["model"]: model["right_share"] for model in report["models"]}
    for name, share in zip(panel, (0.2, 0.4, 0.6, 0.9, 0.5, 0.0), strict=True):
        assert shares[name] == pytest.approx(share, abs=0.13)
    last = next(model for model in report["models"] if model["model"] == panel[5])
    assert last["unreadable"] + last["refused"] == 160
    assert min(last["unreadable"], last["refused"]) > 50
    kappa = {frozenset(pair["models"]): pair["kappa"] for pair in report["agreement"]["pairs"]}
    assert kappa[frozenset(panel[1:3])] > 0.1  # what is hard for one is hard for others
    assert main(["eval", str(voted), "--model", "baseline:noisy?accurate=1"]) == 2
    assert "Did you mean accuracy?" in capsys.readouterr().err


def test_agents_with_oracle_tools_have_no_vote(voted: Path) -> None:
    spec = "agent:react+openai:model-7b?tools=classical,oracle"
    answer(voted, spec, lambda k, item: line(item, reply(item, False)))
    found = hard.count_votes(Built(voted), RULE)
    assert [voter.name for voter in found.panel] == sorted(SPECS)
    assert [note for note in found.notes if note.startswith(spec)]
    with pytest.raises(ConfigError, match="oracle tools"):
        hard.count_votes(Built(voted), RULE, [*SPECS, spec])
