#!/usr/bin/env bash
# Make .venv-inspect: all of .venv and inspect-ai (files that both have are shared on disk). `vgbench` runs there as in
# .venv, and so do the tests of what passes between the two. Harmless to run again.
# Environment: VENV (.venv), INSPECT (.venv-inspect).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv} INSPECT=${INSPECT:-.venv-inspect}
source tools/packages.sh

need_uv "$INSPECT"

made_after "$INSPECT" tools/inspect.sh tools/inspect-constraints.txt constraints.txt pyproject.toml && exit 0

say "making $INSPECT"
pins=$(mktemp)
trap 'rm -f "$pins"' EXIT
# One version of a package can be asked for: those of inspect's own list go first.
cut -s -d= -f1 tools/inspect-constraints.txt | sed '/^#/d; s/.*/^&==/' |
  grep -vf - <(sed -n 's/^\([a-z0-9-]*==[^ ]*\).*/\1/p' constraints.txt) >"$pins"
"$uv" venv --quiet --clear --python "$VENV/bin/python" "$INSPECT" &&
  "$uv" pip install --quiet --python "$INSPECT/bin/python" -c "$pins" -c tools/inspect-constraints.txt \
    -e '.[azure,fast,inspect]' --group dev && touch "$INSPECT/.made" ||
  say "inspect-ai cannot be installed here; tests with it are skipped"
