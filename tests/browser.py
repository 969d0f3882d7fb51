"""Debian's Chromium driven from Python. A conftest that needs it says `from tests.browser import open_page`.

One browser for all tests of a process (`browser` of the first conftest): a start takes about 1.5 s.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OpenPage = Callable[..., "WatchedPage"]


class WatchedPage:
    """A page, and what went wrong or left the machine while it was open.

    page: Playwright's page. errors: console errors, warnings and uncaught exceptions. requests: URLs of all requests.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dismiss)

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _dismiss(self, dialog: Dialog) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    @property
    def foreign(self) -> list[str]:
        """Requests that are neither a file, nor data, nor this machine."""
        own = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "http://localhost:")
        return [url for url in self.requests if not url.startswith(own)]

    def overflow_px(self) -> int:
        """How many pixels the page is wider than the window; 0 where nothing scrolls sideways."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def run_browser() -> Iterator[Browser]:
    """Headless Chromium; the test skips where none is installed."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser here: install Debian's chromium (looked for {', '.join(NAMES)} on PATH)")
    with sync_playwright() as playwright:
        # A sandbox needs user namespaces, which containers often forbid; only our own pages are opened.
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        # While Playwright's synchronous interface is open, asyncio believes that its loop runs in this thread: true
        # within a test that opens pages, and between them it would make asynchronous tests fail.
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield running
        asyncio._set_running_loop(loop)
        running.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """`open_page(url, width=1280, height=800, **context)` -> WatchedPage in a fresh context.

    At the end of the test no opened page may have asked another machine for anything or have complained on its
    console; a test that expects complaints empties `errors`. context: options of Playwright's `new_context`.
    """
    opened: list[WatchedPage] = []
    contexts = []
    asyncio._set_running_loop(browser._loop)

    def start(url: str, width: int = 1280, height: int = 800, **context: Any) -> WatchedPage:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **context))
        watched = WatchedPage(contexts[-1].new_page())
        watched.page.set_default_timeout(60_000)
        opened.append(watched)
        watched.page.goto(url)
        return watched

    yield start
    for context in contexts:
        context.close()
    asyncio._set_running_loop(None)
    foreign = [url for watched in opened for url in watched.foreign]
    assert not foreign, foreign
    errors = [error for watched in opened for error in watched.errors]
    assert not errors, errors


def press(page: Page, name: str) -> None:
    """Press a button or a link and wait for the whole page that follows; without its style it is another one."""
    with page.expect_navigation():
        page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).click()
