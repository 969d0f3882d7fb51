"""Upload to and download from the Hugging Face Hub through its own client.

Large files are uploaded first, where nobody sees them; a single commit then adds all files, so that readers see either
the old set or the new one. Files uploaded before an interruption are not sent again. The token is the client's
(`HF_TOKEN`, or the one saved by `hf auth login`) and appears in no message.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.importers.hub import find_status, iterate_causes
from vgbench_gen.publish.package import compute_sha256
from vgbench_gen.store.provenance import MANIFEST

ATTEMPTS = 4  # per call; the client itself tries each attempt five times
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_TYPE = "dataset"
_OURS = ("data/", "audit/", "assets/")  # folders from which files that are not in the set are deleted
_TRANSIENT = {408, 409, 425, 429, 500, 502, 503, 504}

T = TypeVar("T")


class HubError(VGBenchError):
    """The Hub refuses a request, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class Target:
    """The repository to publish to."""

    repo: str
    """"owner/name"."""
    revision: str = "main"
    """The branch; a missing one is created."""
    pull_request: bool = False
    """Whether to open a pull request instead of committing."""
    public: bool = False
    """Whether the repository may be public."""
    message: str = "Publish with vgbench-gen"
    """The commit message."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """The result of an upload."""

    commit: str
    """Hash of the commit."""
    url: str
    """Address of the commit or pull request."""
    changed: bool
    """Whether the upload made a new commit."""


def push(folder: Path, target: Target, say: Callable[[str], None] = lambda text: None) -> Pushed:
    """Upload a package as one commit that also deletes old files in its folders; other files in the repository stay.

    Args:
        folder: the package.
        say: called with a line of progress.

    Raises:
        ConfigError: no token, or the repository is public and `target.public` is not set.
        HubError: the Hub refuses or cannot be reached, or somebody else committed at the same time.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token

    if not get_token():
        raise ConfigError("found no token of the Hub; expected HF_TOKEN, or one saved by `hf auth login`.")
    api = HfApi()
    _ensure_repository(api, target)
    head = _read_head(api, target)
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    there = _retry(lambda: api.list_repo_files(target.repo, repo_type=_TYPE, revision=head), target)
    stale = [name for name in sorted(there) if name.startswith(_OURS) and name not in paths]
    # Identifies our commit: the manifest holds the digest of every other file.
    digest = compute_sha256(paths[MANIFEST])
    where: dict[str, Any] = {"repo_id": target.repo, "repo_type": _TYPE, "revision": target.revision}
    where["create_pr"] = target.pull_request
    adding = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=str(path)) for name, path in paths.items()]
    say(f"uploading to {target.repo} those of {len(paths)} files that it lacks")
    _retry(lambda: api.preupload_lfs_files(additions=adding, free_memory=False, num_threads=4, **where), target, say)
    say("committing")

    def commit() -> Pushed:
        try:
            # The client skips files that are unchanged, and skips the commit if nothing changes.
            info = api.create_commit(
                operations=[*adding, *(CommitOperationDelete(path_in_repo=name) for name in stale)],
                commit_message=target.message,
                commit_description=f"{MANIFEST} has SHA-256 {digest}",
                parent_commit=head,
                **where,
            )
        except Exception as error:
            return _find_landed_commit(api, target, head, digest, error)
        changed = info.oid != head
        url = info.commit_url if changed else f"{api.endpoint}/datasets/{target.repo}/tree/{head}"
        return Pushed(info.oid, info.pr_url or url, changed)

    return _retry(commit, target, say)


def fetch(repo: str, revision: str, folder: Path, patterns: Sequence[str] | None = None) -> str:
    """Download files of a repository into a folder, resuming an interrupted call; returns the commit.

    Args:
        revision: branch, tag or commit.
        patterns: glob patterns of the files; None for all.

    Raises:
        HubError: no such repository, revision or file, no access to it, or the Hub cannot be reached.
    """
    from huggingface_hub import HfApi

    api, target = HfApi(), Target(repo, revision)
    commit = _read_head(api, target)
    wanted = None if patterns is None else list(patterns)
    _retry(
        lambda: api.snapshot_download(
            repo, repo_type=_TYPE, revision=commit, local_dir=folder, allow_patterns=wanted, max_workers=4
        ),
        target,
    )
    return commit


