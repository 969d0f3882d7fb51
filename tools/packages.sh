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
