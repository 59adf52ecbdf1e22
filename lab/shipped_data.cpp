#include "lab/shipped_data.h"

#include <system_error>

// Defined for this file by lab/CMakeLists.txt.
#ifndef STEPCAST_SOURCE_DATA
#define STEPCAST_SOURCE_DATA ""
#endif

namespace stepcast {

std::optional<std::filesystem::path> shipped_data_file(std::string_view name) {
  std::filesystem::path file = std::filesystem::path{STEPCAST_SOURCE_DATA} / name;
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure)) return std::nullopt;
  return file;
}

}  // namespace stepcast
