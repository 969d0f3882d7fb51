#!/usr/bin/env bash
# The browser that tests drive: Debian's Chromium, or the one that is there. Called by `make test`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/packages.sh

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
need_packages "pages are tested in a browser" chromium
