"""A build that draws from a bank of wordings, and a dataset reworded row by row."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from tests.pipeline.same_bytes import content, small_recipe
from tests.text.paraphrase.good_rewordings import GOOD
from tests.text.paraphrase.player import Played, between_fences, nonsense
from vgbench_gen.backends.base import Settings
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.build import BuildReport, recompose
from vgbench_gen.pipeline.question import list_phrasings
from vgbench_gen.pipeline.recipe import Recipe, WordSettings, load_recipe
from vgbench_gen.pipeline.reword import group_rows, reword_items
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import dataset_fingerprint, read_manifest
from vgbench_gen.text.bank import Bank, accept_entries, add_wordings, find_origin, load_bank, load_shipped, save_bank
from vgbench_gen.text.marks import compile_mark_names
from vgbench_gen.text.numbers import SIGNED_LIST
from vgbench_gen.text.paraphrase.rounds import Asker

TASKS = ("metric_depth", "point_tracking", "relative_depth")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def built(reference: tuple[Path, dict[str, str]], tmp_path: Path) -> Path:
    """A copy of the small build."""
    out = tmp_path / "built"
    shutil.copytree(reference[0], out)
    return out


def bank_file(path: Path, reviewed: Sequence[str] = ()) -> Path:
    """All good rewordings; those of these templates are reviewed."""
    bank = Bank(path)
    for name, texts in GOOD.items():
        bank = add_wordings(bank, load_shipped()[name], texts, "played", "en")
    bank, _ = accept_entries(bank, [e.id for e in bank.entries if e.template in reviewed])
    save_bank(bank)
    return path


def worded(path: Path, **words: object) -> Recipe:
    changes = {"tasks": TASKS, "wording": WordSettings.model_validate({"bank": str(path), **words})}
    return small_recipe().model_copy(update=changes)


def items_of(out: Path, recipe: Recipe, workers: int = 1) -> tuple[BuildReport, list[Item]]:
    report = recompose(recipe, out, workers)
    return report, list(load(out))


def test_a_bank_of_which_nothing_may_be_drawn_changes_nothing(
    reference: tuple[Path, dict[str, str]], built: Path
) -> None:
    words = WordSettings(bank=str(bank_file(built.parent / "bank.toml")))
    recompose(small_recipe().model_copy(update={"wording": words}), built)
    assert content(built) == reference[1]


def test_wordings_are_drawn_marked_and_verified(built: Path, capsys: Capture) -> None:
    _, before = items_of(built, small_recipe().model_copy(update={"tasks": TASKS}))
    path = bank_file(built.parent / "bank.toml", ["metric_depth.judgment.1", "metric_depth.open-ended.2"])
    report, items = items_of(built, worded(path, most=1))
    new = [item for item in items if item.paraphrase]
    assert {(item.task, item.question_type) for item in new} == {
        ("metric_depth", "judgment"),
        ("metric_depth", "open-ended"),
    }
    entries = {entry.template_id: entry for entry in load_bank(path).entries}
    for item in new:
        assert item.paraphrase == "played"
        assert entries[item.template_id].status == "reviewed"
        assert find_origin(item.template_id) == (entries[item.template_id].template, "en")
        first = entries[item.template_id].context.split("{{")[0]
        assert item.context.startswith(first)
    # The same truths, answers and options as before; only words and what follows from them are others.
    assert {_key(item) for item in items} == {_key(item) for item in before}
    assert {item.id for item in new}.isdisjoint(item.id for item in before)
    note = read_manifest(built)["wording"]
    assert (note["bank"], note["phrasings"], note["use"], note["stale"]) == ("bank.toml", 3, "reviewed", [])
    assert note == report.composed.wording
    assert main(["verify", str(built), "--workers", "1"]) == 0, capsys.readouterr().out
    # The same bytes again, and by two workers, who get the bank with their work.
    whole = content(built)
    recompose(worded(path, most=1), built, 2)
    assert content(built) == whole


def _key(item: Item) -> tuple[str, str, str, str, tuple[str, ...]]:
    return item.group_id, item.question_type, item.answer, str(item.evidence["side"]), item.options


def test_the_draw_knows_nothing_of_the_answer(built: Path) -> None:
    """Twins share their wording, and a truth keeps it whatever options another seed gives it."""
    path = bank_file(built.parent / "bank.toml")
    recipe = worded(path, use="proposed")
    _, items = items_of(built, recipe)
    twins: dict[str, set[str]] = defaultdict(set)
    for item in items:
        if item.twin_id:
            twins[item.twin_id].add(item.template_id)
    assert twins
    assert {len(names) for names in twins.values()} == {1}
    _, again = items_of(built, recipe.model_copy(update={"distractor_seed": 3}))
    drawn = {(i.group_id, i.question_type): (i.template_id, i.options) for i in items if i.question_type != "judgment"}
    other = {(i.group_id, i.question_type): (i.template_id, i.options) for i in again if i.question_type != "judgment"}
    both = set(drawn) & set(other)
    assert any(drawn[key][1] != other[key][1] for key in both)
    assert all(drawn[key][0] == other[key][0] for key in both)


def test_a_pool_holds_at_most_as_many_as_are_allowed(built: Path) -> None:
    path = bank_file(built.parent / "bank.toml")
    _, items = items_of(built, worded(path, use="proposed", most=1))
    cells = {(p.task, p.question_type) for p in map(load_shipped().__getitem__, GOOD) if p.task in TASKS}
    assert len(cells) == 4
    for task, form in cells:
        names = {i.template_id for i in items if (i.task, i.question_type) == (task, form)}
        assert len(names) <= 1
        assert all(len(name.split(".")) == 5 for name in names)


def test_a_headline_takes_reviewed_wordings_only(built: Path) -> None:
    path = bank_file(built.parent / "bank.toml")
    recipe = worded(path, use="proposed").model_copy(update={"headline": True})
    with pytest.raises(ConfigError, match=r'found "proposed" in a headline recipe; expected "reviewed"'):
        recompose(recipe, built)
    with pytest.raises(ConfigError, match='found "llm" in a headline recipe'):
        recompose(small_recipe().model_copy(update={"headline": True, "strategy": "llm"}), built)
    assert load_recipe("vgbench").headline
    assert not load_recipe("train").headline


def test_banks_are_checked_when_they_are_read(tmp_path: Path) -> None:
    path = bank_file(tmp_path / "bank.toml")
    whole = path.read_text()
    for old, new, said in (
        ("{{ tolerance }}", "10 percent", "placeholders"),
        ('status = "proposed"', 'status = "fine"', "status"),
        ('id = "relative_pose.judgment.1.en1"', 'id = "relative_pose.judgment.2.en1"', "an id that does not fit"),
        ("{{ claim }}", "{{ claim | upper }}", "plain slots"),
        ("(0, 0)", "(0, 1)", "pixel_centre"),
        ("model = ", "modle = ", "Did you mean model"),
    ):
        assert old in whole
        path.write_text(whole.replace(old, new))
        with pytest.raises(ConfigError, match=re.escape(said)):
            load_bank(path)
    path.write_text(whole + whole.partition("\n\n")[2].join(["\n", ""]))
    with pytest.raises(ConfigError, match="this id twice"):
        load_bank(path)
    with pytest.raises(ConfigError, match="no such file"):
        load_bank(tmp_path / "other.toml")
    # An edited wording is another one, and a changed template makes an entry stale, which stays in the file.
    path.write_text(whole.replace("For the orange rectangle", "Inside the orange rectangle"))
    edited = load_bank(path)
    names = {e.id: e.template_id for e in edited.entries}
    path.write_text(whole)
    assert [e.id for e in load_bank(path).entries if e.template_id != names[e.id]] == ["metric_depth.open-ended.2.en1"]
    digest = next(e.digest for e in edited.entries if e.template == "metric_depth.judgment.1")
    path.write_text(whole.replace(digest, "0" * 16))
    stale = load_bank(path)
    assert [e.id for e in stale.stale] == ["metric_depth.judgment.1.en1"]
    save_bank(stale)
    assert path.read_text() == whole.replace(digest, "0" * 16)


def test_a_bank_from_the_command_line(built: Path, capsys: Capture) -> None:
    path = bank_file(built.parent / "bank.toml")
    text = path.read_text().replace('digest = "', 'digest = "0', 1)
    path.write_text(re.sub(r'digest = "0(\w{15})\w', r'digest = "0\1', text))
    recompose(worded(path), built)  # fewer tasks, which the manifest remembers
    assert main(["build", "--facts", str(built), "--bank", str(path), "--wording", "proposed", "--workers", "1"]) == 0
    told = capsys.readouterr().out
    assert "wording 10 wordings from bank.toml (proposed, en); left out, because their templates changed: " in told
    assert any(item.paraphrase for item in load(built))
    # The manifest remembers it.
    assert main(["build", "--facts", str(built), "--workers", "1"]) == 0
    assert "wording 10 wordings" in capsys.readouterr().out
    assert main(["build", "--facts", str(built), "--wording", "best"]) == 2
    assert main(["build", "--facts", str(built), "--bank", str(built / "no.toml")]) == 2


def test_another_language_needs_wordings_for_all_that_is_asked(built: Path) -> None:
    path = bank_file(built.parent / "bank.toml")
    with pytest.raises(ConfigError, match="found no proposed wordings in Chinese of metric_depth/judgment"):
        recompose(worded(path, use="proposed", language="zh"), built)
    with pytest.raises(ConfigError, match="found no bank"):
        recompose(small_recipe().model_copy(update={"wording": WordSettings(language="zh")}), built)


def polite(prompt: str) -> str:
    """Rewords any filled text by sentences in another order."""
    about = between_fences(prompt)
    if "rewording" in about:
        return '{"same": true}'
    question = about["question"]
    sentences = re.split(r"(?<=\.) (?=[A-Z])", about["context"])
    turned = " ".join(sentences[1:] + sentences[:1])
    return json.dumps(
        {"rewordings": [{"question": f"Look closely at what is shown here. {question}", "context": turned}]}
    )


def test_rows_are_reworded_and_nothing_else_changes(built: Path, tmp_path: Path, capsys: Capture) -> None:
    before = list(load(built))
    played = Played(polite, BackendOptions(cache=tmp_path / "replies.sqlite"))
    backend = played.backend
    asker = Asker(backend, backend, 1, Settings(temperature=0.8), retries=0)
    out = tmp_path / "new"
    report = reword_items(built, asker, out)
    after = list(load(out))
    assert report.rows == len(before) == len(after)
    assert report.new > len(before) / 4
    words = {"id", "twin_id", "question", "context", "template_id", "paraphrase"}
    changed: Counter[str] = Counter()
    for old, new in zip(before, after, strict=True):
        differ = {f.name for f in fields(Item) if str(getattr(old, f.name)) != str(getattr(new, f.name))}
        assert differ <= words
        if differ:
            assert differ >= words - {"twin_id"}
            assert new.template_id == f"{old.template_id}.item-en"
            assert sorted(re.findall(r"[0-9.]+[0-9]", new.context)) == sorted(re.findall(r"[0-9.]+[0-9]", old.context))
            changed[new.question_type] += 1
    assert set(changed) == {"judgment", "multi-choice", "open-ended"}
    assert len({item.id for item in after}) == len(after)
    twins = defaultdict(list)
    for item in after:
        if item.twin_id:
            twins[item.twin_id].append(item)
    for pair in twins.values():
        assert len(pair) == 2
        values = rf"{compile_mark_names()}|\s{SIGNED_LIST}|[0-9.\[\]()\s,+-]+"
        assert len({re.sub(values, "#", item.question) for item in pair}) == 1
    assert dataset_fingerprint(after) == report.fingerprint == read_manifest(out)["fingerprint"]
    assert dataset_fingerprint(load(built)) == dataset_fingerprint(before)
    assert main(["verify", str(out), "--workers", "1"]) == 0, capsys.readouterr().out
    # Again: everything is known, nothing is asked, and the bytes are the same.
    asked, whole = len(played.prompts), content(out)
    again = played.backend
    reword_items(built, Asker(again, again, 1, Settings(temperature=0.8), retries=0), out)
    assert (len(played.prompts), content(out)) == (asked, whole)
    with pytest.raises(ConfigError, match="found something else there"):
        reword_items(built, asker, built)


def test_rows_stay_where_a_model_talks_nonsense_or_the_budget_is_spent(built: Path, tmp_path: Path) -> None:
    backend = Played(nonsense).backend
    report = reword_items(built, Asker(backend, backend, 1), tmp_path / "same", ["metric_depth"])
    assert (report.new, report.total.accepted) == (0, 0)
    assert report.unasked == sum(item.task != "metric_depth" for item in load(built))
    assert report.fingerprint == dataset_fingerprint(load(built))
    poor = Played(polite, BackendOptions(budget_tokens=3000, concurrency=2)).backend
    stopped = reword_items(built, Asker(poor, poor, 1), tmp_path / "none")
    assert "budget" in stopped.stopped
    assert not (tmp_path / "none").exists()


def test_every_pair_of_twins_of_the_build_shares_one_text(built: Path) -> None:
    items = list(load(built))
    groups = group_rows(items)
    assert sum(len(group.places) for group in groups) == len(items)
    assert Counter(len(group.places) for group in groups)[2] == sum(bool(item.twin_id) for item in items) / 2


def test_a_task_without_wordings_in_a_notation_is_an_error_of_one_line() -> None:
    with pytest.raises(ConfigError, match=r"'metric_depth': found no wordings of judgment for values in words"):
        list_phrasings("metric_depth", "judgment", WordSettings(), "words")
