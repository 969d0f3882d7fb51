#!/usr/bin/env bash
# Build the documentation site into the folder named first. Called by `make docs`; installs the group `docs` into VENV (.venv).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv} OUT=${1:-build/site}

source tools/packages.sh

if ! "$VENV/bin/python" -c 'import furo, myst_parser, sphinx' 2>/dev/null; then
  say "installing what the documentation needs"
  if [ -x "$VENV/bin/uv" ]; then
    "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" -c constraints.txt --group docs
  else
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt --group docs
  fi
fi
# -W: a warning fails, --keep-going: after all of them were named; -n: so does every reference that leads nowhere.
"$VENV/bin/python" -m sphinx -W --keep-going -n -q -b html docs "$OUT"
say "the site: $OUT/index.html"
