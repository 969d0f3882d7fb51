#!/usr/bin/env bash
# The browser that tests drive: Debian's Chromium, or the one that is there; and axe-core, which looks for text that is
# hard to read. Called by `make test`. Without npm, tests that need axe-core are skipped and say so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/packages.sh

AXE=4.14.1
if [ ! -f ".venv-axe/$AXE" ]; then
  if command -v npm >/dev/null && npm install --silent --no-save --no-audit --no-fund --prefix .venv-axe "axe-core@$AXE"; then
    touch ".venv-axe/$AXE"
  else
    echo "axe-core could not be installed by npm: tests of contrast will be skipped." >&2
  fi
fi

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
need_packages "pages are tested in a browser; without one those tests are skipped" chromium || true
