#!/usr/bin/env bash
# Write constraints.txt, part by part: versions that still fit pyproject.toml stay; with --upgrade all become the newest.
# Called by `make lock`. Environment: VENV (.venv).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

resolve() {
  "$VENV/bin/uv" pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
    --no-annotate --no-header "$@"
}

wanted=(pyproject.toml --extra fast --extra review --group build)
extras=(--extra azure --extra excel --extra mcp --extra publish --extra ray)
cp constraints.txt "$work/all"
resolve "$@" "${wanted[@]}" "${extras[@]}" --group dev --group docs --output-file "$work/all" >/dev/null
# What every line asks for, as all of this is for the machines that pyproject.toml names.
everywhere=$(sed -n 's/^numpy==[^ ]*\( ; .*\) \\$/\1/p' "$work/all")

grep '^# ' constraints.txt >"$work/new"
for part in build setup extras dev docs; do
  case $part in
    build) now=(--group build) ;;
    setup) now=("${wanted[@]}") ;;
    extras) now+=("${extras[@]}") ;;
    *) now+=(--group "$part") ;;
  esac
  mapfile -t had < <(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package=\1/p' "$work/new")
  found=$(resolve --constraint "$work/all" "${now[@]}" "${had[@]}" | grep -v '^#')
  printf '%s\n## end of %s\n' "${found//"$everywhere"/}" "$part" >>"$work/new"
done
cp "$work/new" constraints.txt
