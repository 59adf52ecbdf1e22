#include "stepcast/base/shipped_folders.h"

#include <system_error>

#include <dlfcn.h>

namespace stepcast {

namespace fs = std::filesystem;

std::vector<fs::path> shipped_folders(std::string_view name) {
  // /proc/self/exe is the program; dladdr() finds the library that contains this code.
  std::vector<fs::path> folders;
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  if (!failure) folders.push_back(program.parent_path().parent_path() / "share" / "stepcast" / name);
  Dl_info here{};
  static const char kInThisObject = 0;
  if (dladdr(&kInThisObject, &here) != 0 && here.dli_fname != nullptr) {
    const fs::path object = fs::canonical(here.dli_fname, failure);
    if (!failure && object != program) folders.push_back(object.parent_path() / "share" / "stepcast" / name);
  }
  return folders;
}

}  // namespace stepcast
