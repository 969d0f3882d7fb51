from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from vgbench_gen.backends._cache import ReplyCache, reply_from_json, reply_to_json
from vgbench_gen.backends.base import Reply, Usage
from vgbench_gen.core import kept
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
    cache.write("d1", reply_to_json(REPLY))
    cache.close()
    assert cache.get("d1") == REPLY
    assert cache.get("d2") is None


def test_a_damaged_row_is_no_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ReplyCache(tmp_path / "cache.sqlite")
    cache.write("torn", reply_to_json(REPLY)[:-5])
    cache.write("other", reply_to_json(REPLY))  # its digest is d1
    cache.write("odd", b'{"text": 1}')
    cache.write("list", b"[]")
    cache.write("d1", reply_to_json(REPLY))
    assert [cache.get(name) for name in ("torn", "other", "odd", "list")] == [None] * 4
    monkeypatch.setattr(kept, "MAX_BYTES", 50)  # larger than is read
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
    cache.write("d1", reply_to_json(REPLY))
    cache.close()
    with sqlite3.connect(cache.path) as connection:
        connection.execute("PRAGMA application_id = 99")
    connection.close()
    with pytest.raises(ConfigError, match="version"):
        cache.get("d1")


def test_json_of_replies_is_checked() -> None:
    assert reply_from_json(reply_to_json(replace(REPLY, usage=None))).usage is None
    for bad in (b"", b"{}", b"[1]", b"3", b'{"usage": 1}', b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match="validation error"):
            reply_from_json(bad)
