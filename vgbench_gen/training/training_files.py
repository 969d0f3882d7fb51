"""Rows of training files in any of the common layouts: JSON lines, JSON, parquet, and shards of tar files.

A row is read as far as a trainer looks at it: its turns, its marks for pictures, its pictures, its answer.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from vgbench_gen.core.json_text import parse_json
from vgbench_gen.store.files import dataset_error, open_data
from vgbench_gen.store.shards import iterate_rows

MARK = "<image>"
_STRAY = re.compile(r"<(?:video|audio)>")
_ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "function_call": "tool", "observation": "tool"}
_QUESTIONS, _ANSWERS = ("prompt", "problem", "question", "query"), ("completion", "answer", "response", "solution")
_MEMBER_MAX_BYTES, _LINE_MAX_BYTES = 64_000_000, 16_000_000
_SUFFIXES = (".jsonl", ".json", ".parquet", ".tar")
_Member = tuple[Path, int, int]
"""Shard, and where in it the bytes of a file begin and how many they are."""


@dataclass(frozen=True, slots=True)
class TrainingPicture:
    """A picture of a row: the bytes, or a path as the row writes it."""

    path: str = ""
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One row of a training file."""

    place: str
    """Where it stands: "train.jsonl, row 3"."""
    id: str
    record: Mapping[str, Any]
    """The row as it was read; empty where it cannot be read."""
    turns: tuple[tuple[str, str], ...] = ()
    """(role, text) of each turn in order, without pictures."""
    layout: str = ""
    """How pictures stand in the row: "marks" in the text, "parts" of the messages that hold them, "places" in the
    messages for those of a column, a "column" alone, or parts under another key than `image` ("url"); "" for none."""
    marks: int = 0
    """Places of pictures in the prompt: marks in the text of users and tools, or parts of a typed content."""
    pictures: tuple[TrainingPicture, ...] = ()
    faults: tuple[tuple[str, str], ...] = field(default=())
    """(name of a defect, what was found) where the layout itself is wrong."""

    @property
    def prompt(self) -> str:
        """All text before the answer."""
        turns = self.turns[:-1] if self.turns and self.turns[-1][0] == "assistant" else self.turns
        return "\n".join(text for _, text in turns)

    @property
    def answer(self) -> str:
        """The last assistant's turn; "" for none."""
        return self.turns[-1][1] if self.turns and self.turns[-1][0] == "assistant" else ""


def list_files(path: Path) -> list[Path]:
    """The files with rows at a path: itself, or those of a folder that are no settings.

    Raises:
        DatasetError: there are none.
    """
    if path.is_dir():
        found = sorted(
            p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file() and not _is_settings(p, path)
        )
        rows = [p for p in found if p.suffix != ".json"] or found
    else:
        rows = [path]
    if not rows or rows[0].suffix not in _SUFFIXES:
        remedy = "Give the file that the trainer reads, or the folder of an export."
        raise dataset_error(path, "no training file", f"a file that ends in {', '.join(_SUFFIXES)}", remedy)
    return rows


