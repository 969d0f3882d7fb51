"""A source's files from the Hugging Face Hub, and what lies behind an error of its client, told in one line."""

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
    429: f"The Hub asks to wait: run it again in some minutes, {_COPY}",
}


def download(title: str, repository: str, patterns: Sequence[str] = ()) -> Path:
    """The folder of the files of a repository; what was fetched before is not fetched again.

    Args:
        title: of the source, for messages.
        repository: "" where there is none.
        patterns: of the files that are wanted; all where empty.

    Raises:
        DatasetError: no repository, no right to it, no answer, or no room for it.
    """
    if not repository:
        remedy = "Download it from its authors and give the folder with --from."
        raise dataset_error(title, "no repository on the Hub", "a local copy", remedy)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, repo_type="dataset", allow_patterns=list(patterns) or None))
    # Connection problems are OSErrors of the client's own HTTP layer.
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise _describe_error(f"{title} ({repository} on the Hub)", error) from error


def _describe_error(where: str, error: Exception) -> DatasetError:
    status = find_status(error)
    if status:
        remedy = _REMEDIES.get(status, f"Run it again later, {_COPY}")
        return dataset_error(where, f"no download: the Hub answers with status {status}", "its files", remedy)
    from huggingface_hub.errors import LocalEntryNotFoundError

    full = next((each for each in iterate_causes(error) if isinstance(each, OSError) and each.filename), None)
    if full is not None:
        found = f"no download: {full.filename} ({full.strerror})"
        return dataset_error(where, found, "its files", f"Make room or mend the rights (HF_HOME), {_COPY}")
    lost = next((each for each in iterate_causes(error) if not isinstance(each, LocalEntryNotFoundError)), error)
    found = f"no download: the Hub does not answer ({type(lost).__name__})"
    return dataset_error(where, found, "its files", f"Check the connection and run it again, {_COPY}")


def iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from, one after the other; contexts that were suppressed are left out."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def find_status(error: BaseException) -> int | None:
    """The HTTP status behind an error of the Hub's client, None where there was no answer."""
    for each in iterate_causes(error):
        if (response := getattr(each, "response", None)) is not None:
            return int(response.status_code)
    return None
