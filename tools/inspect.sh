#!/usr/bin/env bash
# Make .venv-inspect: all of .venv and inspect-ai (files that both have are shared on disk). `vgbench` runs there as in
# .venv, and so do the tests of what passes between the two. Harmless to run again.
# Environment: VENV (.venv), INSPECT (.venv-inspect).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv} INSPECT=${INSPECT:-.venv-inspect}
source tools/packages.sh

uv=$VENV/bin/uv
[ -x "$uv" ] || { say "no uv in $VENV; leaving out $INSPECT"; exit 0; }
# uv does not read pip's settings, among which a machine may name a folder of wheels.
if [ -z "${UV_FIND_LINKS:-}" ]; then
  links=$("$VENV/bin/python" -m pip config list 2>/dev/null | sed -n "s/^[a-z:.]*find-links='\(.*\)'$/\1/p" | tail -1) || links=
  [ -z "$links" ] || export UV_FIND_LINKS=${links//\\n/,}
fi
export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-300}

fresh=1
for file in tools/inspect.sh tools/inspect-constraints.txt constraints.txt pyproject.toml; do
  [ "$INSPECT/.made" -nt "$file" ] || fresh=
done
[ -z "$fresh" ] || exit 0

say "making $INSPECT"
pins=$(mktemp)
trap 'rm -f "$pins"' EXIT
# One version of a package can be asked for: those of inspect's own list go first.
cut -s -d= -f1 tools/inspect-constraints.txt | sed '/^#/d; s/.*/^&==/' | grep -vf - constraints.txt >"$pins"
"$uv" venv --quiet --clear --python "$VENV/bin/python" "$INSPECT" &&
  "$uv" pip install --quiet --python "$INSPECT/bin/python" -c "$pins" -c tools/inspect-constraints.txt \
    -e '.[azure,fast,inspect]' --group dev && touch "$INSPECT/.made" ||
  say "inspect-ai cannot be installed here; tests with it are skipped"
