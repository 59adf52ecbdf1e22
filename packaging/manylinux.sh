#!/usr/bin/env bash
# Builds the libraries that the wheel contains, inside a manylinux container; cibuildwheel runs it before the wheel (pyproject.toml).
#
# The sources are in build/parts/NAME (.github/workflows/wheels.yml). Everything is static and goes to /usr/local.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../build/parts"
build() {
  local name=$1
  shift
  cmake -S "$name" -B "$name/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_INSTALL_PREFIX=/usr/local "$@"
  cmake --build "$name/build" --parallel "$(nproc)" --target install
}
build fmt -DFMT_TEST=OFF -DFMT_DOC=OFF
build yaml-cpp -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF
build zlib
rm -f /usr/local/lib*/libz.so* # the wheel links libz.a
build CLI11 -DCLI11_BUILD_TESTS=OFF -DCLI11_BUILD_EXAMPLES=OFF -DCLI11_BUILD_DOCS=OFF
build tomlplusplus
