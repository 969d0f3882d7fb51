"""Check that Apache-2.0 software may depend on every package that `make extras` installs, by what the packages say.

python tools/licenses.py [CONSTRAINTS]
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

# Permissive, but for MPL-2.0, which asks only that changes to its own files stay open.
COMPATIBLE = """
0BSD Apache-2.0 BSD BSD-2-Clause BSD-3-Clause CC0-1.0 ISC MIT MIT-0 MIT-CMU MPL-2.0 PSF-2.0 Zlib
"""
# What packages write that state no SPDX expression: classifiers, and free text.
SPELLINGS = {
    "2-clause BSD License": "BSD-2-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Package: what it says, which may stay for the reason above it.
EXCEPTIONS = {
    # LGPL-3.0: a library that is imported as it is, and that anybody may replace in the environment.
    "pebble": "GNU Library or Lesser General Public License (LGPL)",
    # States none; the repository that it is built from is under Apache-2.0.
    "mlcroissant": "",
}


def is_compatible(expression: str) -> bool:
    """Whether one alternative of an SPDX expression has compatible licenses only; with brackets, whether all have."""
    alternatives = [expression] if "(" in expression else expression.split(" OR ")
    return any(set(re.split(" AND | OR ", re.sub("[()]", "", one))) <= set(COMPATIBLE.split()) for one in alternatives)


def read_license(package: str) -> str:
    """The license that an installed package states, as an SPDX expression where it can be; "" where it states none.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    about = metadata.metadata(package)
    names = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    names = [name for name in names if name != "OSI Approved"] or about.get("License", "").strip().splitlines()[:1]
    return about.get("License-Expression") or " AND ".join(SPELLINGS.get(name, name) for name in names)


def main(constraints: Path) -> int:
    """Print each package that may not be depended on, or how many may; the exit status."""
    default = constraints.read_text().partition("## end of extras")[0]
    packages = re.findall(r"^([a-z0-9-]+)==", default, flags=re.MULTILINE)
    bad = 0
    for package in packages:
        try:
            stated = read_license(package)
        except metadata.PackageNotFoundError:
            print(f"{package}: not installed, so its license is unknown; run make extras")
            bad += 1
            continue
        if not is_compatible(stated) and EXCEPTIONS.get(package) != stated:
            print(f"{package}: its license is {stated!r}, which is not known to be compatible with Apache-2.0")
            bad += 1
    print(f"licenses: {len(packages) - bad} of {len(packages)} packages are compatible with Apache-2.0")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "constraints.txt")))
