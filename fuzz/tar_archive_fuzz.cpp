#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/base/archive.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)stepcast::tar_members({reinterpret_cast<const char*>(data), size}, "fuzz.tar");
  return 0;
}
