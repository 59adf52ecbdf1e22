// Any bytes as a CSV file of collectives: an error of one line, or measurements that can be fitted or
// refused.
#include "support/collective_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return stepcast::fuzz::read_with(stepcast::detail::parse_collective_csv, data, size);
}
