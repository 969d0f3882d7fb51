#!/usr/bin/env bash
# Environments in which other people's harnesses run the tasks that `vgbench export` writes; harmless to run again.
#   .venv-lmms-eval    lmms-eval from the package index (2 GB)
#   .venv-vlmevalkit   VLMEvalKit, which is in no index, from its sources under git (2 GB)
# What cannot be had here is told and left out; the tests that need it are then skipped.
# Environment: VENV (.venv), HARNESSES (lmms-eval vlmevalkit), VLMEVALKIT (where git finds its sources).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv} HARNESSES=${HARNESSES-lmms-eval vlmevalkit}
VLMEVALKIT=${VLMEVALKIT:-https://github.com/open-compass/VLMEvalKit}
VLMEVALKIT_COMMIT=e8e78f05f3080fe28154f2130321f17951c3be94
source tools/packages.sh

need_uv "$HARNESSES"

fresh() {
  made_after "$1" tools/harnesses.sh "tools/${1#.venv-}-constraints.txt"
}

# Installs into an empty environment what the other arguments name, with torch for the CPU: that for CUDA brings 5 GB.
fill() {
  local folder=$1 choice plan wanted
  shift
  wanted=(-c "tools/${folder#.venv-}-constraints.txt" "$@")
  for choice in "" "--torch-backend=cpu"; do
    plan=$("$uv" pip install --dry-run $choice --python "$folder/bin/python" "${wanted[@]}" 2>&1) || continue
    grep -q '^ + nvidia-' <<<"$plan" && continue
    "$uv" pip install --quiet $choice --python "$folder/bin/python" "${wanted[@]}" && touch "$folder/.made" && return
  done
  return 1
}

empty() {
  say "making $1"
  "$uv" venv --quiet --clear --python "$VENV/bin/python" "$1"
}

lmms-eval() {
  fresh .venv-lmms-eval && return
  empty .venv-lmms-eval && fill .venv-lmms-eval lmms-eval ||
    say "lmms-eval cannot be installed here; tests with it are skipped"
}

# Its own list of requirements lacks rouge-score, which it imports.
vlmevalkit() {
  fresh .venv-vlmevalkit && return
  local sources=.venv-vlmevalkit/src
  empty .venv-vlmevalkit && git init --quiet "$sources" &&
    git -C "$sources" fetch --quiet --depth 1 "$VLMEVALKIT" "$VLMEVALKIT_COMMIT" &&
    git -C "$sources" checkout --quiet FETCH_HEAD && fill .venv-vlmevalkit -e "$sources" rouge-score ||
    say "VLMEvalKit cannot be installed here (sources: $VLMEVALKIT); tests with it are skipped"
}

for harness in $HARNESSES; do
  case $harness in
    lmms-eval | vlmevalkit) $harness ;;
    *) die "no harness is called '$harness'; known: lmms-eval vlmevalkit" ;;
  esac
done