def _is_settings(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return hidden or path.name in ("export.json", "dataset_info.json")


def read_samples(path: Path) -> Iterator[Sample]:
    """Read the rows of a file one by one; a row that cannot be read has a fault.

    Raises:
        DatasetError: the file itself cannot be read.
    """
    for number, (record, fault) in enumerate(_read_records(path), start=1):
        place = f"{path.name}, row {number}"
        if record is None:
            yield Sample(place, "", {}, faults=(("unreadable", fault),))
        else:
            yield parse_sample(record, place)


def _read_records(path: Path) -> Iterator[tuple[dict[str, Any] | None, str]]:
    """(row, "") or (None, why it cannot be read)."""
    if path.suffix == ".parquet":
        yield from ((row, "") for row in iterate_rows([path]))
    elif path.suffix == ".tar":
        yield from _read_shard(path)
    elif path.suffix == ".jsonl":
        with open_data(path, "JSON lines", "Give the file that the trainer reads.") as file:
            while line := file.readline(_LINE_MAX_BYTES + 1):
                if line.strip():
                    yield _parse_record(line)
    else:
        with open_data(path, "a JSON list", "Give the file that the trainer reads.") as file:
            try:
                rows = parse_json(file.read(256_000_001))
            except ValueError as error:
                raise dataset_error(path, f"no JSON ({error})", "a list of rows", "Write it anew.") from None
        for row in rows if isinstance(rows, list) else [rows]:
            yield (row, "") if isinstance(row, dict) else (None, f"a {type(row).__name__}, no object")


def _parse_record(line: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        found = parse_json(line, most_bytes=_LINE_MAX_BYTES)
    except ValueError as error:
        return None, f"no JSON ({str(error)[:100]})"
    return (found, "") if isinstance(found, dict) else (None, f"a {type(found).__name__}, no object")


def _read_shard(path: Path) -> Iterator[tuple[dict[str, Any] | None, str]]:
    """Rows of a tar shard: members that share a name up to its first dot, `KEY.json` with `KEY.0.jpg`, ...

    A message may name a picture of another row, which is then in a shard of the same folder.
    """
    own, stored = _index_members(path), dict[str, _Member]()
    for key, members in groupby(own, key=lambda name: name.partition(".")[0]):
        names = sorted(members)
        record, fault = _parse_record(_read_member(own[f"{key}.json"])) if f"{key}.json" in names else (None, "no row")
        if record is None:
            yield None, f"{key}.json: {fault}"
            continue
        contents = [content for _, content in _list_turns(record) if isinstance(content, list)]
        named = [picture.path for content in contents for picture in _read_parts(content)[1]]
        if not stored and not own.keys() >= set(filter(None, named)):
            stored = {
                name: one for file in sorted(path.parent.glob("*.tar")) for name, one in _index_members(file).items()
            }
        shown = named if any(named) else [name for name in names if name != f"{key}.json"]
        found = [own.get(name) or stored.get(name) for name in shown]
        images = [_read_member(one) if one else name for one, name in zip(found, shown, strict=True)]
        yield record | {"images": images, "__key__": key}, ""


def _index_members(path: Path) -> dict[str, _Member]:
    """Name without folders -> place of the files in a shard, in their order."""
    try:
        with open_data(path, "a tar shard", "Write it anew.") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            return {one.name.rpartition("/")[2]: (path, one.offset_data, one.size) for one in tar if one.isfile()}
    except tarfile.TarError as error:
        raise dataset_error(path, f"a damaged tar file ({error})", "a whole one", "Write it anew.") from error


def _read_member(member: _Member) -> bytes:
    path, offset, size = member
    with open_data(path, "a tar shard", "Write it anew.") as file:
        file.seek(offset)
        return file.read(min(size, _MEMBER_MAX_BYTES))


def parse_sample(record: Mapping[str, Any], place: str) -> Sample:
    """Read a row in whichever layout it is: messages, conversations, a prompt with a completion, a problem."""
    faults: list[tuple[str, str]] = []
    turns: list[tuple[str, str]] = []
    marks, typed, keys = 0, list[TrainingPicture](), set[str]()
    is_typed = False
    for role, content in _list_turns(record):
        if isinstance(content, list):
            text, found, named = _read_parts(content)
            typed, is_typed, keys = typed + found, True, keys | named
        else:
            text = content if isinstance(content, str) else ""
            is_marked = role in ("user", "tool")
            marks += text.count(MARK) if is_marked else 0
            if not isinstance(content, str):
                faults.append(("not_text", f"a turn of {_TYPE_NAMES.get(type(content), 'null')}"))
            elif stray := _STRAY.search(text if is_marked else text.replace(MARK, "<video>")):
                faults.append(("stray_mark", f"{stray[0] if is_marked else MARK} in a turn of {role}"))
        turns.append((role, text))
    listed, fault = _list_pictures(record)
    faults += [fault] if fault else []
    if not turns:
        faults.append(("no_question", "no turns"))
    held = [picture for picture in typed if picture.path or picture.data is not None]
    marks = marks if not is_typed else len(typed)
    pictures = listed if listed or not held else held
    layout = "marks" if (listed or marks) and not is_typed else ""
    if is_typed and (typed or listed):
        layout = "places" if not held else "both" if listed else "parts" if keys == {"image"} else "url"
        layout = layout if typed else "column"
    return Sample(place, _find_id(record), record, tuple(turns), layout, marks, tuple(pictures), tuple(faults))


def _find_id(record: Mapping[str, Any]) -> str:
    extra = record.get("extra_info")
    found = record.get("id") or (extra.get("id") if isinstance(extra, Mapping) else None) or record.get("__key__")
    return str(found or "")


def _list_turns(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(role, content) of a row's turns; tools come first, where chat templates put them."""
    if isinstance(tools := record.get("tools"), str):
        yield "system", tools
    prompt = next((record[name] for name in ("messages", "conversations", *_QUESTIONS) if record.get(name)), None)
    if isinstance(prompt, list):
        for turn in prompt:
            if isinstance(turn, Mapping):
                role = str(turn.get("role", turn.get("from", "")))
                yield _ROLES.get(role, role), turn.get("content", turn.get("value"))
    elif isinstance(prompt, str):
        yield "user", prompt
    if "messages" in record or "conversations" in record:
        return
    names = _ANSWERS if "problem" in record else _ANSWERS[:-1]  # elsewhere a solution is for the reward alone
    answer = next((record[name] for name in names if record.get(name)), None)
    reward = record.get("reward_model")
    if isinstance(answer, list):
        yield from (("assistant", turn.get("content")) for turn in answer if isinstance(turn, Mapping))
    elif answer is not None or isinstance(reward, Mapping):
        yield "assistant", str(answer or (reward or {}).get("ground_truth") or "")


def _read_parts(content: list[Any]) -> tuple[str, list[TrainingPicture], set[str]]:
    """(text, a picture for each place of one, the keys under which pictures stand) of a turn of typed parts."""
    texts, pictures, keys = list[str](), list[TrainingPicture](), set[str]()
    for part in content:
        if not isinstance(part, Mapping):
            continue
        if part.get("type") in ("image", "image_url"):
            key = next((name for name in ("image", "path", "image_url", "url") if part.get(name)), "")
            keys.add(key)
            pictures.append(_read_picture(part[key]) if key else TrainingPicture())
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "".join(texts), pictures, keys


def _list_pictures(record: Mapping[str, Any]) -> tuple[list[TrainingPicture], tuple[str, str] | None]:
    """The pictures in a row's own column, and what is wrong with the column."""
    name = next((name for name in ("images", "image") if record.get(name) is not None), "")
    found = record.get(name)
    if not name:
        return [], None
    if not isinstance(found, list):
        return [_read_picture(found)], ("no_list", f"{name} is {_TYPE_NAMES.get(type(found), 'an object')}")
    return [_read_picture(one) for one in found], None


def _read_picture(value: Any) -> TrainingPicture:
    if isinstance(value, bytes):
        return TrainingPicture(data=value)
    if isinstance(value, Mapping):
        data = value.get("bytes")
        path = next((value[key] for key in ("path", "url", "image") if isinstance(value.get(key), str)), "")
        return TrainingPicture(path, data if isinstance(data, bytes) else None)
    return TrainingPicture(value if isinstance(value, str) else "")


def note_types(value: Any, types: dict[str, dict[str, None]], path: str = "") -> None:
    """Note the type of a row's columns and of all that is inside them; nothing of null, which fits every type.

    types: column ("messages[].content") -> its types; is filled.
    """
    if value is None:
        return
    kind = _TYPE_NAMES.get(type(value), "an object")
    if path:
        types.setdefault(path, {})[kind] = None
    if type(value) is dict:
        for key, inner in value.items():
            note_types(inner, types, f"{path}.{key}" if path else key)
    elif type(value) is list:
        for inner in value:
            note_types(inner, types, f"{path}[]")


_TYPE_NAMES = {str: "text", bytes: "bytes", bool: "true or false", int: "a number", float: "a number", list: "a list"}
