"""What a Hub on loopback knows: repositories, their commits and files, and the faults that are to happen."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from dataclasses import dataclass, field

Files = dict[str, "Blob"]


@dataclass(frozen=True)
class Blob:
    data: bytes
    large: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def git(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.data) + self.data).hexdigest()

    @property
    def oid(self) -> str:
        return self.sha256 if self.large else self.git


@dataclass
class Repo:
    private: bool
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Files] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)

    def add(self, ref: str, files: Files, message: str = "") -> str:
        text = json.dumps([len(self.history), ref, sorted((name, blob.oid) for name, blob in files.items())])
        sha = hashlib.sha1(text.encode()).hexdigest()
        self.commits[sha], self.messages[sha], self.parents[sha] = files, message, self.refs.get(ref, "")
        self.refs[ref] = sha
        self.history.append(sha)
        return sha

    def at(self, revision: str) -> tuple[str, Files] | None:
        sha = self.refs.get(revision, revision)
        return (sha, self.commits[sha]) if sha in self.commits else None


@dataclass
class Fault:
    """What happens to the next `times` requests whose "METHOD path" matches.

    kind: a status; "cut" closes the connection unanswered, "lost" does so after the work was done, "half" after half
    of the body.
    """

    pattern: str
    kind: int | str
    times: int = 1


@dataclass
class Hub:
    """The state of the server. asked: "METHOD path" -> requests. stored: digest -> bytes of large files."""

    repos: dict[str, Repo] = field(default_factory=dict)
    stored: dict[str, bytes] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fault(self, request: str) -> int | str | None:
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.pattern, request):
                    fault.times -= 1
                    return fault.kind
        return None

    def count(self, pattern: str) -> int:
        return sum(number for request, number in self.asked.items() if re.search(pattern, request))