def _ensure_repository(api: Any, target: Target) -> None:
    _retry(lambda: api.create_repo(target.repo, repo_type=_TYPE, private=not target.public, exist_ok=True), target)
    info = _retry(lambda: api.repo_info(target.repo, repo_type=_TYPE), target)
    if not info.private and not target.public:
        raise ConfigError(f"{target.repo}: found a public repository; give --public if everybody may see the set.")
    if target.revision != "main":
        make = lambda: api.create_branch(target.repo, repo_type=_TYPE, branch=target.revision, exist_ok=True)  # noqa: E731
        _retry(make, target)


def _read_head(api: Any, target: Target) -> str:
    return str(_retry(lambda: api.repo_info(target.repo, repo_type=_TYPE, revision=target.revision), target).sha)


def _find_landed_commit(api: Any, target: Target, head: str, digest: str, error: Exception) -> Pushed:
    """Our commit if it was made although the Hub's answer was lost; else `error` is raised again.

    Args:
        head: the parent of our commit.
        digest: of our manifest, which our commit's description contains.

    Raises:
        HubError: somebody else committed, or it is unknown whether a pull request was opened.
    """
    refused = find_status(error) == 412
    if not refused and not _is_transient(error):
        raise error
    if target.pull_request:
        if find_status(error) is None:
            remedy = "Look at the repository's discussions before you try again: it may be open."
            raise HubError(f"{target.repo}: the answer about the pull request was lost. {remedy}") from error
        raise error
    now = _read_head(api, target)
    if now == head:
        raise error
    commits = _retry(lambda: api.list_repo_commits(target.repo, repo_type=_TYPE, revision=now), target)
    for commit in itertools.takewhile(lambda commit: commit.commit_id != head, commits):
        if digest in commit.message:
            url = f"{api.endpoint}/datasets/{target.repo}/commit/{commit.commit_id}"
            return Pushed(commit.commit_id, url, changed=True)
    found = f"commit {now[:12]}, which somebody else made meanwhile; expected {head[:12]}"
    raise HubError(f"{target.repo}: found {found}. Nothing of yours was committed; publish again.") from error


def _retry(call: Callable[[], T], target: Target, say: Callable[[str], None] = lambda text: None) -> T:
    """Call, and call again after transient errors. Raises HubError if the Hub refuses or all attempts fail."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

    retrying = Retrying(
        retry=retry_if_exception(_is_transient),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(_FIRST_WAIT_S, max=_LONGEST_WAIT_S),
        before_sleep=lambda state: say(f"transient error of the Hub, attempt {state.attempt_number + 1} follows"),
        reraise=True,
    )
    try:
        return retrying(call)
    except VGBenchError:
        raise
    except (OSError, RuntimeError, ValueError, _get_client_error()) as error:
        raise _describe_error(error, target) from error


def _get_client_error() -> type[Exception]:
    from huggingface_hub.errors import HfHubHTTPError

    return HfHubHTTPError.__mro__[1]  # base class of the errors of the HTTP library that the client is built on


def _is_transient(error: BaseException) -> bool:
    """Whether a call may succeed later: a lost or refused connection, or a temporary error of the server."""
    if isinstance(error, VGBenchError):
        return False
    status = find_status(error)
    if status is not None:
        return status in _TRANSIENT
    connection_errors = (ConnectionError, TimeoutError, _get_client_error())
    return any(isinstance(cause, connection_errors) for cause in iterate_causes(error))


def _describe_error(error: BaseException, target: Target) -> HubError:
    """The error in one line, without the token or the signed parts of addresses."""
    from huggingface_hub import get_token

    status = find_status(error)
    messages = (getattr(cause, "server_message", None) for cause in iterate_causes(error))
    text = str(next(filter(None, messages), None) or (str(error).strip().splitlines() or [type(error).__name__])[0])
    text = re.sub(r"(https?://[^\s?]+)\?\S*", r"\1", text)
    if token := get_token():
        text = text.replace(token, "(token)")
    found = f"status {status} ({text})" if status else f"no answer ({text})"
    remedy = {
        401: "The token is missing, wrong or expired: `hf auth login`, or HF_TOKEN.",
        403: "The token does not permit this: create one with write access to this repository.",
        404: "There is no such repository, revision or file, or the token may not see it.",
    }.get(status or 0, "Run it again: files that arrived are not sent again.")
    return HubError(f"{target.repo}: found {found}. {remedy}")
