"""`make setup`: what it installs, from where, with whose certificates, and when it runs a package manager as root."""

from __future__ import annotations

import base64
import hashlib
import http.server
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
SET_APART = {"CI", "SYSTEM_PACKAGES", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PART"}
CLEAN = {name: value for name, value in os.environ.items() if name not in SET_APART and name[:3] not in {"PIP", "UV_"}}

# Stands for python3, for the python and uv of the environment that it makes, and for apt-get, sudo and id.
FAKE = """#!/bin/bash
name=$(basename "$0")
echo "$name $*" | sed "s#/dev/fd/[0-9]*#LOCK#" >>"$CALLS"
case "$name $*" in
  id*) echo "$ID" ;;
  sudo*) shift; exec "$@" ;;
  apt-get*install*) touch "$CALLS.apt" ;;
  *CDLL*libGL*) [ "$GL" = there ] || [ -e "$CALLS.apt" ] ;;
  "python3 -m venv"*) mkdir -p "$VENV/bin"; cp "$0" "$VENV/bin/python"; cp "$0" "$VENV/bin/uv" ;;
  "uv pip install"*) exit "$UV" ;;
  *compileall*) [ "$GL" = there ] || [ -e "$CALLS.apt" ] || { echo "ImportError: libGL.so.1" >&2; exit 1; } ;;
esac
"""


def run_setup(folder: Path, **settings: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """tools/setup.sh among programs that do nothing, and the calls of pip, uv and apt-get that it made."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("python3", "apt-get", "sudo", "id"):
        (programs / name).write_text(FAKE)
        (programs / name).chmod(0o755)
    calls = folder / "calls"
    env = CLEAN | {"PATH": f"{programs}:{os.environ['PATH']}", "VENV": str(folder / "venv"), "CALLS": str(calls)}
    env |= {"ID": "0", "UV": "0", "GL": "there"} | settings
    done = subprocess.run(["bash", "tools/setup.sh"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    asked = ("apt-get", "sudo", "uv pip install", "python -m pip install")
    return done, [line for line in calls.read_text().splitlines() if line.startswith(asked)]


@pytest.mark.parametrize("uv", ["0", "2"])
def test_every_package_comes_in_by_its_hash_also_where_uv_cannot(tmp_path: Path, uv: str) -> None:
    done, calls = run_setup(tmp_path, UV=uv)
    assert done.returncode == 0, done.stderr
    installers = [line.partition(" install")[0] for line in calls]
    assert installers == ["python -m pip", "uv pip", *(["uv pip"] if uv == "0" else ["python -m pip"] * 2)]
    assert all("--require-hashes" in line or line.endswith("--no-deps --no-build-isolation -e .") for line in calls)
    assert ("trying pip" in done.stderr) == (uv != "0")


@pytest.mark.parametrize(
    ("settings", "ran"),
    [
        ({}, False),
        ({"SYSTEM_PACKAGES": "1"}, True),
        ({"SYSTEM_PACKAGES": "1", "ID": "1000"}, True),
        ({"CI": "true"}, True),
        ({"CI": "false"}, False),
        ({"CI": "true", "SYSTEM_PACKAGES": "0"}, False),
    ],
)
def test_apt_runs_as_root_only_where_it_is_asked_for(tmp_path: Path, settings: dict[str, str], ran: bool) -> None:
    done, calls = run_setup(tmp_path, GL="missing", **settings)
    command = "apt-get update && apt-get install -y --no-install-recommends libgl1"
    apt = [line for line in calls if line.startswith(("apt-get", "sudo"))]
    assert [line for line in apt if line.startswith("apt-get")] == (command.split(" && ") if ran else [])
    assert ran or not apt
    assert any(line.startswith("sudo -n env") for line in apt) == (settings.get("ID") == "1000")
    # Without it, all else is installed, the command is printed once, and what is missing fails in one line.
    assert len([line for line in calls if line.startswith("uv")]) == 2
    assert (done.returncode == 0) == ran
    assert done.stderr.count(f"sudo sh -c '{command}'") == (0 if ran else 1)
    assert ("ImportError: libGL.so.1" in done.stderr and "that are missing: libgl1\n" in done.stderr) != ran


def read_lock() -> dict[str, tuple[str, str]]:
    """Package -> (version, part) of constraints.txt, where every package has a version and hashes."""
    found: dict[str, tuple[str, str]] = {}
    part: list[tuple[str, str]] = []
    for entry in re.split(r"\n(?! )", (ROOT / "constraints.txt").read_text().strip()):
        if pinned := re.match(r"([a-z0-9-]+)==([^ ]+)( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+$", entry):
            part.append((pinned[1], pinned[2]))
        elif entry.startswith("## end of "):
            found |= {name: (version, entry[10:]) for name, version in part}
            part = []
        else:
            assert entry.startswith("# "), entry
    assert not part
    return found


def test_constraints_hold_all_that_pyproject_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lock, header = read_lock(), (ROOT / "constraints.txt").read_text().partition("==")[0]
    extras = [name for name in project["project"]["optional-dependencies"] if re.search(rf"\b{name}\b", header)]
    assert len(extras) == 7
    small = {"fast", "review"}  # what `make demo` and the guide need
    wanted = [("build", text) for text in project["build-system"]["requires"] + project["dependency-groups"]["build"]]
    wanted += [("setup", text) for text in project["project"]["dependencies"]]
    for name in extras:
        part = "setup" if name in small else "extras"
        wanted += [(part, text) for text in project["project"]["optional-dependencies"][name]]
    wanted += [(part, text) for part in ("dev", "docs") for text in project["dependency-groups"][part]]
    order = ["build", "setup", "extras", "dev", "docs"]
    for part, text in wanted:
        requirement = Requirement(text)
        version, where = lock[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(Version(version)), f"{text}: constraints.txt has {version}; run make lock"
        assert order.index(where) <= order.index(part), f"{text}: constraints.txt has it in {where}; run make lock"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A package index on this machine and the certificate of the authority that signed its own."""
    if not shutil.which("openssl"):
        pytest.skip("needs the program openssl to make certificates")
    folder = tmp_path_factory.mktemp("index")
    commands = (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ours",
        "req -newkey rsa:2048 -nodes -keyout key -out request -subj /CN=localhost",
        "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert",
    )
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    for command in commands:
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    pages = folder / "simple" / "vgbench-probe"
    pages.mkdir(parents=True)
    about = "vgbench_probe-1.0.dist-info"
    files = {
        "vgbench_probe.py": b"",
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: vgbench-probe\nVersion: 1.0\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        for name, data in files.items()
    }
    record = "".join(f"{name},sha256={digests[name]},{len(data)}\n" for name, data in files.items())
    wheel = "vgbench_probe-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pages / wheel, "w") as archive:
        for name, data in (files | {f"{about}/RECORD": f"{record}{about}/RECORD,,\n".encode()}).items():
            archive.writestr(name, data)
    (pages / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None: ...

    with Server(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert", folder / "key")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_port}/simple/", folder / "ca.pem"
        server.shutdown()


@pytest.mark.parametrize(
    ("installer", "variable"),
    [
        ("uv", ""),
        ("uv", "SSL_CERT_FILE"),
        ("uv", "PIP_CERT"),
        ("uv", "REQUESTS_CA_BUNDLE"),
        ("uv", "pip.conf"),
        ("pip", "SSL_CERT_FILE"),
    ],
)
def test_certificates_of_one_s_own_hold_for_uv_and_pip(
    index: tuple[str, Path], tmp_path: Path, installer: str, variable: str
) -> None:
    address, authority = index
    (tmp_path / "pip.conf").write_text(f"[global]\ncert = {authority if variable == 'pip.conf' else ''}\n")
    command = {
        "uv": '"$VENV/bin/uv" pip install --python "$VENV/bin/python" --no-cache --no-config',
        "pip": '"$VENV/bin/python" -m pip install --no-cache-dir --disable-pip-version-check --retries 0',
    }[installer]
    script = (
        f'source tools/packages.sh; share_certificates; {command} --target "$0" --index-url {address} vgbench-probe'
    )
    env = CLEAN | {"VENV": sys.prefix, "UV_HTTP_RETRIES": "0", "NO_PROXY": "localhost", variable or "X": str(authority)}
    env |= {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
    target = tmp_path / "target"
    done = subprocess.run(
        ["bash", "-c", script, str(target)], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (target / "vgbench_probe.py").is_file() == bool(variable), done.stderr


@pytest.mark.parametrize(
    ("about", "accepted"),
    [
        ("License-Expression: MIT", True),
        ("License-Expression: MIT OR GPL-3.0-or-later", True),
        ("License-Expression: (MIT OR Apache-2.0) AND BSD-3-Clause", True),
        ("License: BSD-2-Clause", True),
        ("License: a text\nClassifier: License :: OSI Approved :: MIT License", True),
        ("License-Expression: MIT AND GPL-3.0-or-later", False),
        ("License-Expression: (MIT OR GPL-2.0-only) AND MIT", False),
        ("License: MIT\nClassifier: License :: OSI Approved :: GNU Affero General Public License v3", False),
        ("License: GPL-3.0+", False),
        ("Classifier: License :: OSI Approved", False),
        ("Summary: says nothing", False),
    ],
)
def test_a_package_whose_license_does_not_fit_fails_by_name(tmp_path: Path, about: str, accepted: bool) -> None:
    folder = tmp_path / "probe-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: probe\nVersion: 1.0\n{about}\n")
    (tmp_path / "constraints.txt").write_text("probe==1.0 \\\n## end of extras\nnot-installed-either==1.0 \\\n")
    done = subprocess.run(
        [sys.executable, "tools/licenses.py", str(tmp_path / "constraints.txt")],
        cwd=ROOT, env=CLEAN | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) == accepted, done.stdout
    assert done.stdout.startswith("probe: its license is ") != accepted


def test_licenses_of_what_is_not_installed_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").write_text("probe==1.0 \\\n## end of extras\n")
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("probe")
    command = [sys.executable, "tools/licenses.py", str(tmp_path / "constraints.txt")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("probe: not installed")
