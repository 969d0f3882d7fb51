#!/usr/bin/env bash
# Make the virtual environment from nothing but python3. Called by `make setup`; running it again is harmless.
# Environment: PYTHON (python3), VENV (.venv), PART (setup; extras, dev or docs: as far into constraints.txt as the end of
# that part), SYSTEM_PACKAGES (1 installs missing Debian packages as root; without it the command is printed).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON=${PYTHON:-python3} VENV=${VENV:-.venv} PART=${PART:-setup}

source tools/packages.sh

# Debian splits ensurepip off python3; opencv and open3d load the libraries.
missing_packages() {
  local pair
  "$VENV/bin/python" -c '' 2>/dev/null || "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    echo "$(basename "${PYTHON/%python/python3}")-venv"
  for pair in libusb-1.0.so.0:libusb-1.0-0 libGL.so.1:libgl1 libEGL.so.1:libegl1 libglib-2.0.so.0:libglib2.0-0 \
    libgthread-2.0.so.0:libglib2.0-0; do
    "$PYTHON" -c "import ctypes; ctypes.CDLL('${pair%:*}')" 2>/dev/null || echo "${pair#*:}"
  done | sort -u
}

mapfile -t packages < <(missing_packages)
if [ ${#packages[@]} -gt 0 ]; then
  need_packages "Debian packages are missing: ${packages[*]}" "${packages[@]}" && packages=() || true
fi
command -v "$PYTHON" >/dev/null || die "no '$PYTHON' here. Name one:  make setup PYTHON=python3.12"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  die "$("$PYTHON" --version) is too old: Python 3.11 or newer is needed. Name one:  make setup PYTHON=python3.12"

if ! "$VENV/bin/python" -c '' 2>/dev/null; then
  say "making $VENV with $("$PYTHON" --version): a minute or a few, by your connection"
  "$PYTHON" -m venv --clear "$VENV" || die "$PYTHON cannot make virtual environments; see above"
fi
python=$VENV/bin/python
"$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip --upgrade >/dev/null
share_certificates

take() { sed "/^## end of $1\$/q" constraints.txt; }
# Nothing comes in whose hash is not in constraints.txt, not even to build a package with.
install() {
  "$@" --require-hashes --no-build-isolation -r <(take "$PART") && "$@" --no-deps --no-build-isolation -e .
}

"$python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r <(take build)
say "installing the versions of constraints.txt"
# open3d alone is some 400 MB; uv's own limit of 30 s without data is short for slow lines.
UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-300} install "$VENV/bin/uv" pip install --python "$python" || {
  say "uv cannot install here; trying pip, which is slower"
  install "$python" -m pip install --disable-pip-version-check --use-pep517 || die "pip cannot install here either; see above"
}
# Python compiles a module when it is first imported and keeps the result. Where PYTHONDONTWRITEBYTECODE is set, as in
# many containers, it keeps none: every process of ours would compile what it imports again, for several seconds.
env -u PYTHONDONTWRITEBYTECODE "$python" -c '
import compileall, av, cv2, datasets, huggingface_hub, open3d, openai, sklearn.ensemble, sklearn.linear_model, trimesh
import scipy.ndimage, scipy.optimize, vgbench_gen, vgbench_gen.cli.main
compileall.compile_dir(vgbench_gen.__path__[0], quiet=1)' 2>&1 | tail -n 1 >&2 ||
  die "the installed packages do not import; Debian packages that are missing: ${packages[*]:-none known}"
say "ready. Now: source $VENV/bin/activate, then vgbench --help"
