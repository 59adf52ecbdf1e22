// Any JSON as the parameters of a kernel record: named and left out, or a model that gives times that can be.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/cost/generic_kernel.h"
#include "stepcast/cost/kernel_model.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

stepcast::Device device() {
  stepcast::Device d;
  d.name = "Test GPU";
  d.matrix_peak[static_cast<std::size_t>(stepcast::DType::bf16)] = stepcast::FlopsPerSecond{312e12};
  d.memory_bandwidth = stepcast::BytesPerSecond{2.0e12};
  d.memory_size = stepcast::Bytes{80e9};
  d.sm_count = 108;
  return d;
}

// Whatever the parameters are: every answer can be.
void price_with(std::string_view kind, const stepcast::JsonValue& parameters) {
  using namespace stepcast;
  ModelRecord record;
  record.name = "fuzz";
  record.kind = kind;
  record.parameters = parameters;
  const KernelModel model{device(), std::vector{record}};
  const std::vector<Operation> operations{
      gemm({.m = 4096, .n = 1000, .k = 77}, DType::bf16),
      gemm({.m = 1, .n = 1, .k = 1}, DType::bf16, Direction::backward),
      norm({.rows = 4096, .cols = 4096}, DType::bf16),
      attention({.batch = 2, .query_length = 128, .key_length = 128, .heads = 4, .head_dim = 64},
                DType::bf16),
      elementwise({.elements = 1 << 20}, DType::bf16)};
  std::vector<Estimate> estimates(operations.size());
  model.estimate(operations, estimates);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Estimate& e = estimates[i];
    require(std::isfinite(e.time.value()) && e.time.value() > 0);
    require(std::isfinite(e.p10.value()) && std::isfinite(e.p90.value()));
    require(e.p10 <= e.time && e.time <= e.p90);
    require(e.time >= model.analytic().lower_bound(operations[i]));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const Result<JsonValue> parameters = parse_json(text, "fuzz.json");
  if (!parameters.ok()) return 0;
  for (const std::string_view kind : {kKernelRecordKind, kGenericRecordKind}) price_with(kind, *parameters);
  return 0;
}
