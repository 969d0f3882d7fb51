"""Damage to what a kind of file has besides bytes: values of JSON and TOML, cells of parquet, members of archives."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.plain import DEEP, NAMES, NUMBERS, TEXT, Damage, Rng, choose


def _list_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a tree of JSON, not more than some thousands of them."""
    found = [path]
    if isinstance(value, dict | list):
        pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value[:200]))
        for key, child in pairs:
            found += _list_places(child, (*path, key))
    return found


def swap_value(tree: Any, rng: Rng) -> Any:
    """The tree with one value of another type, size or name, missing, or doubled."""
    *way, last = choose(rng, _list_places(tree)) or (None,)
    other: Any = choose(rng, (None, [], {}, "", "text", 0, -1, 0.5, True, 1.7e308, float("nan"), float("inf"), 10**4999,
                              10**30, [[]], {"": {}}, [1, 1.7e308], "x" * 100_000, [0] * 100_000, *NAMES))  # fmt: skip
    if last is None:
        return other
    holder = tree
    for key in way:
        holder = holder[key]
    how = rng.random()
    if how < 0.7:
        holder[last] = other
    elif how < 0.8:
        holder[last] = [holder[last]]
    elif how < 0.9:
        del holder[last]
    elif isinstance(holder, dict):
        holder[choose(rng, NAMES)] = holder.pop(last)
    else:
        holder.append(holder[last])
    return tree


def change_json(data: bytes, rng: Rng) -> bytes:
    """One value of a JSON text, or of one line of it, changed; other text is damaged as text."""
    lines = [data] if _parse(data) is not None else data.splitlines(keepends=True)
    at = int(rng.integers(len(lines))) if lines else 0
    tree = _parse(lines[at]) if lines else None
    if tree is None:
        return choose(rng, TEXT)(data, rng)
    if rng.random() < 0.1:
        key = choose(rng, (b"[", b'{"a":'))
        lines[at] = key * DEEP + choose(rng, (b"", (b"]" if key == b"[" else b"1}") * DEEP))
    else:
        lines[at] = _dump(swap_value(tree, rng)) + (b"\n" if len(lines) > 1 else b"")
    return b"".join(lines)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _dump(tree: Any) -> bytes:
    """JSON, also of integers with more digits than Python writes at once."""
    if not _holds_long(tree):
        return json.dumps(tree).encode()
    mark = int("98" * 20)
    return json.dumps(_replace_long(tree, mark)).replace(str(mark), "9" * 5000).encode()


def _holds_long(tree: Any) -> bool:
    return any(type(_reach(tree, way)) is int and abs(_reach(tree, way)) > 10**100 for way in _list_places(tree))


def _replace_long(tree: Any, value: int) -> Any:
    if isinstance(tree, dict):
        return {key: _replace_long(child, value) for key, child in tree.items()}
    if isinstance(tree, list):
        return [_replace_long(child, value) for child in tree]
    return value if type(tree) is int and abs(tree) > 10**100 else tree


