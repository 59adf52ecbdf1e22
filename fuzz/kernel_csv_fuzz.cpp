// Any bytes as a CSV file of measured kernels: an error of one line, or measurements of operations that can
// be.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "calibrate/kernel_measurements.h"

namespace {
void require(bool condition) {
  if (!condition) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  const auto read = parse_kernel_measurements({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!read.ok()) {
    require(!read.error().message().empty() && read.error().message().find('\n') == std::string::npos);
    return 0;
  }
  for (const KernelMeasurement& m : read->rows) {
    require(m.time.value() > 0 && std::isfinite(m.time.value()) && m.n >= 1 && m.line >= 2);
    require(!m.gpu.empty() && !m.label.empty() && m.operation.dtype != DType::unknown);
    require(shape_problem(m.operation).empty() && !describe(m.operation).empty());
    const Work work = work_of(m.operation);
    require(std::isfinite(work.flops.value()) && work.flops.value() >= 0 && work.bytes().value() >= 0);
  }
  return 0;
}
