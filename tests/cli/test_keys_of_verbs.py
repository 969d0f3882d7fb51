"""No key reaches what `paraphrase`, `distractors` and `eval` print or write; and models on this machine get options."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from tests.backends.server import Play, Seen, refusal, reply, serving
from tests.backends.test_keys import FORMS, SENTINEL, echo
from tests.pipeline.same_bytes import small_recipe
from tests.pipeline.test_redraw_llm import plausible
from tests.room_writer import write_wildrgbd
from tests.scene_factory import room_scene
from tests.text.paraphrase.player import answer, between_fences
from vgbench_gen.backends import _keys
from vgbench_gen.backends.spec import BackendOptions, LocalOptions, providers
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.pipeline.build import build

SAID = f"you are {SENTINEL}, {quote(SENTINEL, safe='')} or {base64.b64encode(SENTINEL.encode()).decode()}"
FORBIDDEN = (*FORMS, base64.b64encode(f"user:{SENTINEL}".encode()).decode())
VERBS = {
    "paraphrase": ["--bank", "bank.toml", "--task", "metric_depth", "--type", "open-ended", "--n", "4"],
    "distractors": ["set", "--strategy", "llm", "--out", "new", "--workers", "1", "--task", "metric_depth"],
    "eval": ["set", "--cache", "cache.sqlite", "--epochs", "2"],
}
# What each writes; the last is where a model's own words stand.
WRITTEN = {
    "paraphrase": ("bank.toml", "bank.toml.replies.sqlite"),
    "distractors": ("new/manifest.json", "new/items/*.parquet", "new/replies.sqlite"),
    "eval": ("cache.sqlite", "set/replies/*.jsonl"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of one task over one small scene."""
    raw, out = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("built")
    write_wildrgbd(raw, room_scene(seed=3, frames=8, width=320, height=240, dataset="wildrgbd"))
    recipe = small_recipe().model_copy(update={"tasks": ("metric_depth",), "facts_per_scene": 4})
    assert build(recipe, raw, out).composed.total > 8
    return out


def helpful(verb: str, seen: Seen) -> Play:
    """A reply that is of use, with the key in it wherever there is place."""
    if verb == "eval":
        words = f"B. {SAID}"
    elif verb == "distractors":
        words = seen_text(plausible(seen))
    else:
        words = seen_text(reply(answer(seen.text)))
        about = between_fences(seen.text)
        if "rewording" in about:
            words += SAID
        else:
            tree = json.loads(words.strip("`").removeprefix("json"))
            told = {"question": about["question"], "context": f"{about['context']} Look closely, {SAID}."}
            words = json.dumps({"rewordings": [told, *tree["rewordings"]]})
    message = {"role": "assistant", "content": words, "reasoning_content": SAID}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return replace(reply(choices=choices, model=SENTINEL, system_fingerprint=SAID), headers={"x-echo": SENTINEL})


def seen_text(play: Play) -> str:
    return str(json.loads(play.body)["choices"][0]["message"]["content"])


def played(verb: str, seen: Seen) -> Play:
    """As the address says: the key is refused, or every second reply is of use and the others echo, or all are."""
    mood = seen.path.split("/")[1]
    if mood == "refusing":
        return refusal(401, f"{SAID}, {seen.headers['authorization']}", param=SENTINEL, code=SENTINEL)
    if mood == "mixed" and seen.number % 2:
        bearer = {"authorization": f"Bearer {SENTINEL}"}
        return echo(replace(seen, number=seen.number // 2 % 7, headers=bearer))
    return helpful(verb, seen)


def texts(path: Path) -> Iterator[str]:
    """What a file holds, as it lies there and as its readers give it."""
    yield path.read_bytes().decode("latin-1")
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as base:
            tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                yield from map(str, base.execute(f'SELECT * FROM "{table}"'))
    elif path.suffix == ".parquet":
        table = pq.read_table(path)
        yield str(table.schema.metadata)
        yield from map(str, table.to_pylist())


@pytest.mark.parametrize("how", ["environment", "file", "address"])
@pytest.mark.parametrize("verb", list(VERBS))
def test_nothing_that_a_verb_prints_or_writes_holds_the_key(
    built: Path, tmp_path: Path, verb: str, how: str,
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    # As in a new process: no key is known yet.
    monkeypatch.setattr(_keys, "_known", set())
    monkeypatch.setattr(_keys, "_pattern", None)
    caplog.set_level(0)
    home, key_file = tmp_path / "home", tmp_path / "key"
    key_file.write_text(f"VLLM_API_KEY={SENTINEL}\n")
    key_file.chmod(0o600)
    shutil.copytree(built, home / "set")
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    if how == "environment":
        monkeypatch.setenv("VLLM_API_KEY", SENTINEL)
    with serving(lambda seen: played(verb, seen)) as server:
        start = server.url.removesuffix("/v1")
        if how == "address":
            start = start.replace("http://", f"http://user:{quote(SENTINEL, safe='')}@")

        def run(mood: str, *more: str) -> int:
            line = [verb, *VERBS[verb], "--model", f"vllm:{start}/{mood}/v1#m", "--retries", "0", *more]
            return main([*line, "--key-file", str(key_file)] if how == "file" else line)

        assert run("refusing") == (2 if verb == "distractors" else 1)
        run("mixed")
        assert run("good") == 0
        if verb == "eval":
            assert run("good", "--estimate") == 0
            assert run("good", "--model", f"vllm:{start}/good/v1#m") == 2  # twice the same
        sent = {seen.headers["authorization"] for seen in server.seen}
        assert {seen.path.split("/")[1] for seen in server.seen} == {"refusing", "mixed", "good"}
    assert sent == {f"Bearer {SENTINEL}" if how != "address" else f"Basic {FORBIDDEN[-1]}"}
    captured = capfd.readouterr()
    assert "the key was refused (401)" in captured.out + captured.err
    assert "HTTP" in caplog.text  # the libraries did log
    found = {str(path.relative_to(home)): "\n".join(texts(path)) for path in home.rglob("*") if path.is_file()}
    found |= {"what is printed": captured.out + captured.err, "the log": caplog.text}
    assert not [(name, form) for name, text in found.items() for form in FORBIDDEN if form in text]
    for pattern in WRITTEN[verb]:
        names = [str(path.relative_to(home)) for path in home.glob(pattern)]
        assert names, pattern
    assert any("[key]" in found[name] for name in names)


@pytest.mark.parametrize("verb", list(VERBS))
def test_the_options_for_a_model_on_this_machine_reach_it(
    built: Path, tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[BackendOptions] = []

    def spy(self: object, name: str, model: str, options: BackendOptions) -> NoReturn:
        opened.append(options)
        raise ConfigError("seen")

    monkeypatch.setattr(type(providers["hf"]), "open", spy)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").symlink_to(built)
    line = [verb, *VERBS[verb], "--model", "hf:somewhere"]
    more = ["--device", "cuda:1", "--dtype", "float16", "--batch-size", "3", "--trust-remote-code"]
    assert main([*line, *more]) == 2
    assert main(line) == 2
    given = LocalOptions(device="cuda:1", dtype="float16", batch_size=3, trust_remote_code=True)
    assert [options.local for options in opened] == [given, LocalOptions()]
