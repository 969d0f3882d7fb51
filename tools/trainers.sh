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

# Torch for the CPU: that for CUDA brings 5 GB.
fill() {
  local folder=$1 list=$2 choice plan
  for choice in "" "--torch-backend=cpu"; do
    plan=$("$uv" pip install --dry-run $choice --python "$folder/bin/python" -r "$list" 2>&1) || continue
    grep -q '^ + nvidia-' <<<"$plan" && continue
    "$uv" pip install --quiet $choice --python "$folder/bin/python" -r "$list" && touch "$folder/.made" && return
  done
  return 1
}

for name in $TRAINERS; do
  list=tools/trainers/$name.txt folder=.venv-train-$name
  [ -f "$list" ] || die "no trainer is called '$name'; known: $(cd tools/trainers && ls -- *.txt | sed 's/\.txt$//' | tr '\n' ' ')"
  made_after "$folder" tools/trainers.sh "$list" && continue
  say "making $folder"
  { "$uv" venv --quiet --clear --python "$VENV/bin/python" "$folder" && fill "$folder" "$list"; } ||
    say "$name cannot be installed here; tests with it are skipped"
done
