"""Which files FFmpeg may open: it takes playlists for videos too, and reads whatever files and addresses they name."""

from __future__ import annotations

# As FFmpeg calls its readers of these containers; none of them opens a second file.
READERS = "matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,avi"
OPTIONS = {"format_whitelist": READERS, "protocol_whitelist": "file"}
HEAD_BYTES = 12


def is_video(head: bytes) -> bool:
    """Whether a file that begins with these `HEAD_BYTES` bytes is a video in Matroska, MP4 or AVI."""
    return (
        head[:4] == b"\x1aE\xdf\xa3"
        or head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")
        or (head[:4] == b"RIFF" and head[8:12] == b"AVI ")
    )
