#!/usr/bin/env bash
# Environments of trainers, in which their own loaders read what `vgbench export` writes; harmless to run again.
# One folder for each list of packages in tools/trainers/: .venv-train-NAME (0.5 to 3 GB each).
# What cannot be had here is told and left out; the tests that need it are then skipped.
# Environment: VENV (.venv), TRAINERS (all).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv} TRAINERS=${TRAINERS-$(cd tools/trainers && ls -- *.txt | sed 's/\.txt$//')}
source tools/packages.sh

need_uv "$TRAINERS"

# The lists are whole, and leave out what only GPUs and servers need; pip, because one of them declares a newer Python
# than it needs. The public wheel of torch is built for CUDA, so uv puts that for the CPU in its place.
fill() {
  local folder=$1 list=$2 torch
  "$VENV/bin/python" -m pip --python "$folder/bin/python" install --quiet --no-deps --ignore-requires-python -r "$list" || return 1
  torch=$(grep '^torch==' "$list" || true)
  if [ -n "$torch" ] && ! "$folder/bin/python" -c "import torch" 2>/dev/null; then
    "$uv" pip install --quiet --no-deps --torch-backend=cpu --reinstall --python "$folder/bin/python" "$torch" || return 1
  fi
  touch "$folder/.made"
}

for name in $TRAINERS; do
  list=tools/trainers/$name.txt folder=.venv-train-$name
  [ -f "$list" ] || die "no trainer is called '$name'; known: $(cd tools/trainers && ls -- *.txt | sed 's/\.txt$//' | tr '\n' ' ')"
  made_after "$folder" tools/trainers.sh "$list" && continue
  say "making $folder"
  { "$uv" venv --quiet --clear --python "$VENV/bin/python" "$folder" && fill "$folder" "$list"; } ||
    say "$name cannot be installed here; tests with it are skipped"
done
