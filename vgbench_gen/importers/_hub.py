"""A source's files from the Hugging Face Hub, and one clear line where it does not give them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.importers.base import Importer
from vgbench_gen.store.files import dataset_error

_COPY = "or give a local copy with --from FOLDER."
_REMEDIES = {
    401: f"Log in (`hf auth login`, or HF_TOKEN), {_COPY}",
    403: f"Accept its terms on its page with the account that `hf auth whoami` names, {_COPY}",
    404: f"Log in if it is not open to all (`hf auth login`), {_COPY}",
    429: f"The Hub asks to wait: run it again in some minutes, {_COPY}",
}


def download(importer: Importer) -> Path:
    """The folder of the files that an importer reads; what was fetched before is not fetched again.

    Raises:
        DatasetError: no repository, no right to it, no answer, or no room for it.
    """
    if not importer.repository:
        remedy = "Download it from its authors and give the folder with --from."
        raise dataset_error(importer.title, "no repository on the Hub", "a local copy", remedy)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        patterns = list(importer.patterns) or None
        return Path(snapshot_download(importer.repository, repo_type="dataset", allow_patterns=patterns))
    # Connection problems are OSErrors of the client's own HTTP layer.
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise _told(importer, error) from error


def _told(importer: Importer, error: Exception) -> DatasetError:
    where = f"{importer.title} ({importer.repository} on the Hub)"
    status = next((s for each in _chain(error) if (s := _status(each))), 0)
    if status:
        remedy = _REMEDIES.get(status, f"Run it again later, {_COPY}")
        return dataset_error(where, f"no download: the Hub answers with status {status}", "its files", remedy)
    from huggingface_hub.errors import LocalEntryNotFoundError

    full = next((each for each in _chain(error) if isinstance(each, OSError) and each.filename), None)
    if full is not None:
        found = f"no download: {full.filename} ({full.strerror})"
        return dataset_error(where, found, "its files", f"Make room or mend the rights (HF_HOME), {_COPY}")
    lost = next((each for each in _chain(error) if not isinstance(each, LocalEntryNotFoundError)), error)
    found = f"no download: the Hub does not answer ({type(lost).__name__})"
    return dataset_error(where, found, "its files", f"Check the connection and run it again, {_COPY}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status(error: BaseException) -> int:
    response = getattr(error, "response", None)
    return int(response.status_code) if response is not None else 0
