#!/usr/bin/env bash
# Known vulnerabilities of the tested versions, as the Python advisory database knows them. Without an index or that
# database the check is skipped and says why: `make check` works without a network.
set -euo pipefail
list=$(mktemp)
trap 'rm -f "$list"' EXIT
if ! "${PY:-.venv/bin/python}" -c 'import pip_audit' 2>/dev/null; then
  echo "package audit skipped: pip-audit is not installed (make dev)"; exit 0
fi
status=0
timeout 120 "${PY:-.venv/bin/python}" -m pip_audit --requirement constraints.txt --no-deps --disable-pip \
  --progress-spinner off --timeout 10 >"$list" 2>&1 || status=$?
if [ "$status" -eq 0 ]; then
  silent=$(grep -c 'could not be audited' "$list" || true)
  all=$(grep -c '==' constraints.txt)
  if [ "$silent" -gt $((all / 10)) ]; then
    echo "package audit skipped: the index knows no advisories ($silent of $all packages could not be looked up)"
  else
    echo "package audit: no known vulnerability in $((all - silent)) packages"
  fi
elif [ "$status" -eq 124 ] || grep -qiE 'ConnectionError|ServiceError|Failed to establish|Max retries|timed out|could not be reached|(50[0-9]|40[0-9]) .*Error' "$list"; then
  echo "package audit skipped: no index answers ($(grep -v '^ ' "$list" | tail -n 1 | cut -c 1-120))"
else
  cat "$list"; exit 1
fi
