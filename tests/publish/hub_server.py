"""A Hub on loopback, in memory: the endpoints that `huggingface_hub` and `datasets` use for datasets, and faults.

Large files take the classic route (`HF_HUB_DISABLE_XET=1`): a batch request, then a PUT of each object. Addresses of
large files name another host than the rest (localhost against 127.0.0.1), because the client takes a redirect to the
same host for one within the Hub.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.publish.hub_state import Blob, Fault, Files, Hub, Repo

__all__ = ["TOKEN", "Fault", "Hub", "hub_server"]

TOKEN = "hf_" + "Secret0Loopback" * 2
OWNER = "lab"
LARGE_BYTES = 10_000_000


@contextmanager
def hub_server() -> Iterator[Hub]:
    """The server, running in threads of this process."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Refused(Exception):
    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self) -> None:
        split = urlsplit(self.path)
        self.where, self.query = unquote(split.path), parse_qs(split.query)
        request = f"{self.command} {self.where}"
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.hub.lock:
            self.hub.asked[request] += 1
        self.kind = self.hub.fault(request)
        if self.kind == "cut":
            self._hang_up()
            return
        try:
            if isinstance(self.kind, int):
                raise Refused(self.kind, message="trouble")
            self._work(body)
        except (
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # of this server; a traceback in a thread is seen by nobody
            self._send(501, {"error": repr(error)})
        except Refused as refused:
            headers = {"X-Error-Code": refused.code} if refused.code else {}
            self._send(refused.status, {"error": refused.message}, headers | {"X-Error-Message": refused.message})

    def _work(self, body: bytes) -> None:
        for pattern, method in ROUTES:
            if (match := re.fullmatch(pattern, f"{self.command} {self.where}")) is not None:
                getattr(self, method)(body, **match.groupdict())
                return
        raise Refused(404, message=f"no route {self.command} {self.where}")

    def _send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        if self.kind == "lost":
            self._hang_up()
            return
        self.send_response(status)
        kind = "application/octet-stream" if isinstance(value, bytes) else "application/json"
        known = {"Content-Type": kind, "Content-Length": str(len(data))}
        for name, text in (known | (headers or {})).items():
            self.send_header(name, text)
        self.end_headers()
        if self.kind == "half":
            self.wfile.write(data[: len(data) // 2])
            self._hang_up()
        elif self.command != "HEAD":
            self.wfile.write(data)

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(2)

    def _signed_in(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _writer(self) -> None:
        if not self._signed_in():
            raise Refused(401, message="Invalid username or password.")

    def _repo(self, repo: str) -> Repo:
        found = self.hub.repos.get(repo)
        if found is None or (found.private and not self._signed_in()):
            raise Refused(404 if self._signed_in() else 401, "RepoNotFound", "Repository not found")
        return found

    def _at(self, repo: str, revision: str) -> tuple[str, Files]:
        found = self._repo(repo).at(revision)
        if found is None:
            raise Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return found

    def whoami(self, body: bytes) -> None:
        self._writer()
        self._send(200, {"type": "user", "name": OWNER, "orgs": [], "auth": {"type": "access_token"}})

    def create(self, body: bytes) -> None:
        self._writer()
        asked = json.loads(body)
        name = f"{asked.get('organization') or OWNER}/{asked['name']}"
        if not name.startswith(f"{OWNER}/"):
            raise Refused(403, message="You don't have the rights to create a dataset there")
        url = {"url": f"{self.hub.url}/datasets/{name}", "name": name}
        if name in self.hub.repos:
            self._send(409, {"error": "You already created this dataset repo", **url})
            return
        private = asked.get("private") or asked.get("visibility") == "private"
        self.hub.repos[name] = repo = Repo(bool(private))
        repo.add("main", {".gitattributes": Blob(b"*.parquet filter=lfs\n", False)})
        self._send(200, url)

    def preupload(self, body: bytes, repo: str, revision: str) -> None:
        self._writer()
        _, files = self._at(repo, revision)
        told = []
        for file in json.loads(body)["files"]:
            large = file["path"].endswith((".parquet", ".jpg")) or file["size"] > LARGE_BYTES
            known = files.get(file["path"])
            mode = "lfs" if large else "regular"
            told.append(
                {"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": known.oid if known else None}
            )
        self._send(200, {"files": told})

    def batch(self, body: bytes, repo: str) -> None:
        self._writer()
        self._repo(repo)
        objects = []
        for each in json.loads(body)["objects"]:
            target = {"href": f"http://localhost:{self.hub.port}/lfs/{each['oid']}"}
            actions = {} if each["oid"] in self.hub.stored else {"actions": {"upload": target}}
            objects.append({"oid": each["oid"], "size": each["size"], **actions})
        self._send(200, {"transfer": "basic", "objects": objects})

    def put_large(self, body: bytes, oid: str) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            raise Refused(400, message="other bytes than announced")
        self.hub.stored[oid] = body
        self._send(200, {})

    def get_large(self, body: bytes, oid: str) -> None:
        self._range(self.hub.stored[oid], {})

    def commit(self, body: bytes, repo: str, revision: str) -> None:
        self._writer()
        head, files = self._at(repo, revision)
        files, message = dict(files), ""
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header" and value.get("parentCommit") not in (None, head):
                raise Refused(412, message="A commit has happened since. Please refresh and try again.")
            if line["key"] == "header":
                message = value.get("description", "")
            if line["key"] == "file":
                files[value["path"]] = Blob(b64decode(value["content"]), False)
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.stored:
                    raise Refused(400, message=f"no object {value['oid']}")
                files[value["path"]] = Blob(self.hub.stored[value["oid"]], True)
            elif line["key"] == "deletedFile":
                del files[value["path"]]
            elif line["key"] == "deletedFolder":
                files = {name: blob for name, blob in files.items() if not name.startswith(value["path"])}
        found = self._repo(repo)
        proposal = bool(self.query.get("create_pr"))
        ref = f"refs/pr/{1 + sum(ref.startswith('refs/pr/') for ref in found.refs)}" if proposal else revision
        sha = found.add(ref, files, message)
        url = f"{self.hub.url}/datasets/{repo}"
        told = {"success": True, "commitOid": sha, "commitUrl": f"{url}/commit/{sha}"}
        self._send(200, told | ({"pullRequestUrl": f"{url}/discussions/{ref[-1]}"} if proposal else {}))

    def commits(self, body: bytes, repo: str, revision: str) -> None:
        found, (sha, _) = self._repo(repo), self._at(repo, revision)
        told = []
        while sha:
            about = {"title": "t", "message": found.messages[sha], "authors": [], "date": "2026-01-01T00:00:00.000Z"}
            told.append({"id": sha, **about})
            sha = found.parents[sha]
        self._send(200, told)

    def info(self, body: bytes, repo: str, revision: str = "main") -> None:
        sha, files = self._at(repo, revision)
        found = self._repo(repo)
        siblings = [{"rfilename": name} for name in sorted(files)]
        self._send(
            200,
            {"id": repo, "sha": sha, "private": found.private, "siblings": siblings, "tags": [], "downloads": 0},
        )

    def tree(self, body: bytes, repo: str, revision: str, path: str | None = None) -> None:
        _, files = self._at(repo, revision)
        path = (path or "").strip("/")
        names = [name for name in sorted(files) if not path or name.startswith(f"{path}/")]
        if path and not names:
            raise Refused(404, "EntryNotFound", "Entry not found")
        entries = [self._entry(name, files[name]) for name in names]
        folders = sorted({name.rpartition("/")[0] for name in names} - {"", path})
        if not self.query.get("recursive"):
            depth = path.count("/") + bool(path)
            folders = sorted({"/".join(name.split("/")[: depth + 1]) for name in names if name.count("/") > depth})
            entries = [entry for entry in entries if entry["path"].count("/") == depth]
        self._send(
            200, [*({"type": "directory", "path": each, "oid": "0" * 40, "size": 0} for each in folders), *entries]
        )

    def paths(self, body: bytes, repo: str, revision: str) -> None:
        _, files = self._at(repo, revision)
        wanted = json.loads(body)["paths"]
        found = [self._entry(name, files[name]) for name in wanted if name in files]
        folders = [name for name in wanted if any(each.startswith(f"{name.rstrip('/')}/") for each in files)]
        self._send(
            200, [*found, *({"type": "directory", "path": each, "oid": "0" * 40, "size": 0} for each in folders)]
        )

    @staticmethod
    def _entry(name: str, blob: Blob) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "path": name, "size": len(blob.data), "oid": blob.git}
        large = {"oid": blob.sha256, "size": len(blob.data), "pointerSize": 130}
        return entry | ({"lfs": large} if blob.large else {})

    def refs(self, body: bytes, repo: str) -> None:
        found = self._repo(repo)
        branches = [
            {"name": name, "ref": f"refs/heads/{name}", "targetCommit": sha}
            for name, sha in found.refs.items()
            if not name.startswith("refs/")
        ]
        self._send(200, {"branches": branches, "tags": [], "converts": []})

    def branch(self, body: bytes, repo: str, revision: str) -> None:
        self._writer()
        found = self._repo(repo)
        if revision in found.refs:
            raise Refused(409, message="Reference already exists")
        found.refs[revision] = found.refs["main"]
        self._send(200, {})

    def yaml(self, body: bytes) -> None:
        import yaml

        content = json.loads(body)["content"]
        front = yaml.safe_load(content.split("---\n")[1])
        if not isinstance(front.get("configs"), list):
            raise Refused(400, message="configs")
        self._send(200, {"errors": [], "warnings": []})

    def resolve(self, body: bytes, repo: str, revision: str, path: str) -> None:
        sha, files = self._at(repo, revision)
        if path not in files:
            raise Refused(404, "EntryNotFound", "Entry not found")
        blob = files[path]
        known = {"X-Repo-Commit": sha, "ETag": f'"{blob.git}"', "Accept-Ranges": "bytes"}
        if blob.large:
            known |= {"X-Linked-Size": str(len(blob.data)), "X-Linked-ETag": f'"{blob.sha256}"'}
            self._send(302, b"", known | {"Location": f"http://localhost:{self.hub.port}/lfs/{quote(blob.sha256)}"})
            return
        self._range(blob.data, known)

    def _range(self, data: bytes, headers: dict[str, str]) -> None:
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match is None:
            self._send(200, data, headers)
            return
        first, last = match.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        told = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
        if start >= len(data):
            self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        else:
            self._send(206, data[start : end + 1], headers | told)


_REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
_REV = r"(?P<revision>refs/pr/\d+|[^/]+)"
ROUTES = [
    (r"GET /api/whoami-v2", "whoami"),
    (r"POST /api/repos/create", "create"),
    (r"POST /api/validate-yaml", "yaml"),
    (rf"POST /api/datasets/{_REPO}/preupload/{_REV}", "preupload"),
    (rf"POST /api/datasets/{_REPO}/commit/{_REV}", "commit"),
    (rf"POST /api/datasets/{_REPO}/paths-info/{_REV}", "paths"),
    (rf"POST /api/datasets/{_REPO}/branch/{_REV}", "branch"),
    (rf"GET /api/datasets/{_REPO}/refs", "refs"),
    (rf"GET /api/datasets/{_REPO}/commits/{_REV}", "commits"),
    (rf"GET /api/datasets/{_REPO}/tree/{_REV}(?P<path>/.*)?", "tree"),
    (rf"GET /api/datasets/{_REPO}/revision/{_REV}", "info"),
    (rf"GET /api/datasets/{_REPO}", "info"),
    (rf"POST /datasets/{_REPO}\.git/info/lfs/objects/batch", "batch"),
    (rf"(?:GET|HEAD) /datasets/{_REPO}/resolve/{_REV}/(?P<path>.+)", "resolve"),
    (r"PUT /lfs/(?P<oid>[0-9a-f]{64})", "put_large"),
    (r"(?:GET|HEAD) /lfs/(?P<oid>[0-9a-f]{64})", "get_large"),
]
