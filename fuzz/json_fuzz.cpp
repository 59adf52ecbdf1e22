// Any bytes as a JSON document: an error of one line, or a tree that survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stepcast/base/json_value.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto root = stepcast::parse_json(text, "fuzz.json", {.max_bytes = 1U << 20U, .max_values = 10'000});
  if (!root.ok()) {
    require(!root.error().message().empty());
    return 0;
  }
  for (const std::string& written : {stepcast::compact_json(*root), stepcast::pretty_json(*root)}) {
    const auto back = stepcast::parse_json(written, "written.json");
    require(back.ok());
    require(*back == *root);
  }
  return 0;
}
