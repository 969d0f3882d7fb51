"""Templates reworded into a bank: what is asked, what is kept, and what a stop costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.backends.server import Play, Seen, reply, serving, wait_until
from tests.text.paraphrase.good_rewordings import GOOD
from tests.text.paraphrase.player import Played, answer, between_fences, nonsense
from vgbench_gen.backends.base import Settings
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli.main import main
from vgbench_gen.text.bank import MAX_PER_CELL, Bank, add_wordings, load_bank, load_shipped
from vgbench_gen.text.paraphrase.checks import Text
from vgbench_gen.text.paraphrase.prompts import read_rewordings, read_verdict
from vgbench_gen.text.paraphrase.rounds import Asker, RewordCounts
from vgbench_gen.text.paraphrase.templates import choose_cells, make_requests, paraphrase
from vgbench_gen.text.render import load_phrasings

DEPTH = ["metric_depth"], ["open-ended"]
ONE_CELL = ["--task", "metric_depth", "--type", "open-ended"]
POSES = ["--task", "relative_pose", "--type", "judgment"]  # its template 1 gets fewer wordings than it has places


def asker(played: Played, judge: Played | None = None) -> Asker:
    backend = played.backend
    return Asker(backend, judge.backend if judge is not None else backend, 4, Settings(temperature=0.8))


def test_good_rewordings_reach_the_bank_as_proposals(tmp_path: Path) -> None:
    played = Played()
    chosen = [cell for cell in choose_cells() if any(phrasing.id in GOOD for phrasing in load_phrasings(*cell))]
    bank, report = paraphrase(asker(played), Bank(tmp_path / "bank.toml"), chosen)
    assert report.stopped == ""
    assert {e.template for e in bank.entries} == set(GOOD)
    assert {(e.question, e.context) for e in bank.entries} == {
        (text.question, text.context) for texts in GOOD.values() for text in texts
    }
    assert {(e.status, e.model, e.language) for e in bank.entries} == {("proposed", "played", "en")}
    assert load_bank(bank.path) == bank
    total = report.total
    assert (total.texts, total.reworded, total.accepted) == (
        6 * len(chosen),
        len(GOOD),
        sum(map(len, GOOD.values())),
    )
    assert set(total.refused) == {"near_copy"}
    # What failed is asked again three times, with the reasons.
    assert total.rounds == len([p for p in played.prompts if "rewording" not in between_fences(p)])
    assert total.rounds == 6 * len(chosen) * 4 - 3  # but not where the places are filled at once
    assert any('"near_copy (question): nearly the words of the original"' in prompt for prompt in played.prompts)
    assert total.completion_tokens == 100 * len(played.prompts)


def test_the_prompt_holds_the_rule_of_placeholders(tmp_path: Path) -> None:
    prompt = next(
        make_requests(choose_cells(["metric_depth"], ["judgment"]), 3, Bank(tmp_path / "b.toml"), "de", False)
    )
    part = prompt.messages[0].parts[0]
    told = getattr(part, "text", "")
    assert "Write 3 different rewordings of both in German" in told
    assert 'Placeholders of the question: ["{{ tolerance }}", "{{ claim }}"]' in told
    template = load_phrasings("metric_depth", "judgment")[0]
    assert between_fences(told) == {"question": template.question, "context": template.context}
    assert prompt.settings.max_tokens is not None
    assert prompt.settings.max_tokens > 3 * (len(template.question) + len(template.context)) / 4


def _saying(said: str, prompt: str) -> str:
    return said


def test_a_judge_has_the_last_word(tmp_path: Path) -> None:
    for said in ('{"same": false, "reason": "The axes differ."}', "yes"):
        judge = Played(partial(_saying, said))
        bank, report = paraphrase(asker(Played(), judge), Bank(tmp_path / "bank.toml"), choose_cells(*DEPTH))
        assert bank.entries == ()
        assert report.total.refused["judge"] == report.total.judged > 0
    assert not (tmp_path / "bank.toml").exists()


@pytest.mark.parametrize(
    "reply_text", ["", "x", "[1, 2]", '{"rewordings": 3}', "{" * 5000, '{"a": ' * 900, nonsense("")]
)
def test_nonsense_costs_a_fallback_and_nothing_else(tmp_path: Path, reply_text: str) -> None:
    played = Played(lambda prompt: reply_text)
    bank, report = paraphrase(asker(played), Bank(tmp_path / "bank.toml"), choose_cells(["homography_to_matrix"]))
    assert (bank.entries, report.stopped) == ((), "")
    assert report.total.refused.total() >= report.total.rounds == 12 * 4  # six templates in each notation
    assert report.total.judged == 0
    assert not list(tmp_path.iterdir())


def test_replies_are_read_safely() -> None:
    good = {"question": " What? ", "context": "It is {{fx}}."}
    assert read_rewordings(json.dumps([good]), 4) == ([Text("What?", "It is {{ fx }}.")], "")
    assert read_rewordings(json.dumps(good), 4)[1] == ""
    assert read_rewordings("Here:\n```json\n" + json.dumps({"rewordings": [good, good]}) + "\n```", 1)[0] != []
    assert len(read_rewordings(json.dumps([good] * 9), 4)[0]) == 4
    assert read_rewordings(json.dumps([good | {"answer": "Yes"}]), 4) == ([], "shape")
    assert read_rewordings(json.dumps([good, {"question": 3, "context": "x"}]), 4)[1] == "shape"
    assert read_rewordings("x" * 300_000 + json.dumps([good]), 4) == ([], "json")
    assert read_verdict('Well: {"same": true}') == (True, "")
    assert read_verdict('{"same": "yes", "reason": 4}') == (True, "")
    assert read_verdict('{"same": 1}')[0] is False


def test_places_of_a_cell_are_shared_and_never_more_than_eight(tmp_path: Path) -> None:
    """A model that always finds something: every template gets its share, and a full cell asks nothing."""

    def inventive(prompt: str) -> str:
        about = between_fences(prompt)
        if "rewording" in about:
            return '{"same": true}'
        texts = []
        for k in range(8):
            # Sentences in another order, which the mechanical checks cannot mind.
            parts = [part for part in about["context"].split(". ") if part]
            turned = parts[k % len(parts) :] + parts[: k % len(parts)]
            context = ". ".join(part.strip().removesuffix(".") for part in turned)
            context = ". ".join(part[0].upper() + part[1:] for part in context.split(". ")) + "."
            question = ("Which image is it? " * (k + 1)).strip() + " " + about["question"]
            texts.append({"question": question, "context": context})
        return json.dumps({"rewordings": texts})

    path = tmp_path / "bank.toml"
    played = Played(inventive)
    chosen = choose_cells(["point_tracking"], ["multi-choice"])
    bank, report = paraphrase(asker(played), Bank(path), chosen)
    counts = [sum(e.template == t.id for e in bank.entries) for t in load_phrasings("point_tracking", "multi-choice")]
    assert sum(counts) <= MAX_PER_CELL
    assert report.total.accepted == sum(counts)
    if sum(counts) == MAX_PER_CELL:
        asked = len(played.prompts)
        again, report = paraphrase(asker(played), bank, chosen)
        assert (again, len(played.prompts), report.full) == (bank, asked, ["point_tracking/multi-choice"])


def test_wordings_differ_from_those_of_the_bank(tmp_path: Path) -> None:
    name = "relative_pose.judgment.1"
    text = GOOD[name][0]
    nearly = Text(text.question, text.context.replace("Pinhole cameras took", "Some pinhole cameras took"))
    bank = add_wordings(Bank(tmp_path / "bank.toml"), load_shipped()[name], [nearly], "a person", "en")
    again, report = paraphrase(asker(Played()), bank, choose_cells(["relative_pose"], ["judgment"]))
    assert again == bank
    assert report.total.accepted == 0
    # The same one again is no news, and costs no more than it did.
    bank = add_wordings(Bank(tmp_path / "bank.toml"), load_shipped()[name], [text], "played", "en")
    again, report = paraphrase(asker(Played()), bank, choose_cells(["relative_pose"], ["judgment"]))
    assert again == bank
    assert report.total.accepted == 1


def test_a_spent_budget_stops_and_keeps_what_there_is(tmp_path: Path) -> None:
    played = Played(options=BackendOptions(budget_tokens=12_000, concurrency=1))
    bank, report = paraphrase(asker(played), Bank(tmp_path / "bank.toml"), choose_cells(["metric_depth"]))
    assert "12000 tokens" in report.stopped
    assert report.total.failed["budget"] >= 1
    assert len(played.prompts) < 6 * 3 * 4
    assert load_bank(tmp_path / "bank.toml", missing_ok=True).entries == bank.entries


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed in the middle: the same bank in the end, and no reply that came is asked for again."""

    def behave(seen: Seen) -> Play:
        return Play(body=reply(answer(seen.text)).body, delay_s=0.02)

    def command(name: str, url: str) -> list[str]:
        return [
            "paraphrase",
            "--model",
            f"vllm:{url}#played",
            "--bank",
            str(tmp_path / name),
            *POSES,
            "--concurrency",
            "2",
            "--n",
            "4",
        ]

    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    with serving(behave) as server:
        program = [sys.executable, "-m", "vgbench_gen.cli", *command("cut.toml", server.url)]
        process = subprocess.Popen(program, env=environment, stderr=subprocess.DEVNULL)
        wait_until(lambda: server.requests >= 9)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert main(command("cut.toml", server.url)) == 0
        counts = server.counts()
        asked = counts["different"]
        # At most the two requests that were under way.
        assert counts["requests"] - asked <= 2
    played = Played(answer)
    bank, report = paraphrase(
        asker(played), Bank(tmp_path / "whole.toml"), choose_cells(["relative_pose"], ["judgment"])
    )
    assert len(bank.entries) == 1
    assert (tmp_path / "cut.toml").read_text() == (tmp_path / "whole.toml").read_text()
    assert asked == report.total.rounds + report.total.judged


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    bank = tmp_path / "bank.toml"
    where = ["--bank", str(bank), *ONE_CELL]
    assert main(["paraphrase", *where]) == 2
    error = capsys.readouterr().err
    assert "DEEPSEEK_API_KEY" in error
    assert error.count("\n") == 1
    assert main(["paraphrase", *where, "--dry-run"]) == 0
    assert "metric_depth" not in (shown := capsys.readouterr().out)
    assert "14 requests if all goes well, the first 2 shown; about" in shown
    assert main(["paraphrase", *where, "--language", "xx"]) == 2
    assert main(["paraphrase", "--bank", str(bank), "--task", "nothing"]) == 2
    assert not list(tmp_path.iterdir())

    lines = [{"match": "compare an original", "reply": '{"same": true}'}]
    lines += [{"match": f"{t.question[:60]}", "reply": answer_for(t.question, t.context)} for t in depth_templates()]
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines))
    capsys.readouterr()
    assert main(["paraphrase", "--model", f"scripted:{script}", *where, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["entries"] == report["total"]["accepted"] == 2
    assert report["total"]["usd"] == 0
    first, second = (entry.id for entry in load_bank(bank).entries)
    assert (first, second) == ("metric_depth.open-ended.2.en1", "metric_depth.open-ended.2.en2")
    assert main(["paraphrase", "--bank", str(bank), "--accept", first]) == 0
    assert [entry.status for entry in load_bank(bank).entries] == ["reviewed", "proposed"]
    assert main(["paraphrase", "--bank", str(bank), "--accept", "nothing.here"]) == 2
    assert main(["paraphrase", "--bank", str(bank), "--accept-all"]) == 0
    assert {entry.status for entry in load_bank(bank).entries} == {"reviewed"}


def depth_templates() -> list[Text]:
    return [Text(p.question, p.context) for p in load_phrasings("metric_depth", "open-ended")]


def answer_for(question: str, context: str) -> str:
    from vgbench_gen.text.paraphrase import rules

    fence = rules.load_prompts().fence
    return answer(f"{fence}{json.dumps({'question': question, 'context': context})}{fence}")


def test_counts_add_up() -> None:
    a, b = RewordCounts(texts=1, usd=0.5), RewordCounts(texts=2, usd=0.25)
    a.refused["unit"] += 1
    b.refused.update(unit=2, json=1)
    a.add(b)
    assert (a.texts, a.usd, dict(a.refused)) == (3, 0.75, {"unit": 3, "json": 1})
