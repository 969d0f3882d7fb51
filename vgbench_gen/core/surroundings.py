"""Errors whose culprit is the machine around the program: libraries, proxies, certificates, memory."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

from vgbench_gen.core.errors import VGBenchError, escape_surrogates
from vgbench_gen.core.lines import make_one_line

# The Debian packages of libraries that our dependencies take from the system.
DEBIAN_PACKAGES = {
    "libGL.so.1": "libgl1", "libEGL.so.1": "libegl1", "libX11.so.6": "libx11-6", "libusb-1.0.so.0": "libusb-1.0-0",
    "libudev.so.1": "libudev1", "libidn2.so.0": "libidn2-0", "libgomp.so.1": "libgomp1", "libstdc++.so.6": "libstdc++6",
    "libglib-2.0.so.0": "libglib2.0-0", "libgthread-2.0.so.0": "libglib2.0-0", "libxcb.so.1": "libxcb1",
    "libSM.so.6": "libsm6", "libICE.so.6": "libice6", "libXext.so.6": "libxext6", "libXrender.so.1": "libxrender1",
    "libfontconfig.so.1": "libfontconfig1", "libz.so.1": "zlib1g", "libgfortran.so.5": "libgfortran5",
}  # fmt: skip
_MISSING = re.compile(
    r"(?P<library>lib[\w.+-]+\.so[\w.]*): cannot open shared object file"
    r"|loading shared library (?P<musl>lib[\w.+-]+\.so[\w.]*)"
)
_NO_MEMORY = re.compile(
    r"failed to map segment(?!.*not permitted)|can't start new thread|failed to launch worker thread|bad_alloc"
    r"|cannot allocate memory|malloc of size \d+ failed|insufficient memory|(?:unable|failed) to allocate",
    re.IGNORECASE,
)
_SHOWN_CHARS = 160


def explain_surroundings(error: BaseException) -> str | None:
    """What of the machine an error, or what it came from, is owed to, with what to do; None where that is not known."""
    one: BaseException | None = error
    while one is not None:
        # What our own errors say may quote anybody.
        if not isinstance(one, VGBenchError) and (told := _explain(one)):
            return told
        one = one.__cause__ or one.__context__
    return None


def describe_missing_library(text: str) -> str | None:
    """The library of the system that an error of the loader misses, and the package that brings it."""
    if (found := _MISSING.search(text)) is None:
        return None
    library = found["library"] or found["musl"]
    package = DEBIAN_PACKAGES.get(library)
    remedy = f"apt-get install {package}" if package else f"install the package of your system that holds {library}"
    if re.search(r"-[0-9a-f]{8}\.", library):  # a copy that a wheel brings
        remedy = "install the Python package again that brings it: make setup"
    return f"{library} is missing on this machine, and a package that is needed loads it: {remedy}."


def find_proxy_variable(url: str) -> tuple[str, bool]:
    """(variable that names a proxy for an address, "" for none; whether the address is asked through it).

    As everywhere NO_PROXY says what is asked directly. Where it is not set, so are addresses of this machine.
    """
    from urllib.parse import urlsplit
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    from vgbench_gen.core.local_server import is_loopback

    parts = urlsplit(url)
    spelled = (name for scheme in (parts.scheme, "all") for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()))
    variable = next((name for name in spelled if os.environ.get(name)), "")
    host, says = parts.hostname or "", "no_proxy" in os.environ or "NO_PROXY" in os.environ
    direct = bool(proxy_bypass_environment(host)) if says else is_loopback(host)
    return variable, bool(variable) and not direct


def describe_proxy(url: str) -> str:
    """How a connection to an address that failed was made, where a proxy may be the reason; "" where none is named."""
    variable, used = find_proxy_variable(url)
    proxy = f"the {os.environ.get(variable, '').partition('://')[0]} proxy of {variable}"
    if used:
        return f", through {proxy}; hosts that need none are listed in NO_PROXY"
    return f", asked directly and not through {proxy}, as NO_PROXY or its absence says" if variable else ""


def _name_proxies(is_meant: Callable[[str], bool]) -> str:
    spelled = (name for known in ("all_proxy", "https_proxy", "http_proxy") for name in (known, known.upper()))
    return " or ".join(name for name in spelled if is_meant(os.environ.get(name, "").partition("://")[0].lower()))


def _explain(error: BaseException) -> str | None:
    text = str(error)
    code = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or code == errno.ENOMEM or _NO_MEMORY.search(text):
        detail = make_one_line(text[text.find("Original error") :] if "Original error" in text else text, _SHOWN_CHARS)
        return (
            f"this process may not have more memory or threads ({detail or type(error).__name__}). Raise the limit "
            "(`ulimit -v`, `ulimit -u`, or the container's), or use fewer --workers."
        )
    if isinstance(error, UnicodeEncodeError) and "surrogates" in text:
        name = make_one_line(escape_surrogates(error.object), _SHOWN_CHARS)
        return f"{name}: a name that is no UTF-8, which pyarrow does not take. Rename it, or go there by a link."
    if isinstance(error, ImportError) and "socksio" in text:
        names = _name_proxies(lambda scheme: scheme.startswith("socks"))
        return f"{names} names a SOCKS proxy, which needs a package: pip install socksio."
    if isinstance(error, ImportError | OSError) and (told := describe_missing_library(text)):
        return told
    if isinstance(error, ValueError) and "scheme for proxy" in text:
        names = _name_proxies(lambda scheme: scheme not in ("", "http", "https", "socks5", "socks5h"))
        return f"{names} names a proxy that cannot be used; expected http://HOST:PORT or socks5://HOST:PORT."
    if "X509" in text or (
        code in (errno.ENOENT, errno.EISDIR, errno.EACCES) and getattr(error, "filename", None) is None
    ):
        for name, is_right in (("SSL_CERT_FILE", Path.is_file), ("SSL_CERT_DIR", Path.is_dir)):
            if (path := os.environ.get(name)) and ("X509" in text or not is_right(Path(path))):
                return f"{name}={path}: found no certificates there. Correct the variable or unset it."
    return None
