// Any bytes as a platform file: an error, or a platform that can be and that survives being written and read
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stepcast/platform/platform_file.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto platform = stepcast::parse_platform(text, "/nowhere/fuzz.json", {});
  if (!platform.ok()) {
    require(!platform.error().message().empty());
    return 0;
  }
  require(platform->check().ok());
  const std::string written = stepcast::platform_json(*platform);
  const auto back = stepcast::parse_platform(written, "/nowhere/written.json", {});
  require(back.ok());
  require(*back == *platform);
  require(stepcast::platform_json(*back) == written);
  return 0;
}
