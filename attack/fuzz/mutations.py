"""Mutations of valid files, drawn from a `random.Random`: of bytes, of JSON, of arrays."""

import json
import math
import zipfile
from pathlib import Path

import numpy as np

HUGE = "9" * 400
WORDS = [
    b"",
    b"-1",
    b"0",
    b"1e308",
    b"1e999",
    b"NaN",
    b"-Infinity",
    b"2147483648",
    b"9223372036854775808",
    HUGE.encode(),
    b"9" * 5000,
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\x1b]0;title\x07\x1b[2J",
    b"[/b][@a=b(]",
    b'"',
    b"'",
    b",",
    b"\n",
    b"\r",
    b";",
    b"\t",
    b"{",
    b"[" * 3000,
    b"$\\frac{",
    b"<script>",
    b"0001-01-01",
    b"99999-99-99T99:99",
    b"true",
    b"null",
    "\u202e\u2028".encode(),
]
VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    10**400,
    1.5,
    1e308,
    math.nan,
    math.inf,
    "",
    "a",
    "\x1b[2J\ud800",
    "[/b]",
    [],
    {},
    [[]],
    [None],
    [1, "a", {}],
    {"": []},
    {"a": {"b": [1]}},
]
DTYPES = ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "U3", "S2", "M8[s]", "V4"]
NUMBERS = [-1, 0, 1, 2, 255, 2**31 - 1, 2**31, 2**40, 2**63 - 1, -(2**63)]


def mutate_bytes(stream, content):
    """Change a few bytes, cut, repeat or insert a part."""
    content = bytearray(content)
    for _ in range(stream.choice((1, 1, 1, 2, 4, 16))):
        start = stream.randrange(len(content) + 1)
        end = min(len(content), start + int(2 ** stream.uniform(0, 8)))
        kind = stream.randrange(7)
        if kind == 0 and start < len(content):
            content[start] ^= 1 << stream.randrange(8)
        elif kind == 1 and start < len(content):
            content[start] = stream.choice((0, 1, 0x7F, 0x80, 0xFF, stream.randrange(256)))
        elif kind == 2:
            del content[start : start + 1 if stream.random() < 0.5 else end]
        elif kind == 3:
            content[start:start] = content[start:end] * stream.choice((1, 1, 50))
        elif kind == 4 and stream.random() < 0.3:
            del content[start:]
        elif kind == 5:
            content[start:start] = stream.choice(WORDS)
        else:
            _replace_token(stream, content)
    return bytes(content)


def _replace_token(stream, content):
    """Replace a number or word by another, so that text stays almost what it was."""
    if not content:
        return
    plain = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.-+"
    start = stream.randrange(len(content))
    end = start
    while start and content[start - 1] in plain:
        start -= 1
    while end < len(content) and content[end] in plain:
        end += 1
    content[start:end] = stream.choice(WORDS)


def mutate_json(stream, content):
    """Replace, remove, rename or swap values of a tree of lists and dictionaries."""
    content = json.loads(json.dumps(content))
    for _ in range(stream.choice((1, 1, 2, 5))):
        places = [*_places(content)]
        if not places:
            return content
        parent, key = stream.choice(places)
        kind = stream.randrange(6)
        if kind == 0:
            del parent[key]
        elif kind == 1:
            other, at = stream.choice(places)
            parent[key] = other[at]
        elif kind == 2 and isinstance(parent, dict):
            parent[stream.choice(("", "a", "\x1b[2J", "x" * 300))] = parent.pop(key)
        elif kind == 3 and isinstance(parent, list):
            parent.insert(key, stream.choice(VALUES))
        else:
            parent[key] = stream.choice(VALUES)
        try:  # no circles
            json.dumps(content)
        except (ValueError, RecursionError):
            parent[key] = None
    return content


def _places(content):
    if isinstance(content, dict | list):
        for key in list(content) if isinstance(content, dict) else range(len(content)):
            yield content, key
            yield from _places(content[key])


def mutate_array(stream, array):
    """Change the type, the shape or some values of an array."""
    array = np.array(array)
    kind = stream.randrange(6)
    with np.errstate(all="ignore"):
        if kind == 0:
            return _cast(array, stream.choice(DTYPES))
        if kind == 1:
            return array.reshape(-1)[: stream.randrange(array.size + 1)]
        if kind == 2:
            shapes = [(-1,), (-1, 1), (1, -1), (1, 1, -1), array.shape[::-1]]
            return array.reshape(stream.choice(shapes))
        if kind == 3:
            return np.array(stream.choice((0, 1.5, "a", [], [[]], [[[1]]])))
        if kind == 4 and array.dtype.kind in "f" and array.size:
            array.flat[stream.randrange(array.size)] = stream.choice(
                (np.nan, np.inf, -np.inf, 1e308, -1, 1e-320)
            )
        elif array.size and array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            fitting = [number for number in NUMBERS if info.min <= number <= info.max]
            array.flat[stream.randrange(array.size)] = stream.choice(fitting)
        elif array.size > 1:
            array = np.concatenate([array, array])
    return array


def _cast(array, dtype):
    try:
        return array.astype(dtype)
    except (TypeError, ValueError):
        return array


def mutate_zip(stream, path: Path):
    """Change the bytes of one member of a zip file, whose checksum is then right again."""
    with zipfile.ZipFile(path) as archive:
        members = {item.filename: archive.read(item) for item in archive.infolist()}
    name = stream.choice(sorted(members))
    members[name] = mutate_bytes(stream, members[name])
    if stream.random() < 0.1:
        del members[stream.choice(sorted(members))]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
