#!/usr/bin/env bash
# Make the virtual environment from nothing but python3. Called by `make setup`; running it again is harmless.
# Environment: PYTHON (python3), VENV (.venv), EXTRAS (azure,fast,ray,review,video), GROUP (none; dev adds
# what tests need).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON=${PYTHON:-python3} VENV=${VENV:-.venv} EXTRAS=${EXTRAS-azure,fast,ray,review,video}

source tools/packages.sh

missing_libraries() {
  "$PYTHON" - <<'PY'
import ctypes
for library, package in (
    ("libusb-1.0.so.0", "libusb-1.0-0"),
    ("libGL.so.1", "libgl1"),
    ("libEGL.so.1", "libegl1"),
    ("libglib-2.0.so.0", "libglib2.0-0"),
    ("libgthread-2.0.so.0", "libglib2.0-0"),
):
    try:
        ctypes.CDLL(library)
    except OSError:
        print(package)
PY
}

command -v "$PYTHON" >/dev/null || need_packages "no '$PYTHON' here" python3 python3-venv
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  die "$("$PYTHON" --version) is too old: Python 3.11 or newer is needed. Name one:  make setup PYTHON=python3.12"

mapfile -t packages < <(missing_libraries | sort -u)
if [ ${#packages[@]} -gt 0 ]; then
  need_packages "opencv and open3d need shared libraries" "${packages[@]}"
  left=$(missing_libraries | sort -u | tr '\n' ' ')
  [ -z "$left" ] || die "still missing after installing: $left"
fi

if ! "$VENV/bin/python" -c '' 2>/dev/null; then
  # Debian splits ensurepip off python3; without it a virtual environment comes out empty.
  "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || need_packages "$PYTHON cannot make virtual environments" \
    "$([ "$PYTHON" = python3 ] && echo python3-venv || echo "$(basename "$PYTHON")-venv")"
  say "making $VENV with $("$PYTHON" --version): a minute or a few, by your connection"
  "$PYTHON" -m venv --clear "$VENV"
fi
python=$VENV/bin/python
"$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip --upgrade >/dev/null

project=".${EXTRAS:+[$EXTRAS]}"
if [ ! -x "$VENV/bin/uv" ]; then
  "$python" -m pip install --quiet --disable-pip-version-check -c constraints.txt uv ||
    say "no uv for this machine; using pip, which is slower"
fi
say "installing the versions of constraints.txt"
if [ -x "$VENV/bin/uv" ]; then
  # open3d alone is some 400 MB; uv's own limit of 30 s without data is short for slow lines.
  UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-300} "$VENV/bin/uv" pip install --python "$python" \
    -c constraints.txt -e "$project" ${GROUP:+--group "$GROUP"}
else
  "$python" -m pip install --quiet --disable-pip-version-check "pip>=25.1"   # the first with --group
  "$python" -m pip install --disable-pip-version-check -c constraints.txt -e "$project" ${GROUP:+--group "$GROUP"}
fi
# Python compiles a module when it is first imported and keeps the result. Where PYTHONDONTWRITEBYTECODE is set, as in
# many containers, it keeps none: every process of ours would compile what it imports again, for several seconds.
env -u PYTHONDONTWRITEBYTECODE "$python" -c '
import compileall, av, cv2, datasets, huggingface_hub, open3d, openai, sklearn.ensemble, sklearn.linear_model, trimesh
import scipy.ndimage, scipy.optimize, vgbench_gen, vgbench_gen.cli.main
compileall.compile_dir(vgbench_gen.__path__[0], quiet=1)' ||
  die "the installed packages do not import; see the line above"
say "ready. Now: source $VENV/bin/activate, then vgbench --help"
