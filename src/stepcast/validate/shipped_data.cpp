#include "stepcast/validate/shipped_data.h"

#include <system_error>

// Both are set where this file is compiled (src/CMakeLists.txt).
#ifndef STEPCAST_SOURCE_DATA
#define STEPCAST_SOURCE_DATA ""
#endif
#ifndef STEPCAST_INSTALLED_DATA
#define STEPCAST_INSTALLED_DATA ""
#endif

namespace stepcast {

std::optional<std::filesystem::path> shipped_data_file(std::string_view name) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  const fs::path folders[] = {
      failure ? fs::path{} : program.parent_path().parent_path() / "share" / "stepcast" / "data",
      fs::path{STEPCAST_SOURCE_DATA},
      fs::path{STEPCAST_INSTALLED_DATA},
  };
  for (const fs::path& folder : folders) {
    if (folder.empty()) continue;
    fs::path file = folder / name;
    if (fs::is_regular_file(file, failure)) return file;
  }
  return std::nullopt;
}

}  // namespace stepcast
