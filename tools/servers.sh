#!/usr/bin/env bash
# Environments of their own for tests against real servers; called by `make test`, harmless to run again.
#   .venv-litellm   LiteLLM's proxy, with mock answers (600 MB; it pins another openai than ours)
#   .venv-servers   all of .venv and torch for the CPU, transformers and its server (0.9 GB more than .venv; files that
#                   both have are shared on disk)
# What cannot be had here is told and left out; the tests that need it are then skipped.
# Environment: VENV (.venv), SERVERS (litellm torch).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv} SERVERS=${SERVERS-litellm torch}
source tools/packages.sh

need_uv "$SERVERS"

# Installs into a new folder what the other arguments name.
fill() {
  local folder=$1
  shift
  say "making $folder"
  "$uv" venv --quiet --clear --python "$VENV/bin/python" "$folder" &&
    "$uv" pip install --quiet --python "$folder/bin/python" "$@" && touch "$folder/.made"
}

litellm() {
  made_after .venv-litellm tools/servers.sh tools/litellm-constraints.txt ||
    fill .venv-litellm -c tools/litellm-constraints.txt "litellm[proxy]" ||
    say "LiteLLM cannot be installed here; tests against its proxy are skipped"
}

# RAFT is all Python. The public wheel of torchvision is built for CUDA and cannot be imported beside a torch for the CPU
# as it is, so it lies in a folder of its own that only RAFT's test puts on its path.
add_torchvision() {
  "$uv" pip install --quiet --no-deps --python .venv-servers/bin/python --target .venv-servers/torchvision \
    -c tools/torch-constraints.txt torchvision || say "no torchvision to be had here; the tests of RAFT are skipped"
}

torch() {
  made_after .venv-servers tools/servers.sh pyproject.toml constraints.txt tools/torch-constraints.txt && return
  local wanted=(-c constraints.txt -c tools/torch-constraints.txt -e '.[azure,fast,review,transformers]' --group dev
    'transformers[serving]') choice plan
  for choice in "" "--torch-backend=cpu"; do
    # The public wheel for Linux is built for CUDA and brings 5 GB of it: not for a test that runs on a CPU.
    plan=$("$uv" pip install --dry-run $choice --python "$VENV/bin/python" "${wanted[@]}" 2>&1) || continue
    if ! grep -q '^ + nvidia-' <<<"$plan"; then
      fill .venv-servers $choice "${wanted[@]}" && add_torchvision && return
    fi
  done
  say "no torch for the CPU to be had here; tests of local models and of transformers' server are skipped"
}

for server in $SERVERS; do
  case $server in
    litellm | torch) $server ;;
    *) die "no server is called '$server'; known: litellm torch" ;;
  esac
done
