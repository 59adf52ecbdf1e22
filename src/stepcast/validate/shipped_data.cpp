#include "stepcast/validate/shipped_data.h"

#include <system_error>
#include <vector>

#include "stepcast/base/shipped_folders.h"

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
  std::vector<fs::path> folders = shipped_folders("data");
  folders.insert(folders.end(), {STEPCAST_SOURCE_DATA, STEPCAST_INSTALLED_DATA});
  for (const fs::path& folder : folders) {
    if (folder.empty()) continue;
    fs::path file = folder / name;
    if (fs::is_regular_file(file, failure)) return file;
  }
  return std::nullopt;
}

}  // namespace stepcast
