"""Downloads sources from the Hugging Face Hub, and describes errors of its client in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.store.files import dataset_error

_COPY = "or give a local copy with --from FOLDER."
_REMEDIES = {
    401: f"Log in (`hf auth login`, or HF_TOKEN), {_COPY}",
    403: f"Accept its terms on its page with the account that `hf auth whoami` names, {_COPY}",
    404: f"Log in if it is not open to all (`hf auth login`), {_COPY}",
    429: f"The Hub limits requests: run it again in some minutes, {_COPY}",
}


def download(title: str, repository: str, patterns: Sequence[str] = ()) -> Path:
    """Download a repository, except for files in the cache; returns its folder.

    Args:
        title: of the source, for messages.
        repository: "OWNER/NAME"; "" if the source has none.
        patterns: glob patterns of the files; all if empty.

    Raises:
        DatasetError: no repository, no access to it, no answer, or a full disk.
    """
    if not repository:
        remedy = "Download it from its authors and give the folder with --from."
        raise dataset_error(title, "no repository on the Hub", "a local copy", remedy)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, repo_type="dataset", allow_patterns=list(patterns) or None))
    # Connection errors of the client's HTTP library are OSErrors.
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise _describe_error(f"{title} ({repository} on the Hub)", error) from error


def _describe_error(where: str, error: Exception) -> DatasetError:
    status = find_status(error)
    if status:
        remedy = _REMEDIES.get(status, f"Run it again later, {_COPY}")
        return dataset_error(where, f"no download: the Hub answers with status {status}", "its files", remedy)
    from huggingface_hub.errors import LocalEntryNotFoundError

    causes = list(iterate_causes(error))
    disk_error = next((cause for cause in causes if isinstance(cause, OSError) and cause.filename), None)
    if disk_error is not None:
        found = f"no download: {disk_error.filename} ({disk_error.strerror})"
        return dataset_error(where, found, "its files", f"Free disk space or fix the permissions (HF_HOME), {_COPY}")
    cause = next((cause for cause in causes if not isinstance(cause, LocalEntryNotFoundError)), error)
    found = f"no download: the Hub does not answer ({type(cause).__name__})"
    return dataset_error(where, found, "its files", f"Check the connection and run it again, {_COPY}")


def iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, its cause, the cause's cause and so on; suppressed contexts are left out."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def find_status(error: BaseException) -> int | None:
    """HTTP status of an error of the Hub's client; None if there was no answer."""
    for cause in iterate_causes(error):
        if (response := getattr(cause, "response", None)) is not None:
            return int(response.status_code)
    return None