def _reach(tree: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        tree = tree[key]
    return tree


def change_toml(data: bytes, rng: Rng) -> bytes:
    """The value of one key becomes another, or the key or the table has another name."""
    lines = data.decode("utf-8", "replace").splitlines()
    places = [k for k, line in enumerate(lines) if "=" in line or line.startswith("[")]
    if not places:
        return data + b"a = 1"
    at = choose(rng, places)
    key, equals, _ = lines[at].partition("=")
    if equals and rng.random() < 0.85:
        plain = (
            "[]",
            "{}",
            '"text"',
            "true",
            "nan",
            "-inf",
            "1e400",
            "1979-05-27",
            "'''",
            "[" * 3000,
            '"\\ud800"',
            "{a.b.c=1}",
        )
        value = choose(rng, (*plain, *NUMBERS, json.dumps("x" * 100_000), "[" * 300 + "]" * 300))
        lines[at] = f"{key}= {value}"
    else:
        lines[at] = lines[at].replace("[", "[[", 1) if not equals else f"{choose(rng, ('a.b', 'ß', '', 'seed'))} = 1"
    return "\n".join(lines).encode()


def change_parquet(data: bytes, rng: Rng) -> bytes:
    """One column dropped, renamed, of another type, or with a cell that no row of ours has."""
    table = pq.read_table(pa.BufferReader(data))
    place = int(rng.integers(table.num_columns))
    name, kind = table.column_names[place], table.schema.field(place).type
    how = rng.random()
    if how < 0.1:
        changed = table.drop_columns([name])
    elif how < 0.15:
        changed = table.rename_columns([choose(rng, NAMES[:4]) if n == name else n for n in table.column_names])
    elif how < 0.25:
        other = choose(
            rng, ([None] * len(table), list(range(len(table))), ["text"] * len(table), [b"\xff"] * len(table))
        )
        changed = table.set_column(place, name, pa.array(other))
    elif how < 0.3:
        changed = choose(rng, (table.slice(0, 0), pa.concat_tables([table, table]), table.slice(1)))
    else:
        values = table[name].to_pylist()
        values[int(rng.integers(len(values)))] = _make_cell(kind, rng)
        changed = table.set_column(place, table.schema.field(place), _make_column(values, kind, rng))
    stream = io.BytesIO()
    pq.write_table(changed, stream)
    return stream.getvalue()


def _make_cell(kind: Any, rng: Rng) -> Any:
    if pa.types.is_string(kind):
        texts = (
            "",
            "{",
            "[1, 2]",
            "7",
            "null",
            '{"a": [[1e999]]}',
            "[" * DEEP,
            "text",
            "x" * 200_000,
            *NAMES[:6],
            *NUMBERS[:7],
        )
        return choose(rng, texts)
    if pa.types.is_binary(kind):
        return choose(rng, (b"", b"\xff" * 100, rng.bytes(1000), None))
    if pa.types.is_integer(kind):
        return choose(rng, (-1, 2 ** (kind.bit_width - 1) - 1, -(2 ** (kind.bit_width - 1)), 0, None))
    if pa.types.is_floating(kind):
        return choose(rng, (float("nan"), float("inf"), 1e308, -1.0, 0.0, None))
    if pa.types.is_list(kind):
        cell, times = _make_cell(kind.value_type, rng), choose(rng, (1, 3, 5000))
        # What the fuzzer itself takes counts as well, and long texts in thousands of copies are a gigabyte.
        return choose(rng, (None, [], [None], [cell] * (times if len(repr(cell)) < 10_000 else 3)))
    if pa.types.is_struct(kind):
        cells = {field.name: _make_cell(field.type, rng) for field in kind}
        return choose(rng, (None, cells))
    return None


def _make_column(values: list[Any], kind: Any, rng: Rng) -> Any:
    if pa.types.is_string(kind) and rng.random() < 0.15:
        raw = [None if value is None else str(value).encode("utf-8", "replace") + b"\xff\xfe" for value in values]
        return pa.array(raw, type=pa.binary()).view(pa.string())
    clean = json.loads(json.dumps(values).replace("\\ud800", "?")) if pa.types.is_string(kind) else values
    return pa.array(clean, type=kind)


def change_tar(data: bytes, rng: Rng) -> bytes:
    """One member with another name, kind, size or place; the checksum of its header is right again."""
    heads = [info.offset for info in tarfile.open(fileobj=io.BytesIO(data)).getmembers()]  # noqa: SIM115 - of bytes
    at = choose(rng, heads)
    head = bytearray(data[at : at + 512])
    how = rng.random()
    if how < 0.3:
        name = choose(rng, (b"../../precious", b"/etc/hostname", b"\xff\xfe", b"a" * 100, b"42898570/" + b"9" * 90))
        head[:100] = name[:100].ljust(100, b"\0")
    elif how < 0.6:
        sizes = (
            b"77777777777\0",
            b"\x80" + b"\xff" * 11,
            b"\x80\0\0\0\x80" + b"\0" * 7,
            b"\xff" * 12,
            b"0" * 11 + b"\0",
            b"zzz".ljust(12),
        )
        head[124:136] = choose(rng, sizes)
    elif how < 0.8:
        head[156:157] = choose(rng, (b"1", b"2", b"3", b"5", b"6", b"L", b"K", b"x", b"g", b"S", b"Z"))
        head[157:177] = b"../../precious".ljust(20, b"\0")
    else:
        record = b"5013 size=" + b"9" * 5002 + b"\n"
        pax = tarfile.TarInfo("pax").tobuf(tarfile.USTAR_FORMAT)
        extra = bytearray(pax)
        extra[156:157], extra[124:136] = b"x", b"%011o\0" % len(record)
        return data[:at] + _sign(extra) + record.ljust(-(-len(record) // 512) * 512, b"\0") + data[at:]
    return data[:at] + _sign(head) + data[at + 512 :]


BLANKS_MB = (300, 2000)
"""What a member of an archive unpacks to where it is packed to a thousandth."""


def change_eval(data: bytes, rng: Rng) -> bytes:
    """One member of an archive of JSON changed, missing, doubled, of another name, or packed to a thousandth."""
    with zipfile.ZipFile(io.BytesIO(data)) as found:
        if sum(info.file_size for info in found.infolist()) > 100_000_000:
            raise ValueError("damaged before, and more than the fuzzer may hold")
        members = [(info.filename, found.read(info)) for info in found.infolist()]
    at, how = int(rng.integers(len(members))), rng.random()
    name, held = members[at]
    if how < 0.7:
        members[at] = name, change_json(held, rng)
    elif how < 0.8:
        members[at : at + 1] = choose(rng, ([], [members[at]] * 2))
    elif how < 0.95:
        members[at] = choose(rng, (*NAMES[:7], members[0][0])), held
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as out:
        for k, (name, held) in enumerate(members):
            with out.open(name, "w") as member:
                member.write(held)
                for _ in range(choose(rng, BLANKS_MB) if how >= 0.95 and k == at else 0):
                    member.write(b" " * (1 << 20))
    return stream.getvalue()


def _sign(head: bytearray) -> bytes:
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


OWN: dict[str, Damage] = {".json": change_json, ".jsonl": change_json, ".toml": change_toml, ".tar": change_tar,
                          ".parquet": change_parquet, ".eval": change_eval, "metadata": change_json}  # fmt: skip
