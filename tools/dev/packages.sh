# Packages of Debian and Ubuntu: what is missing is installed with apt.

# Whether packages may be installed without a question; root is never asked.
consent=no
if [ "$(id -u)" -eq 0 ] || [ "${CI:-}" = true ]; then consent=yes; fi

# Returns where the packages may be installed; exits with 2 where the user says no or cannot be asked.
ask_to_install() {
  if [ "$(id -u)" -eq 0 ] || { [ "$consent" = yes ] && command -v sudo >/dev/null; }; then return 0; fi
  local answer=''
  printf 'Missing packages. This command installs them:\n  sudo apt-get install --no-install-recommends %s\n' "$*" >&2
  if ! command -v sudo >/dev/null || [ ! -t 0 ] || [ ! -t 2 ]; then
    printf 'dev: type it, then try again; with --yes this program runs it\n' >&2
    exit 2
  fi
  printf 'Run it now? [y/N] ' >&2
  read -r answer || true
  case $answer in
    y | Y | yes) consent=yes ;;
    *) exit 2 ;;
  esac
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "need root for: $*"
  fi
}

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

installed() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

installable() { apt-cache show --no-all-versions "$1" >/dev/null 2>&1; }

# Package lists are fetched at most once, and only when something is missing.
apt_lists_fresh=no
update_lists() {
  [ $apt_lists_fresh = no ] || return 0
  apt update
  apt_lists_fresh=yes
}

# Installs packages that the tests can do without; fails where that needs an answer.
install_optional() {
  command -v apt-get >/dev/null && [ "$consent" = yes ] && update_lists && apt install -y --no-install-recommends "$@"
}

# Installs those of the named packages that are not there.
ensure_packages() {
  local missing=() package
  for package in "$@"; do
    case $package in
      # Programs count however they came here; libraries are looked up as packages.
      g++ | cmake | ccache | mold) command -v "$package" >/dev/null || missing+=("$package") ;;
      ninja-build) command -v ninja >/dev/null || missing+=("$package") ;;
      *)
        if ! command -v dpkg-query >/dev/null; then
          continue # not Debian: CMake names what it does not find
        fi
        installed "$package" || missing+=("$package")
        ;;
    esac
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "not Debian or Ubuntu; install what these packages hold: ${missing[*]}"
  ask_to_install "${missing[@]}"
  mkdir -p "$logs"
  local start=$SECONDS
  printf '== install %s\n' "${missing[*]}"
  if ! { update_lists && apt install -y --no-install-recommends "${missing[@]}"; } >"$logs/packages.log" 2>&1; then
    tail -n 30 "$logs/packages.log" >&2
    die "could not install: ${missing[*]}"
  fi
  printf '   ok, %d s\n' $((SECONDS - start))
}

packages_tool=(g++ cmake ninja-build libfmt-dev libisal-dev zlib1g-dev libtomlplusplus-dev libyaml-cpp-dev
               libcli11-dev libxgboost-dev)
packages_test=(ccache mold libgtest-dev libgmock-dev libbenchmark-dev python3-protobuf)

# Sets `llvm` to the version to take TOOL from. Format and lint findings differ between versions, so 16 wins wherever it can
# be had; otherwise the newest.
llvm_preferred=16
choose_llvm() {
  local tool=$1 command=$2
  llvm=$llvm_preferred
  if command -v "$command-$llvm" >/dev/null || installable "$tool-$llvm"; then return 0; fi
  if command -v apt-get >/dev/null && [ "$consent" = yes ] && [ $apt_lists_fresh = no ]; then
    mkdir -p "$logs"
    update_lists >"$logs/packages.log" 2>&1 || true
    if installable "$tool-$llvm"; then return 0; fi
  fi
  for llvm in $(seq 30 -1 17); do
    if command -v "$command-$llvm" >/dev/null || installable "$tool-$llvm"; then return 0; fi
  done
  die "found no $tool of version 16 or newer"
}

# need_llvm TOOL...: chooses these of clang-format, clang-tidy and clang, installs them, and the PACKAGES behind `--` with
# them, and sets the names of their programs.
need_llvm() {
  local packages=() symbolizer=''
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
      clang-format)
        choose_llvm clang-format clang-format
        clang_format=clang-format-$llvm
        packages+=("$clang_format")
        ;;
      clang-tidy)
        choose_llvm clang-tidy clang-tidy
        clang_tidy=clang-tidy-$llvm
        packages+=("$clang_tidy")
        ;;
      clang)
        choose_llvm clang clang++
        clangxx=clang++-$llvm
        packages+=("clang-$llvm" "libclang-rt-$llvm-dev" "llvm-$llvm")
        symbolizer=/usr/lib/llvm-$llvm/bin/llvm-symbolizer
        ;;
    esac
    shift
  done
  [ $# -eq 0 ] || shift
  ensure_packages "$@" "${packages[@]}"
  # Without it the reports of sanitizers hold addresses instead of lines.
  if [ -x "$symbolizer" ]; then export ASAN_SYMBOLIZER_PATH=$symbolizer TSAN_SYMBOLIZER_PATH=$symbolizer; fi
}
