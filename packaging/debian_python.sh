#!/usr/bin/env bash
# A wheel in a Python that this machine has not, from another release of Debian:
#
#   packaging/debian_python.sh build/dist/stepcast-*-py3-none-manylinux_2_28_x86_64.whl [sid] [3.14]
#
# Makes that release in build/debian-SUITE with debootstrap (300 MB, once; as root, nothing of the machine changes), installs the
# wheel into an empty virtual environment there, and imports it, forecasts and plans. `./dev wheel` does the same with every Python
# that the machine has; CI runs neither this nor aarch64.sh.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
if [ $# -lt 1 ] || [ ! -f "$1" ]; then
  printf 'usage: packaging/debian_python.sh WHEEL [SUITE] [VERSION]\n' >&2
  exit 2
fi
wheel=$(readlink -f "$1") suite=${2:-sid} version=${3:-3.14}
root=$PWD/build/debian-$suite
command -v debootstrap >/dev/null || { printf 'debian_python.sh: found no debootstrap: apt install debootstrap\n' >&2; exit 2; }
if [ ! -x "$root/usr/bin/python$version" ]; then
  mkdir -p build
  debootstrap --variant=minbase --include="python$version,python$version-venv" "$suite" "$root" "${STEPCAST_DEBIAN:-http://deb.debian.org/debian}"
fi
rm -rf "$root/tmp/wheel"
mkdir -p "$root/tmp/wheel"
cp "$wheel" "$root/tmp/wheel/"
# In a mount namespace of its own, with /proc: by it a program finds libraries beside itself.
# shellcheck disable=SC2016 # for the shells inside
unshare -m sh -euc 'mount --bind /proc "$1/proc"; exec chroot "$1" /bin/sh -euc "$3" sh "$2"' sh "$root" "$version" '
  cd /tmp/wheel
  "/usr/bin/python$1" -m venv venv
  venv/bin/pip install -q --no-index ./*.whl
  venv/bin/python -c "import sys, stepcast
print(sys.version.split()[0], stepcast.predict(\"llama-3-8b\", gpus=8, gbs=64).step_time_ms, stepcast.plan(\"llama-3-8b\", gpus=8, gbs=64).table(\"priced\")[\"tensor\"][0])"
  venv/bin/stepcast predict --model llama-3-8b --gpus 8 --gbs 64 | grep "^Step time"'
rm -rf "$root/tmp/wheel"
