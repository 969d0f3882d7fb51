# Sourced by the other scripts: messages, and Debian packages where they may be installed.

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }

# Installs Debian packages where that is allowed; otherwise prints the command and stops.
need_packages() {
  local why=$1 run=()
  shift
  local command="apt-get update && apt-get install -y --no-install-recommends $*"
  if command -v apt-get >/dev/null; then
    if [ "$(id -u)" = 0 ]; then run=(env); elif sudo -n true 2>/dev/null; then run=(sudo -n env); fi
  fi
  if [ ${#run[@]} = 0 ]; then
    say "$why; Debian package(s) missing: $*"
    die "run this, then the same command again:  sudo sh -c '$command'   (other systems: the packages of the same libraries)"
  fi
  say "$why; installing $*"
  { "${run[@]}" apt-get update -q && "${run[@]}" DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -q --no-install-recommends "$@"; } >&2 || die "installing failed; by hand:  sudo sh -c '$command'"
}

# Sets `uv` to the one of $VENV, or ends the script, saying what is left out ($1).
need_uv() {
  local links
  uv=$VENV/bin/uv
  [ -x "$uv" ] || { say "no uv in $VENV; leaving out: $1"; exit 0; }
  # uv does not read pip's settings, among which a machine may name a folder of wheels.
  if [ -z "${UV_FIND_LINKS:-}" ]; then
    links=$("$VENV/bin/python" -m pip config list 2>/dev/null | sed -n "s/^[a-z:.]*find-links='\(.*\)'$/\1/p" | tail -1) || links=
    [ -z "$links" ] || export UV_FIND_LINKS=${links//\\n/,}
  fi
  export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-300}
}

# Is the folder $1 newer than what it is made from?
made_after() {
  local folder=$1 file
  shift
  [ -e "$folder/.made" ] || return 1
  for file in "$@"; do [ "$folder/.made" -nt "$file" ] || return 1; done
}
