"""What is saved in the place of a file is recognised, and no file is taken for it."""

from __future__ import annotations

import json
import struct

import pytest

from vgbench_gen.core.stand_ins import describe_stand_in

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"6" * 64 + b"\nsize 146946961\n"
STAND_INS = [
    (b"", "an empty file"),
    (b"\0" * 4096, "zeros"),
    (LFS, "Git LFS pointer"),
    (b"/annex/objects/SHA256E-s12--66.ply\n", "git-annex pointer"),
    (b"<!DOCTYPE html><html><head><title>404 Not Found</title></head></html>   ", "a web page (404 Not Found)"),
    (b"\xef\xbb\xbf\r\n <!-- portal -->\n<HTML lang='en'>\n<TITLE>\n Sign in \n</TITLE>", "a web page (Sign in)"),
    (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x"><html>', "a web page"),
    (b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Key>a.tar</Key></Error>', "(NoSuchKey)"),
    (b'<d:error xmlns:d="DAV:"><s:message>No</s:message></d:error>', "the error of a server"),
    (b'{"error": "Repository not found"}', "Repository not found"),
    (b'{"timestamp": 1, "status": 403, "message": "Bad credentials"}\n', "the error of a server"),
    (b'{"detail": {"code": 401}}', "the error of a server"),
    (b"404: Not Found", "the error of a server (404: Not Found)"),
    (b"Entry not found", "the error of a server"),
    (b"Access denied. Please sign in.\n", "the error of a server"),
]
FILES = [
    *(
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\xff\xd8\xff\xe0",
        b"PAR1",
        b"PK\x03\x04",
        b"ply\nformat ascii 1.0\n",
        b"P5 4 4",
    ),
    struct.pack("<IQ", 4, 12),
    struct.pack("<I", 0) + b"\x01" * 20,
    b"404 1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1\n",
    b"# Camera list\n1 PINHOLE 640 480 500 500 320 240\n",
    b"axisAlignment = 1 0 0 0\ncolorHeight = 968\n",
    b"0 " * 16,
    b"404\n",
    b"id,question\n1,What is not found here?\n",
    b"found\n",
    json.dumps({"sceneId": "scene0000_00", "segIndices": [1, 2]}).encode(),
    json.dumps({"error": None, "response": "B"}).encode(),
    b'{"id": 1, "error": "", "response": "A"}\n{"error": "rate limit"}\n',
    b'[{"error": "x"}]',
    b"<annotation><name>1</name></annotation>",
]


@pytest.mark.parametrize(("head", "named"), STAND_INS)
def test_a_stand_in_is_named_with_what_to_do(head: bytes, named: str) -> None:
    found = describe_stand_in(head)
    assert found is not None
    assert named in found[0]
    assert found[1].endswith(".")
    assert ("git lfs pull" in found[1]) == (head == LFS)


@pytest.mark.parametrize("head", FILES)
def test_a_file_is_none(head: bytes) -> None:
    assert describe_stand_in(head) is None
