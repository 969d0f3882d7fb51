# Sourced by the other scripts: messages, Debian packages where they may be installed, and certificates.

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }

# Installs Debian packages as root where SYSTEM_PACKAGES=1 or CI asks for it; otherwise prints the command and fails.
need_packages() {
  local why=$1 command as=()
  shift
  command="apt-get update && apt-get install -y --no-install-recommends $*"
  [ "$(id -u)" = 0 ] || as=(sudo -n)
  case ${SYSTEM_PACKAGES:-${CI:-}} in
    "" | 0 | false)
      say "$why. Run this:  sudo sh -c '$command'   (other systems: the packages of the same libraries)"
      return 1 ;;
  esac
  say "$why; installing $*"
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "$command" >&2 || die "installing failed; by hand:  sudo sh -c '$command'"
}

# What pip's configuration says of $1; empty where it says nothing. uv reads none of it.
pip_setting() {
  "$VENV/bin/python" -m pip config list 2>/dev/null | sed -n "s/^[a-z:.]*$1='\(.*\)'$/\1/p" | tail -1 || true
}

# uv has roots of its own, pip others, and neither knows those of a company's proxy: both get the file that pip or
# Python were given, or else the system's.
share_certificates() {
  local file
  for file in "${SSL_CERT_FILE:-}" "${PIP_CERT:-}" "${REQUESTS_CA_BUNDLE:-}" "${CURL_CA_BUNDLE:-}" \
    "$(pip_setting cert)" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
    if [ -f "$file" ]; then export SSL_CERT_FILE=$file PIP_CERT=${PIP_CERT:-$file}; return; fi
  done
}

# Sets `uv` to the one of $VENV, or ends the script, saying what is left out ($1).
need_uv() {
  local links
  uv=$VENV/bin/uv
  [ -x "$uv" ] || { say "no uv in $VENV; leaving out: $1"; exit 0; }
  # A machine may name a folder of wheels.
  links=${UV_FIND_LINKS:-$(pip_setting find-links)}
  [ -z "$links" ] || export UV_FIND_LINKS=${links//\\n/,}
  share_certificates
  export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-300}
}

# Is the folder $1 newer than what it is made from?
made_after() {
  local folder=$1 file
  shift
  [ -e "$folder/.made" ] || return 1
  for file in "$@"; do [ "$folder/.made" -nt "$file" ] || return 1; done
}
