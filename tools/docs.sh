#!/usr/bin/env bash
# Build the documentation site into the folder named first. Called by `make docs`; installs what it needs into VENV (.venv).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv} OUT=${1:-build/site}

source tools/packages.sh

"$VENV/bin/python" -c 'import furo, myst_parser, sphinx' 2>/dev/null || VENV=$VENV PART=docs bash tools/setup.sh
# -W: a warning fails, --keep-going: after all of them were named; -n: so does every reference that leads nowhere.
"$VENV/bin/python" -m sphinx -W --keep-going -n -q -b html docs "$OUT"
say "the site: $OUT/index.html"
