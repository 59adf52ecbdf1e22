#!/usr/bin/env bash
# The wheel for aarch64, built on x86-64 and tried there:
#
#   packaging/aarch64.sh build/dist/stepcast-*-py3-none-manylinux_2_28_x86_64.whl
#
# Takes the wheel of `./dev wheel`, of which all but the library and the program is the same on every machine; compiles these two
# with g++-aarch64-linux-gnu, against Debian's libraries for arm64 (fetched into build/aarch64/root: nothing is installed); and
# imports the result, forecasts and plans with it under qemu-aarch64, in Debian's Python for arm64. Takes an hour of a processor;
# STEPCAST_CROSS_FLAGS="-O1 -DNDEBUG" takes half. Needs: g++-aarch64-linux-gnu, qemu-user, apt on Debian.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
if [ $# -ne 1 ] || [ ! -f "$1" ]; then
  printf 'usage: packaging/aarch64.sh WHEEL, that of ./dev wheel for x86-64\n' >&2
  exit 2
fi
wheel=$(readlink -f "$1") work=$PWD/build/aarch64
root=$work/root
for tool in aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb cmake ninja unzip; do
  command -v "$tool" >/dev/null || { printf 'aarch64.sh: found no %s: apt install g++-aarch64-linux-gnu qemu-user ninja-build unzip\n' "$tool" >&2; exit 2; }
done

fetch() { # a list of packages of its own, so that the machine's stays as it is
  local apt=$work/apt
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,etc/parts} "$root"
  : >"$apt/state/status"
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "${STEPCAST_DEBIAN:-http://deb.debian.org/debian}" \
    "${STEPCAST_DEBIAN_SUITE:-bookworm}" >"$apt/etc/list"
  local options=(-q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root -o Dir::State="$apt/state"
    -o Dir::State::status="$apt/state/status" -o Dir::Cache="$apt/cache" -o Dir::Etc::sourcelist="$apt/etc/list"
    -o Dir::Etc::sourceparts="$apt/etc/parts")
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install -y --no-install-recommends --download-only libfmt-dev libyaml-cpp-dev zlib1g-dev libtomlplusplus-dev \
    libcli11-dev python3.11
  local package
  for package in "$apt"/cache/archives/*.deb; do
    case $(basename "$package") in
      libc6-dev_* | linux-libc-dev_* | libstdc++-*-dev_* | libgcc-*-dev_*) ;; # the cross-compiler brings its own
      *) dpkg-deb -x "$package" "$root" ;;
    esac
  done
}
[ -x "$root/usr/bin/python3.11" ] || fetch

cat >"$work/toolchain.cmake" <<EOT
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH "$root")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "$root")
EOT
cmake -S . -B "$work/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS_RELEASE="${STEPCAST_CROSS_FLAGS:--O2 -DNDEBUG}" -DSTEPCAST_PYTHON=ON -DSTEPCAST_USE_ISAL=OFF -DSTEPCAST_USE_XGBOOST=OFF \
  -DSTEPCAST_BUILD_TESTS=OFF -DSTEPCAST_BUILD_BENCH=OFF -DSTEPCAST_INSTALL=OFF
ninja -C "$work/build" -j "${STEPCAST_JOBS:-1}" stepcast_wheel_files

# The same wheel with the other library and program; finish_wheel.py reads from them which machine they are for.
rm -rf "$work/wheel" "$work/dist"
mkdir -p "$work/dist"
unzip -q "$wheel" -d "$work/wheel"
cp "$work/build/python/stepcast/libstepcast.so" "$work/wheel/stepcast/"
cp "$work/build/python/stepcast/bin/stepcast" "$work/wheel/stepcast/bin/"
sed -i 's/^Tag: .*/Tag: py3-none-linux_aarch64/' "$work"/wheel/*.dist-info/WHEEL
out=$work/dist/$(basename "$wheel" | sed 's/-[^-]*\.whl$/-linux_aarch64.whl/')
(cd "$work/wheel" && python3 -c 'import shutil, sys; shutil.move(shutil.make_archive("../made", "zip"), sys.argv[1])' "$out")
out=$(python3 python/finish_wheel.py "$out")
printf '%s, %d kB\n' "${out#"$PWD"/}" $(($(stat -c %s "$out") / 1000))

# Installed the way pip would, which is to unpack it; then with the processor of the other machine.
rm -rf "$work/site"
unzip -q "$out" -d "$work/site"
asked='import platform, stepcast
print(platform.machine(), platform.python_version(), stepcast.predict("llama-3-8b", gpus=8, gbs=64).step_time_ms)
print(stepcast.plan("llama-3-8b", gpus=8, gbs=64).table("priced")["tensor"][0])'
PYTHONPATH=$work/site PYTHONDONTWRITEBYTECODE=1 qemu-aarch64 -L "$root" "$root/usr/bin/python3.11" -c "$asked"
qemu-aarch64 -L "$root" "$work/site/stepcast/bin/stepcast" predict --model llama-3-8b --gpus 8 --gbs 64 | sed -n 1,4p
