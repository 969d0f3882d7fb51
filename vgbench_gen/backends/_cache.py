"""Replies on disk, under the digest of everything that was asked."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from vgbench_gen.backends.base import Reply
from vgbench_gen.core.kept import KeptTexts

_REPLY = TypeAdapter(Reply)
_OWNER = 0x56474253  # "VGBS"


def reply_to_json(reply: Reply) -> bytes:
    """All of a reply as one line of JSON."""
    return _REPLY.dump_json(reply)


def reply_from_json(text: bytes) -> Reply:
    """The reply behind `reply_to_json`.

    Raises:
        ValueError: it is none.
    """
    return _REPLY.validate_json(text)


class ReplyCache(KeptTexts):
    """A file of replies.

    Args:
        path: made when first used, with its folder.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _OWNER, "replies")

    def get(self, digest: str) -> Reply | None:
        """The reply kept under this digest; None where there is none or the row is damaged.

        Raises:
            ConfigError: as `KeptTexts.read`.
        """
        try:
            reply = reply_from_json(self.read(digest) or b"")
        except ValidationError:
            return None
        return reply if reply.request_digest == digest else None
