"""What the digests depend on besides the code: packages that compute or encode, and the processor."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("numpy", "scipy", "opencv-python", "open3d", "scikit-learn", "pyarrow", "pillow", "av")


def here() -> dict[str, str]:
    """Versions of the packages and the family of the processor."""
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "processor": _processor()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    wide = "avx512" if "avx512f" in told.get("flags", "") else "no avx512"
    return f"{platform.machine()} {told.get('vendor_id', '')} family {told.get('cpu family', '')} {wide}"
