from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.store import files
from vgbench_gen.store.media import MediaStore

ROOT = Path(__file__).parents[2]
JPEG = b"\xff\xd8\xff" + b"content"


def test_put_names_by_content(media: MediaStore) -> None:
    name = media.put(JPEG, ".jpg")
    assert name == f"{digest_bytes(JPEG)}.jpg"
    assert (media.root / name[:2] / name).read_bytes() == JPEG
    assert media.get(name) == JPEG
    assert media.has(name)
    assert not media.has("0" * 32 + ".png")
    assert media.put(JPEG, "jpg") == name
    assert len([p for p in media.root.rglob("*") if p.is_file()]) == 1


@pytest.mark.parametrize(("data", "suffix"), [(JPEG, "png"), (b"GIF89a", "jpg"), (JPEG, "jpeg"), (JPEG, "../x")])
def test_only_what_the_suffix_says(media: MediaStore, data: bytes, suffix: str) -> None:
    with pytest.raises(ValueError, match="media are"):
        media.put(data, suffix)
    assert not media.root.exists()


@pytest.mark.parametrize(
    "name",
    ["../secret.jpg", "/etc/passwd", "", "a" * 32, "a" * 32 + ".jpg\n", "A" * 32 + ".jpg", "a" * 31 + "/.jpg"],
)
def test_paths_never_escape(media: MediaStore, name: str) -> None:
    (media.root.parent / "secret.jpg").write_bytes(JPEG)
    for look in (media.get, media.has):
        with pytest.raises(DatasetError, match="media name"):
            look(name)


def test_missing_and_damaged_say_what_to_do(media: MediaStore) -> None:
    name = media.put(JPEG, "jpg")
    path = media.root / name[:2] / name
    path.write_bytes(JPEG[:-1] + b"!")
    with pytest.raises(DatasetError, match=r"digest.*delete it"):
        media.get(name)
    path.write_bytes(JPEG[:-1])
    assert media.put(JPEG, "jpg") == name
    assert media.get(name) == JPEG
    path.unlink()
    with pytest.raises(DatasetError, match=r"no file.*vgbench build"):
        media.get(name)


def test_a_batch_syncs_once_at_its_end(media: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_to_disk", synced.append)
    with media.batch():
        names = [media.put(JPEG + bytes([k]), "jpg") for k in range(5)]
        assert synced == []
        assert media.get(names[3]) == JPEG + bytes([3])
    paths = {media.root / n[:2] / n for n in names}
    assert set(synced) == paths | {p.parent for p in paths}
    synced.clear()
    media.put(JPEG, "jpg")
    assert len(synced) == 2


def test_four_processes_put_the_same_images(media: MediaStore) -> None:
    code = """
import sys
from pathlib import Path
from vgbench_gen.store import files
from vgbench_gen.store.media import MediaStore
media = MediaStore(Path(sys.argv[1]))
for k in range(40):
    data = b"\\xff\\xd8\\xff" + bytes([k]) * 50_000
    assert media.get(media.put(data, "jpg")) == data
"""
    workers = [subprocess.Popen([sys.executable, "-c", code, str(media.root)], cwd=ROOT) for _ in range(4)]
    assert [w.wait(60) for w in workers] == [0] * 4
    names = [p.name for p in media.root.rglob("*") if p.is_file()]
    assert len(names) == 40
    assert all(digest_bytes(media.get(n)) == n[:32] for n in names)
