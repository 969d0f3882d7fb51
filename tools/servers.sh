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

uv=$VENV/bin/uv
[ -x "$uv" ] || { say "no uv in $VENV; leaving out: $SERVERS"; exit 0; }
# uv does not read pip's settings, among which a machine may name a folder of wheels.
if [ -z "${UV_FIND_LINKS:-}" ]; then
  links=$("$VENV/bin/python" -m pip config list 2>/dev/null | sed -n "s/^[a-z:.]*find-links='\(.*\)'$/\1/p" | tail -1) || links=
  [ -z "$links" ] || export UV_FIND_LINKS=${links//\\n/,}
fi
export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-300}

# Is the folder newer than what it is made from?
fresh() {
  local folder=$1 file
  shift
  [ -e "$folder/.made" ] || return 1
  for file in tools/servers.sh "$@"; do [ "$folder/.made" -nt "$file" ] || return 1; done
}

# Installs into a new folder what the other arguments name.
fill() {
  local folder=$1
  shift
  say "making $folder"
  "$uv" venv --quiet --clear --python "$VENV/bin/python" "$folder" &&
    "$uv" pip install --quiet --python "$folder/bin/python" "$@" && touch "$folder/.made"
}

litellm() {
  fresh .venv-litellm tools/litellm-constraints.txt ||
    fill .venv-litellm -c tools/litellm-constraints.txt "litellm[proxy]" ||
    say "LiteLLM cannot be installed here; tests against its proxy are skipped"
}

torch() {
  fresh .venv-servers pyproject.toml constraints.txt tools/torch-constraints.txt && return
  local wanted=(-c constraints.txt -c tools/torch-constraints.txt -e '.[azure,fast,review,transformers]' --group dev
    'transformers[serving]') choice plan
  for choice in "" "--torch-backend=cpu"; do
    # The public wheel for Linux is built for CUDA and brings 5 GB of it: not for a test that runs on a CPU.
    plan=$("$uv" pip install --dry-run $choice --python "$VENV/bin/python" "${wanted[@]}" 2>&1) || continue
    if ! grep -q '^ + nvidia-' <<<"$plan"; then
      fill .venv-servers $choice "${wanted[@]}" && return
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
