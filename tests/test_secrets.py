"""No file of the repository holds a key: forms that providers give their keys, and private keys."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# From the providers' own pages. Keys that tests make up are shorter, or have no digits where these have.
FORMS = {
    "private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60,})",
    "Hugging Face": r"\bhf_[A-Za-z]{34}\b",
    "OpenAI": r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20}T3BlbkFJ[A-Za-z0-9_-]{20}",
    "Anthropic": r"\bsk-ant-[a-z]+\d\d-[\w-]{80}",
    "Google": r"\bAIza[\w-]{35}\b",
    "OpenRouter": r"\bsk-or-v1-[0-9a-f]{64}\b",
    "Slack": r"\bxox[abprs]-\d{10,}-[\w-]{10,}",
    "PyPI": r"\bpypi-AgEIcHlwaS5vcmc[\w-]{50,}",
    "JSON Web Token": r"\beyJ[\w-]{16,}\.eyJ[\w-]{16,}\.[\w-]{20,}",
}
SECRET = re.compile("|".join(f"(?:{form})" for form in FORMS.values()).encode())


def test_no_tracked_file_holds_a_key() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("needs the git repository: what counts is what is in it")
    found = [
        name
        for name in listed.stdout.decode().split("\0")
        if name and (ROOT / name).is_file() and SECRET.search((ROOT / name).read_bytes())
    ]
    assert not found


@pytest.mark.parametrize(
    "key",
    ["-----BEGIN OPENSSH " + "PRIVATE KEY-----", "AKIA" + "ABCDEFGHIJKLMNOP", "ghp_" + "a1" * 18, "hf_" + "aB" * 17]
    + ["sk-proj-" + "a1" * 10 + "T3Blbk" + "FJ" + "b2" * 10, "sk-ant-" + "api03-" + "a1-_" * 20, "AIza" + "a1-_x" * 7]
    + ["sk-or-" + "v1-" + "0f" * 32, "xoxb-" + "1234567890-" + "abcdefghij", "pypi-" + "AgEIcHlwaS5vcmc" + "a1" * 30]
    + ["eyJ" + "hbGciOiJSUzI1NiIsIn.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn.sig" + "nature-of-twenty-characters"],
)  # fmt: skip
def test_keys_are_recognised(key: str) -> None:
    assert SECRET.search(f"KEY={key}\n".encode())
