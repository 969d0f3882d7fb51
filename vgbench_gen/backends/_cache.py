"""Replies on disk, under the digest of the whole request."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from vgbench_gen.backends.base import Reply
from vgbench_gen.core.kept import KeptTexts

_REPLY = TypeAdapter(Reply)
_OWNER = 0x56474253  # the SQLite application id of these files ("VGBS")


def reply_to_json(reply: Reply) -> bytes:
    """A reply as one line of JSON."""
    return _REPLY.dump_json(reply)


def reply_from_json(text: bytes) -> Reply:
    """The reply of a line that `reply_to_json` wrote.

    Raises:
        ValueError: the text is no such line.
    """
    return _REPLY.validate_json(text)


class ReplyCache(KeptTexts):
    """A file of replies, created with its folder on first use. Errors are those of `KeptTexts`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _OWNER, "replies")

    def get(self, digest: str) -> Reply | None:
        """The reply kept under this digest; None if there is none or the row is damaged."""
        try:
            reply = reply_from_json(self.read(digest) or b"")
        except ValidationError:
            return None
        return reply if reply.request_digest == digest else None
