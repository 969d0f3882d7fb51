"""The web application of `vgbench review`: blind answer, then the truth and a verdict; plain forms, no script needed.

All requests are served one after the other in one thread: the readers of a local page are few, and the files of
verdicts have one writer each. Rules of the review stand in `quality.review`; here are only pages.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.core.local_server import make_address
from vgbench_gen.quality.review.lines import ReviewError, normalise_name
from vgbench_gen.quality.review.session import Assignment, ReviewQueue, ReviewSession
from vgbench_gen.report import review_views as views
from vgbench_gen.report.review_guard import Guard
from vgbench_gen.report.site import PAGES, make_environment

COOKIE_NAME = "vgbench_reviewer"
_STATIC = {
    "base.css": ("base.css", "text/css"),
    "review.css": ("review/review.css", "text/css"),
    "review.js": ("review/review.js", "text/javascript"),
    "review.svg": ("review/review.svg", "image/svg+xml"),
}
"""Name in an address -> where the file stands among the pages, and what it is."""
_MAGIC = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}
_FIELDS = 40


def make_app(queue: ReviewQueue, name: str, hosts: tuple[str, ...] = (), token: str = "", reviewer: str = "") -> Guard:
    """The application behind its guard.

    Args:
        queue: what is reviewed. name: of the dataset, shown as it is. hosts, token: see `Guard`.
        reviewer: proposed on the start page.
    """
    return Guard(_Pages(queue, name, reviewer).app, hosts, token)


def make_url(server: socket.socket, host: str, token: str = "") -> str:
    """The address to open, with the token where there is one."""
    query = f"?{urlencode({'token': token})}" if token else ""
    return f"{make_address(server, host)}/{query}"


class _Pages:
    def __init__(self, queue: ReviewQueue, name: str, reviewer: str) -> None:
        self.queue, self.name, self.reviewer = queue, name, reviewer
        self.app = Starlette(
            routes=[
                Route("/", self.start),
                Route("/reviewer", self.sign_in, methods=["POST"]),
                Route("/next", self.show_next),
                Route("/item/{token}", self.show_item),
                Route("/item/{token}/answer", self.answer, methods=["POST"]),
                Route("/item/{token}/truth", self.show_truth),
                Route("/item/{token}/verdict", self.save_verdict, methods=["POST"]),
                Route("/image/{token}/{k:int}", self.send_image),
                Route("/static/{file}", self.send_static),
            ],
            exception_handlers=dict.fromkeys((VGBenchError, HTTPException, OSError), self._refuse),
        )

    async def start(self, request: Request) -> Response:
        """Name, what to do, how far."""
        session = self._find_session(request)
        progress = session.count_progress() if session else None
        return self._render_page(
            "start",
            reviewer=session.name if session else self.reviewer,
            progress=progress,
            batch=len(self.queue.batches[0][1]),
            items=len(self.queue.selected),
            flags=views.FLAG_LABELS.values(),
        )

    async def sign_in(self, request: Request) -> Response:
        """Take a name and open that reviewer's file."""
        reviewer = normalise_name((await _form(request)).get("reviewer", [""])[0])
        self.queue.open_session(reviewer)
        answer = _see("/")
        answer.set_cookie(COOKIE_NAME, reviewer, httponly=True, samesite="strict", path="/", max_age=30 * 86400)
        return answer

    async def show_next(self, request: Request) -> Response:
        """To the first item without a verdict; to the start page when a batch ends."""
        session = self._find_session(request)
        if session is None:
            return _see("/")
        assignment = session.find_next()
        return _see("/" if assignment is None else f"/item/{assignment.token}")

    async def show_item(self, request: Request) -> Response:
        """The blind page; once answered, on to the truth."""
        session, assignment = self._place(request)
        if session.find_line(assignment, "answer") is not None:
            return _see(f"/item/{assignment.token}/truth")
        return self._render_page("answer", **views.make_answer_page(session, assignment), message="")

    async def answer(self, request: Request) -> Response:
        """Save the blind answer."""
        session, assignment = self._place(request)
        form = await _form(request)
        text = form.get("answer", [""])[0]
        if assignment.entry.form == "open-ended" and not text:
            text = form.get("number", [""])[0]
        try:
            session.answer(assignment, text, form.get("confidence", [""])[0])
        except ReviewError as error:
            return self._render_page("answer", 400, **views.make_answer_page(session, assignment), message=str(error))
        return _see(f"/item/{assignment.token}/truth")

    async def show_truth(self, request: Request) -> Response:
        """The right answer and the form of the verdict; refused before the answer is saved."""
        session, assignment = self._place(request)
        session.require_answer(assignment)
        return self._render_page("truth", **views.make_reveal_page(session, assignment), message="")

    async def save_verdict(self, request: Request) -> Response:
        """Save the verdict."""
        session, assignment = self._place(request)
        form = await _form(request)
        verdict, flags, note = form.get("verdict", [""])[0], form.get("flag", []), form.get("note", [""])[0]
        batch = session.batch
        session.require_answer(assignment)
        try:
            session.judge(assignment, verdict, flags, note)
        except ReviewError as error:
            kept = {"chosen": verdict, "chosen_flags": set(flags), "note": note}
            return self._render_page(
                "truth", 400, **{**views.make_reveal_page(session, assignment), **kept}, message=str(error)
            )
        following = session.find_next()
        return _see(f"/item/{following.token}" if following and session.batch == batch else "/")

    async def send_image(self, request: Request) -> Response:
        """An image of a place in the reviewer's batch."""
        session, assignment = self._place(request)
        data = session.read_image(assignment, request.path_params["k"])
        kind = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)
        if kind is None:
            raise HTTPException(415, "The image is neither JPEG nor PNG.")
        return Response(data, media_type=kind, headers={"cache-control": "private, max-age=600"})

    async def send_static(self, request: Request) -> Response:
        """Style and script."""
        file = request.path_params["file"]
        if file not in _STATIC:
            raise HTTPException(404, "There is no such page.")
        place, kind = _STATIC[file]
        return Response(Path(PAGES, place).read_bytes(), media_type=kind)

    def _find_session(self, request: Request) -> ReviewSession | None:
        name = request.cookies.get(COOKIE_NAME, "")
        try:
            return self.queue.open_session(normalise_name(name))
        except ReviewError:
            if not name:
                return None
            raise

    def _place(self, request: Request) -> tuple[ReviewSession, Assignment]:
        session = self._find_session(request)
        if session is None:
            raise ReviewError("Say who you are first, on the start page.")
        return session, session.find_assignment(request.path_params["token"])

    def _render_page(self, name: str, status: int = 200, **values: Any) -> Response:
        template = make_environment().get_template(f"review/{name}.html.j2")
        return HTMLResponse(template.render(dataset=self.name, **values), status)

    async def _refuse(self, request: Request, error: Exception) -> Response:
        status = 500 if isinstance(error, DatasetError | OSError) else 409
        message = str(error)
        if isinstance(error, OSError):
            message = f"Not saved: {error.filename or 'the disk'}: {error.strerror or error}."
        if isinstance(error, HTTPException):
            status, message = error.status_code, error.detail
        return self._render_page("message", status, message=message)


async def _form(request: Request) -> dict[str, list[str]]:
    form = await request.form(max_files=0, max_fields=_FIELDS)
    found: dict[str, list[str]] = {}
    for key, value in form.multi_items():
        found.setdefault(key, []).append(str(value))
    return found


def _see(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)
