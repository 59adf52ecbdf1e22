#include "tests/support/data.h"

#include <cstdlib>
#include <system_error>

#include "tests/support/paths.h"

namespace stepcast::test {

std::filesystem::path measured_data_location() {
  if (const char* set = std::getenv("STEPCAST_DATA"); set != nullptr && *set != '\0') return set;
  return (source_dir() / ".." / "shared" / "data").lexically_normal();
}

std::optional<std::filesystem::path> measured_data() {
  auto location = measured_data_location();
  std::error_code ignored;
  if (!std::filesystem::is_directory(location, ignored)) return std::nullopt;
  return location;
}

}  // namespace stepcast::test
