"""The way to a server: proxies and certificates that the environment names, and what is said of those that fail."""

from __future__ import annotations

import datetime
import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.fixtures import request
from tests.backends.server import reply, serving
from vgbench_gen.backends.base import BackendError, Reply
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, open_backend

DEAD = "http://user:pass-word-9@127.0.0.1:9"
FAR = "http://proxied.invalid/v1"  # which no resolver knows


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def ask(url: str) -> Reply | BackendError:
    (outcome,) = ask_all(open_backend(f"vllm:{url}#m", BackendOptions(retries=0, timeout_s=20)), [request("x")])
    if isinstance(outcome, BackendError):
        assert outcome.message.isprintable()
        assert "pass-word-9" not in outcome.message
    return outcome


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("HTTP_PROXY", DEAD, "through the http proxy of HTTP_PROXY; hosts that need none are listed in NO_PROXY"),
        ("http_proxy", DEAD, "through the http proxy of http_proxy"),
        ("ALL_PROXY", DEAD, "through the http proxy of ALL_PROXY"),
        ("HTTPS_PROXY", DEAD, "the connection failed (ConnectError"),
        ("ALL_PROXY", "socks://127.0.0.1:1080/", "ALL_PROXY names a proxy that cannot be used"),
        ("all_proxy", "ftp://127.0.0.1", "all_proxy names a proxy that cannot be used"),
        ("ALL_PROXY", "socks5://127.0.0.1:9", "ALL_PROXY"),  # with or without the package for it
    ],
)
def test_a_proxy_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str) -> None:
    monkeypatch.setenv(variable, value)
    outcome = ask(FAR)
    assert isinstance(outcome, BackendError)
    assert said in outcome.message
    assert ("PROXY" in outcome.message.upper()) == (variable != "HTTPS_PROXY")


@pytest.mark.parametrize("value", [DEAD, "socks5://127.0.0.1:9", "socks://127.0.0.1:9", "http://[bad"])
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_server_on_this_machine_is_asked_directly(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with serving(lambda seen: reply()) as server:
        assert isinstance(ask(server.url), Reply)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,other")
        assert isinstance(ask(server.url), Reply)
    outcome = ask("http://127.0.0.1:9/v1")
    assert isinstance(outcome, BackendError)
    assert f"not through the {value.partition('://')[0]} proxy of {variable}" in outcome.message


def test_a_server_on_this_machine_is_asked_through_a_proxy_where_the_user_wants_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(lambda seen: reply()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        assert isinstance(ask("http://127.0.0.1:9/v1"), Reply)
        assert [seen.path for seen in proxy.seen] == ["http://127.0.0.1:9/v1/chat/completions"]


@pytest.mark.parametrize("kind", ["gone.pem", "text", "."])
def test_certificates_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    (tmp_path / "text").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / kind))
    outcome = ask("https://127.0.0.1:9/v1")
    assert isinstance(outcome, BackendError)
    assert f"SSL_CERT_FILE={tmp_path / kind}: found no certificates there" in outcome.message


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address, certificate) of a server whose certificate it signed itself."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    certificate, secret = folder / "own.pem", folder / "key.pem"
    certificate.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = reply().body
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, secret)
    with http.server.ThreadingHTTPServer(("localhost", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_port}/v1", certificate
        server.shutdown()


def test_a_certificate_that_a_server_signed_itself_is_taken_where_the_user_names_it(
    secure: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, certificate = secure
    outcome = ask(url)
    assert isinstance(outcome, BackendError)
    assert "name the file with its certificate in SSL_CERT_FILE" in outcome.message
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert isinstance(ask(url), Reply)
