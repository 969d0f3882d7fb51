"""The HTTP client below the `openai` client, with bounded replies and no redirects, and the meaning of its errors."""

from __future__ import annotations

import email.utils
import math
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2

from vgbench_gen.backends._call import Failed
from vgbench_gen.backends._chat import Refusal, find_error_message
from vgbench_gen.backends._keys import cover_line, guard_logs
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.surroundings import describe_proxy, find_proxy_variable

if TYPE_CHECKING:
    import openai

MAX_REPLY_BYTES = 32 << 20
_CONNECT_S = 20.0
_LOGGERS = (
    "openai", "openai._base_client", "openai._legacy_response", "openai._response", "httpx2", "httpcore2",
    "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy", "httpcore2.socks",
    "azure.core.pipeline.policies.http_logging_policy", "azure.identity", "asyncio",
)  # fmt: skip
# With these errors the request has not reached a server, so it was not charged.
_NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


class _Bounded(httpx2.AsyncByteStream):
    """A body that raises `Failed` when it exceeds `MAX_REPLY_BYTES`."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room = MAX_REPLY_BYTES
        async for chunk in self._inner:
            room -= len(chunk)
            if room < 0:
                raise make_too_large_failure()
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def make_too_large_failure() -> Failed:
    """The failure of a reply above the bound; it is not retried."""
    return Failed("bad_reply", f"the reply is larger than {MAX_REPLY_BYTES} bytes.", charged=True)


async def _bound(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        # A few compressed kilobytes may expand to gigabytes.
        raise Failed("bad_reply", "the reply is compressed although that was not allowed.", "later", charged=True)
    length = response.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length) > MAX_REPLY_BYTES:
        raise make_too_large_failure()
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


def make_http_client(url: str, concurrency: int, timeout_s: float) -> httpx2.AsyncClient:
    """A client for one event loop and one address; proxies and certificates come from the environment as usual."""
    guard_logs(*_LOGGERS)
    through_proxy = find_proxy_variable(url)[1]
    return httpx2.AsyncClient(
        # httpx would set up every proxy of the environment, even those that this address does not use.
        trust_env=through_proxy,
        verify=True if through_proxy else httpx2.create_ssl_context(),
        timeout=httpx2.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s), pool=None),
        limits=httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency, keepalive_expiry=30.0),
        follow_redirects=False,  # another host must not get the key
        event_hooks={"response": [_bound]},
    )


def parse_reply(response: httpx2.Response) -> dict[str, Any]:
    """The JSON object of a successful reply.

    Raises:
        Failed: another content type, no JSON, or no object. It is retried, because gateways fail at times.
    """
    content_type, body = response.headers.get("content-type", ""), read_body(response)
    if isinstance(body, dict) and "json" in content_type.lower():
        return body
    problem = f"is JSON but no object ({type(body).__name__})"
    if "json" not in content_type.lower():
        is_text = content_type.startswith("text/") or not content_type
        message = cover_line(find_error_message(body)) if is_text else "no text"
        problem = f"is {cover_line(content_type) or 'of no type'}, not JSON ({message}). Check the address"
    elif isinstance(body, str):
        problem = "is no JSON"
    raise Failed("bad_reply", f"the reply {problem}.", "later", charged=True)


def read_body(response: httpx2.Response) -> object:
    """The parsed JSON of a body of any content type, or its text."""
    try:
        return parse_json(response.content, "none")
    except ValueError:
        return response.text


def classify_break(error: openai.APIError, url: str) -> Failed:
    """The failure of a connection to an address."""
    import openai

    cause = error.__cause__
    charged = not isinstance(cause, _NOT_SENT)
    detail = cover_line(f"{type(cause).__name__}: {cause}" if str(cause or "") else type(cause or error).__name__)
    if isinstance(error, openai.APITimeoutError) and charged:
        return Failed("timeout", f"no answer in time ({detail}).", "later", charged=True)
    kind = "timeout" if isinstance(error, openai.APITimeoutError) else "api_error"
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        remedy = "If the server is yours, name the file with its certificate in SSL_CERT_FILE."
        return Failed(kind, f"its certificate has no known issuer ({detail}). {remedy}", for_all=True)
    return Failed(kind, f"the connection failed ({detail}){describe_proxy(url)}.", "later", charged=charged)


def classify_refusal(refusal: Refusal) -> Failed:
    """The failure that a server's error means."""
    status, message, headers = refusal.status, refusal.message, refusal.headers
    if status == 401:
        return Failed("refused_key", f"the key was refused (401): {message.rstrip('.')}. Check the key.", for_all=True)
    if status == 403:
        return Failed("refused_key", f"the key may not do this (403): {message}")
    if status == 402 or "insufficient_quota" in (refusal.code, refusal.error.get("type")):
        return Failed("api_error", f"nothing is left on the account ({status}): {message}", for_all=True)
    wait_s = retry_after_s(headers)
    if status == 429:
        return Failed("api_error", f"too many requests (429): {message}", "slower", wait_s)
    if status in (408, 409, 425) or status >= 500:
        return Failed("api_error", f"the server failed ({status}): {message}", "later", wait_s, charged=status == 504)
    if status == 200:
        return Failed("api_error", f"an error in place of a reply: {message}", "later")
    if 300 <= status < 400:
        where = headers.get("location", "nowhere")
        return Failed(
            "wrong_request", f"redirected ({status}) to {cover_line(where)}; give that address with --base-url."
        )
    return Failed("wrong_request", f"the request was refused ({status}): {message}")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (RFC 9110: seconds or a date); None without either."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            wait_s = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if math.isfinite(wait_s):
            return max(0.0, wait_s)
    try:
        due = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, IndexError):
        return None
    due = due if due.tzinfo is not None else due.replace(tzinfo=UTC)
    return max(0.0, (due - datetime.now(UTC)).total_seconds())
