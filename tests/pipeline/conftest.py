from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def reference(raw_room: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """(folder, content) of the small build, made in this process by one worker without a stop."""
    from tests.pipeline.same_bytes import content, leftovers, small_build

    out = tmp_path_factory.mktemp("reference")
    report = small_build(raw_room, out)
    found = content(out)
    assert report.composed.total > 40
    assert {name.split("/")[0] for name in found} == {"facts", "rejects", "items", "media"}
    assert not leftovers(out)
    return out, found
