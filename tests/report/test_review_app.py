from __future__ import annotations

import html
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from tests.report.gallery_data import HOSTILE, Looked
from tests.report.review_site import FORM, HOME, client_of, desk_of
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.local_server import listen, serve
from vgbench_gen.quality.review.lines import CANNOT_TELL
from vgbench_gen.quality.review.session import Assignment, ReviewQueue
from vgbench_gen.report import review_app, review_guard
from vgbench_gen.report.review_app import make_url
from vgbench_gen.report.review_guard import COOKIE_TOKEN, MAX_BODY_BYTES


@pytest.fixture
def queue(looked: Looked, tmp_path: Path) -> Iterator[ReviewQueue]:
    found = desk_of(looked, tmp_path)
    yield found
    found.close()


@pytest.fixture
def client(queue: ReviewQueue) -> TestClient:
    return client_of(queue, "ann")


def first(queue: ReviewQueue, form: str = "multi-choice") -> Assignment:
    return next(s for s in queue.open_session("ann").assignments if s.entry.form == form and not s.defect)


def answer(client: TestClient, assignment: Assignment, text: str = CANNOT_TELL) -> int:
    data = {"answer": text, "confidence": "guess"}
    return int(client.post(f"/item/{assignment.token}/answer", data=data, headers=FORM).status_code)


def test_nothing_of_the_truth_before_the_answer(client: TestClient, queue: ReviewQueue) -> None:
    assignment = first(queue)
    item = queue.dataset.by_id(assignment.entry.id)
    page = client.get(f"/item/{assignment.token}").text
    assert html.escape(item.question.splitlines()[0], quote=False)[:20] in page.replace("&#39;", "'")
    assert page.count('type="radio" name="answer"') == 5
    for word in (
        "checked",
        "<svg",
        "Stated answer",
        "evidence",
        item.id,
        "planted",
        assignment.entry.digest,
        item.scene_id,
    ):
        assert word not in page
    # Were another letter the right one, the page would be the same to the byte.
    session = queue.open_session("ann")
    other = replace(item, answer="D" if item.answer != "D" else "A")
    shown = session.show(assignment)
    session._last = (assignment, type(shown)(other))
    assert client.get(f"/item/{assignment.token}").text == page
    session._last = None

    for refused in (client.get(f"/item/{assignment.token}/truth"), _judge(client, assignment)):
        assert refused.status_code == 409
        assert "Answer first" in refused.text
        assert item.id not in refused.text
    assert queue.open_session("ann").log.lines == []
    assert answer(client, assignment, "Z") == 400
    assert answer(client, assignment) == 303
    truth = client.get(f"/item/{assignment.token}/truth").text
    assert f"Stated answer: <strong>{item.answer}</strong>. You said: <strong>cannot tell</strong>" in truth
    assert "<svg" in truth
    assert client.get(f"/item/{assignment.token}").headers["location"] == f"/item/{assignment.token}/truth"
    assert _judge(client, assignment, "invalid").status_code == 400
    assert _judge(client, assignment).status_code == 303


def _judge(client: TestClient, assignment: Assignment, verdict: str = "valid", **more: str):  # type: ignore[no-untyped-def]
    return client.post(f"/item/{assignment.token}/verdict", data={"verdict": verdict, **more}, headers=FORM)


def test_a_verdict_is_kept_and_can_be_changed(client: TestClient, queue: ReviewQueue) -> None:
    assignment = first(queue)
    answer(client, assignment)
    assert _judge(client, assignment, "unsure", flag="occluded", note="  behind\r\nthe chair ").status_code == 303
    page = client.get(f"/item/{assignment.token}/truth").text
    assert re.search(r'value="unsure"[^>]* checked', page)
    assert re.search(r'value="occluded"[^>]* checked', page)
    assert "behind\nthe chair</textarea>" in page
    _judge(client, assignment, "valid")
    lines = queue.open_session("ann").log.lines
    assert [(line.stage, line.verdict) for line in lines] == [
        ("answer", ""),
        ("verdict", "unsure"),
        ("verdict", "valid"),
    ]


