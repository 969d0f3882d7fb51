from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from vgbench_gen.backends import _cache
from vgbench_gen.backends._cache import ReplyCache, reply_from_json, reply_to_json
from vgbench_gen.backends.base import Reply, Usage
from vgbench_gen.core.errors import ConfigError

REPLY = Reply(
    "Ω “B”",
    "stop",
    "m",
    "d1",
    Usage(1, 2, 1, 1),
    cost_usd=0.1,
    latency_s=0.5,
    image_sizes_px=((4, 3),),
    images=(b"\xff\xd8\xff",),
    attempts=2,
    parameters={"temperature": 0.0},
    raw={"choices": [{"x": None}]},
)


def test_a_reply_comes_back_as_it_was(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "deep" / "cache.sqlite")
    cache.put("d1", reply_to_json(REPLY))
    cache.close()
    assert cache.get("d1") == REPLY
    assert cache.get("d2") is None


def test_a_damaged_row_is_no_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ReplyCache(tmp_path / "cache.sqlite")
    cache.put("torn", reply_to_json(REPLY)[:-5])
    cache.put("other", reply_to_json(REPLY))  # its digest is d1
    cache.put("odd", '{"text": 1}')
    cache.put("list", "[]")
    cache.put("d1", reply_to_json(REPLY))
    assert [cache.get(name) for name in ("torn", "other", "odd", "list")] == [None] * 4
    monkeypatch.setattr(_cache, "_MAX_REPLY_BYTES", 50)  # larger than is read
    assert cache.get("d1") is None


def test_other_files_are_left_as_they_are(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("mine\n" * 300)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    before = other.read_bytes()
    for path in (text, other, tmp_path):
        with pytest.raises(ConfigError, match="--cache"):
            ReplyCache(path).get("d1")
    assert (text.read_text(), other.read_bytes()) == ("mine\n" * 300, before)


def test_the_schema_of_a_later_version_is_refused(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "cache.sqlite")
    cache.put("d1", reply_to_json(REPLY))
    cache.close()
    with sqlite3.connect(cache.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConfigError, match="version"):
        cache.get("d1")


def test_json_of_replies_is_checked() -> None:
    assert reply_from_json(reply_to_json(replace(REPLY, usage=None))).usage is None
    for bad in ("", "{}", "[1]", "3", '{"usage": 1}'):
        with pytest.raises(ValueError, match=r"no reply|Expecting"):
            reply_from_json(bad)
