// Any bytes as a forecast: an error with a message, or a Forecast that survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stepcast/report/forecast_json.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto forecast = stepcast::forecast_from_json(text, "fuzz.json");
  if (!forecast.ok()) {
    require(!forecast.error().message().empty());
    return 0;
  }
  const std::string written = stepcast::forecast_json(*forecast);
  const auto back = stepcast::forecast_from_json(written, "written.json");
  require(back.ok());
  require(stepcast::forecast_json(*back) == written);
  return 0;
}