def test_a_full_disk_is_told_and_nothing_shown(
    client: TestClient, queue: ReviewQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment = first(queue)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        page = client.post(f"/item/{assignment.token}/answer", data={"answer": "A", "confidence": "sure"}, headers=FORM)
    assert page.status_code == 500
    assert "ann.jsonl: No space left on device" in page.text
    assert client.get(f"/item/{assignment.token}/truth").status_code == 409


def test_images_come_by_place_only(client: TestClient, queue: ReviewQueue) -> None:
    assignment = first(queue)
    image = client.get(f"/image/{assignment.token}/0")
    assert image.headers["content-type"] == "image/jpeg"
    assert image.content == queue.dataset.image_bytes(assignment.entry.id, 0)
    for path in (f"/image/{assignment.token}/99", f"/image/{assignment.entry.id}/0", "/image/../0"):
        assert client.get(path).status_code in (404, 409)
    assert client.get("/static/review.css").headers["content-type"].startswith("text/css")
    for path in ("/static/base.html.j2", "/static/..%2f..%2fsite.py", "/static/%2e%2e/site.py", "/nothing"):
        assert client.get(path).status_code == 404
    assert client_of(queue).get(f"/image/{assignment.token}/0").status_code == 409  # nobody signed in


def test_a_batch_ends_on_the_start_page_and_names_no_planted_item(client: TestClient, queue: ReviewQueue) -> None:
    where = client.get("/next").headers["location"]
    for left in range(6, -1, -1):
        assignment = queue.open_session("ann").find_assignment(where.removeprefix("/item/"))
        answer(client, assignment)
        where = _judge(client, assignment).headers["location"]
        assert (where == "/") == (left == 0)
    page = client.get("/").text
    assert "0 of 7 done" in page
    assert "you have judged 6 of" in page


def test_hostile_text_is_inert(looked: Looked, tmp_path: Path) -> None:
    queue = desk_of(looked, tmp_path, ids=[looked.items[-1].id])
    client = client_of(queue, "ann")
    (assignment,) = [s for s in queue.open_session("ann").assignments if not s.defect]
    pages = [client.get(f"/item/{assignment.token}").text]
    answer(client, assignment, "A")
    _judge(client, assignment, "unsure", note=HOSTILE + "</textarea><script>1</script>")
    pages += [client.get(f"/item/{assignment.token}/truth").text, client.get(f"/item/{HOSTILE[:9]}").text]
    for page in pages:
        assert page.count("<script") == 1
        assert "onerror=&#34;alert" in page or "onerror" not in page
        assert "<img src=x" not in page
    assert "{{ 7 * 7 }}" in pages[0]
    queue.close()


def test_every_answer_has_the_headers(client: TestClient, queue: ReviewQueue) -> None:
    for path in ("/", "/static/review.css", f"/image/{first(queue).token}/0", "/nothing"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/").headers["cache-control"] == "no-store"
    assert "unsafe" not in client.get("/").headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8377", "", "[::1", "localhost.evil", "10.0.0.7"]
)
def test_other_names_are_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8377", "localhost:9000", "[::1]:8377", "LOCALHOST"])
def test_our_names_are_not(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:9", "https://127.0.0.1:8377"])
def test_forms_from_elsewhere_are_refused(client: TestClient, queue: ReviewQueue, origin: str) -> None:
    assignment = first(queue)
    data = {"answer": CANNOT_TELL, "confidence": "sure"}
    path = f"/item/{assignment.token}/answer"
    assert client.post(path, data=data, headers={"origin": origin} if origin else {}).status_code == 403
    assert client.post(path, content="{}", headers={**FORM, "content-type": "application/json"}).status_code == 415
    assert queue.open_session("ann").log.lines == []


def test_requests_are_bounded(client: TestClient, queue: ReviewQueue) -> None:
    path = f"/item/{first(queue).token}/answer"
    big = {"answer": "A" * MAX_BODY_BYTES, "confidence": "sure"}
    assert client.post(path, data=big, headers=FORM).status_code == 413
    many = "&".join(f"flag={n}" for n in range(500))
    typed = {**FORM, "content-type": "application/x-www-form-urlencoded"}
    assert client.post(path, content=many, headers=typed).status_code == 400
    assert client.get("/?" + "x" * 4000).status_code == 414
    assert client.request("PUT", "/").status_code == 405


def test_others_need_the_token(queue: ReviewQueue) -> None:
    client = client_of(queue, token="secret", hosts=("box",))
    client.base_url = "http://10.0.0.7:8377"
    for path in ("/", "/static/review.css", "/?token=", "/?token=Secret", "/?token=secre\u00e9"):
        refused = client.get(path)
        assert refused.status_code == 403
        assert "secret" not in refused.text
    welcome = client.get("/?token=secret")
    cookie = welcome.headers["set-cookie"]
    assert welcome.status_code == 200
    assert COOKIE_TOKEN in cookie
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "secret" not in welcome.text
    assert client.get("/").status_code == 200
    # Cookies of other programs on this machine, however odd, do not lock one out.
    odd = f'x="; {{a: 1}}=2; {cookie.split(";")[0]}; @=('
    fresh = client_of(queue, token="secret")
    assert fresh.get("/", headers={"cookie": odd}).status_code == 200
    assert fresh.get("/", headers={"cookie": odd.replace("secret", "secreT")}).status_code == 403
    # The token does not stand in for the name and the origin.
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    assert client.post("/reviewer", data={"reviewer": "ann"}, headers={"origin": HOME}).status_code == 403
    assert (
        client.post("/reviewer", data={"reviewer": "ann"}, headers={"origin": "http://10.0.0.7:8377"}).status_code
        == 303
    )


@pytest.mark.parametrize("name", ["../x", "", "a" * 40, "<b>"])
def test_names_are_checked(queue: ReviewQueue, name: str) -> None:
    refused = client_of(queue).post("/reviewer", data={"reviewer": name}, headers=FORM)
    assert refused.status_code == 409
    assert "reviewer name" in refused.text
    assert "<b>" not in refused.text


def test_a_taken_port_says_what_to_do() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert make_url(taken, "127.0.0.1") == f"http://127.0.0.1:{port}/"
        assert make_url(taken, "::1", "a+b").endswith("]:" + f"{port}/?token=a%2Bb")
        with pytest.raises(ConfigError, match=f"--port {port}: .*in use. Give another --port"):
            listen("127.0.0.1", port)
    with pytest.raises(ConfigError, match="Give an address of this machine"):
        listen("no such host", 0)


def test_the_verb_reports_exports_and_ends_cleanly(
    looked: Looked, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "items").symlink_to(looked.folder / "items")
    out = tmp_path / "accepted.txt"
    assert main(["review", str(folder), "--report", "--json", "--export", str(out)]) == 0
    assert f'"items": {len(looked.items)}' in capsys.readouterr().out
    assert out.read_bytes() == b""
    for wrong in (["--json"], ["--for", "x"], ["--task", "nothing"]):
        assert main(["review", str(folder), *wrong]) == 2
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "vgbench_gen.report.review_app")
    assert main(["review", str(folder)]) == 2
    assert "pip install 'vgbench-gen[review]'" in capsys.readouterr().err

    command = [sys.executable, "-m", "vgbench_gen.cli", "review", str(folder), "--port", "0", "--task", "metric_depth"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        (url,) = re.findall(r"Open (http://127\.0\.0\.1:\d+/)$", server.stdout.readline().strip())
        assert httpx.get(url).status_code == 200
        os.kill(server.pid, signal.SIGINT)
        _, complaints = server.communicate(timeout=300)
    assert server.returncode == 0
    assert complaints == ""


def test_half_open_connections_and_endless_bodies_do_not_shut_others_out(
    queue: ReviewQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_guard, "BODY_S", 0.5)
    found = listen("127.0.0.1", 0)
    threading.Thread(
        target=serve, args=(review_app.make_app(queue, "set", (), "", ""), found, 0.5), daemon=True
    ).start()
    url = make_url(found, "127.0.0.1")
    assert httpx.get(url).status_code == 200
    place = found.getsockname()
    start = "POST /reviewer HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
    form = "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
    with ExitStack() as opened:
        held = [opened.enter_context(socket.create_connection(place)) for _ in range(64)]
        for one in held:
            one.sendall(start.encode())
        time.sleep(1.5)
        assert httpx.get(url).status_code == 200
        slow, endless, behind = (opened.enter_context(socket.create_connection(place)) for _ in range(3))
        slow.sendall((start + form + "1\r\na\r\n").encode())
        endless.sendall((start + form).encode() + b"400\r\n" + b"a" * 1024 + b"\r\n")
        behind.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n")
        for one, status in ((slow, b" 408 "), (behind, b" 200 ")):
            one.settimeout(5)
            answer = b""
            while some := one.recv(65536):  # ends: the server closes the connection
                answer += some
            assert status in answer.partition(b"\r\n")[0]
        with pytest.raises((ConnectionError, TimeoutError)):
            send_without_end(endless)


def send_without_end(connection: socket.socket) -> None:
    for _ in range(1000):
        connection.sendall(b"400\r\n" + b"a" * 1024 + b"\r\n")
        time.sleep(0.005)
