// Any JSON as the parameters of related systems: refused, or a record that reads back and gives times that can be.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/cost/related_systems.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  const Result<JsonValue> parameters =
      parse_json(std::string_view{reinterpret_cast<const char*>(data), size}, "fuzz.json");
  if (!parameters.ok()) return 0;
  const Result<RelatedSystems> related = RelatedSystems::read(*parameters);
  if (!related.ok()) return 0;
  require(RelatedSystems::read(related->write()).ok());
  Device device;
  device.architecture = "hopper";
  Node node;
  node.intra.kind = LinkKind::nvswitch;
  node.intra.bandwidth_per_gpu = BytesPerSecond{450e9};
  for (const std::uint32_t ranks : {2U, 5U, 64U}) {
    const auto curve = related->curve(device, node, CollectiveOp::all_reduce, ranks);
    if (!curve) continue;
    for (const double bytes : {1.0, 1e6, 1e12}) {
      const Estimate e = curve->at(Bytes{bytes});
      require(std::isfinite(e.time.value()) && e.time.value() > 0);
      require(e.p10 <= e.time && e.time <= e.p90);
    }
  }
  return 0;
}
