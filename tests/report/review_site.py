"""The review of a small dataset, as an application and as a running server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.testclient import TestClient

from tests.report.gallery_data import Looked
from vgbench_gen.core.local_server import listen
from vgbench_gen.quality.review.queue import ReviewItem, list_items
from vgbench_gen.quality.review.session import ReviewQueue
from vgbench_gen.report.review_app import make_app
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore

HOME = "http://127.0.0.1:8377"
FORM = {"origin": HOME}


def desk_of(looked: Looked, folder: Path, batch: int = 6, ids: list[str] | None = None) -> ReviewQueue:
    """Twelve rows with true evidence, or those named."""
    items = load(looked.folder)
    entries = list_items(items)
    chosen = ids if ids is not None else [item.id for item in looked.items[: looked.real : 3]][:12]
    selected: list[ReviewItem] = [e for e in entries if e.id in set(chosen)]
    return ReviewQueue(items, entries, selected, folder / "review", MediaStore(looked.folder / "media"), batch)


def client_of(queue: ReviewQueue, name: str = "", hosts: tuple[str, ...] = (), token: str = "") -> TestClient:
    """A browser without scripts, signed in."""
    client = TestClient(make_app(queue, "a set", hosts, token), base_url=HOME, follow_redirects=False)
    if name:
        assert client.post("/reviewer", data={"reviewer": name}, headers=FORM).status_code == 303
    return client


@contextmanager
def running(queue: ReviewQueue) -> Iterator[str]:
    """The address of a server that answers while the block runs."""
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(make_app(queue, "a set"), log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.02)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
            queue.close()
