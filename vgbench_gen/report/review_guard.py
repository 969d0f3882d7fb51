"""What every request to a local page has to pass, and the headers of every answer.

A server on the loopback interface is reached by any page that the user has open: by name tricks (DNS rebinding) and by
forms sent from elsewhere. So the Host must be one of ours, a POST must come from our own page, and a server that others
can reach asks for a token.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vgbench_gen.core.local_server import LOOPBACK, is_same_secret, name_host, read_body

COOKIE_TOKEN = "vgbench_review_token"
MAX_BODY_BYTES = 64 * 1024
MAX_URL_BYTES = 2048
BODY_S = 10.0  # a form of 64 KiB takes no longer on any network that the review is for
HEADERS: Mapping[str, str] = {
    # One request a connection: nobody keeps one by sending slowly, or a body without end behind an answer.
    "connection": "close",
    "content-security-policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: browsers then send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
# A page and not a redirect: a strict cookie is not sent along a redirect that began on another site.
_WELCOME = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
    '<title>vgbench review</title><p><a href="/">Go to the review</a></p></html>'
)


class Guard:
    """ASGI middleware.

    Args:
        app: what is guarded.
        hosts: names by which the server may be called, besides loopback names; ports do not matter, so that a tunnel
            works.
        token: secret of a server that others can reach; "" asks for none. Any IP address is then a good Host: whoever
            has been tricked into another name has no cookie for it.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), token: str = "") -> None:
        self.app, self.token = app, token
        self.hosts = LOOPBACK | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    found[name] = value
                found.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._find_refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send_safe)
            return
        try:
            body = await read_body(receive, MAX_BODY_BYTES, BODY_S) if scope["method"] == "POST" else b""
        except TimeoutError:
            await PlainTextResponse("The form did not come in time.", 408)(scope, receive, send_safe)
            return
        if body is None:
            await PlainTextResponse("The form is too large.", 413)(scope, receive, send_safe)
            return

        read = False

        async def receive_whole() -> Message:
            nonlocal read
            if read:  # what comes now is the end of the connection, which some answers wait for
                return await receive()
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, receive_whole, send_safe)

    def _find_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL_BYTES:
            return PlainTextResponse("The address is too long.", 414)
        if not self._is_ours(host):
            return PlainTextResponse("This server is not called that. Use the address that vgbench printed.", 421)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Only GET and POST.", 405)
        if self.token and not self._knows_token(scope, headers):
            return self._admit_browser(scope)
        if scope["method"] == "POST":
            if headers.get("origin") != f"{scope['scheme']}://{host}":
                return PlainTextResponse("This form was not sent from this server's own page.", 403)
            if headers.get("content-type", "").split(";")[0].strip().lower() != "application/x-www-form-urlencoded":
                return PlainTextResponse("Expected a plain form.", 415)
        return None

    def _is_ours(self, host: str) -> bool:
        name = name_host(host)
        if name in self.hosts:
            return True
        if not self.token:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _knows_token(self, scope: Scope, headers: Headers) -> bool:
        cookies = cookie_parser(headers.get("cookie", ""))
        return is_same_secret(cookies.get(_name_cookie(scope), ""), self.token)

    def _admit_browser(self, scope: Scope) -> Response:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] != "GET" or not is_same_secret(given, self.token):
            return PlainTextResponse("Open the address with the token that vgbench printed when it started.", 403)
        answer = HTMLResponse(_WELCOME)
        answer.set_cookie(_name_cookie(scope), self.token, httponly=True, samesite="strict", path="/")
        return answer


def _name_cookie(scope: Scope) -> str:
    """Name of the token's cookie: cookies know no ports, so two servers of one machine must not share it."""
    return f"{COOKIE_TOKEN}_{(scope.get('server') or ('', 0))[1]}"
