// What every reader of measured collectives promises, whatever it is given.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "calibrate/collective_fit.h"
#include "calibrate/detail/collective_logs.h"

namespace stepcast::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

template <class Reader>
int read_with(Reader reader, const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  // With and without what a log may leave out.
  for (const MeasurementContext& context :
       {MeasurementContext{}, MeasurementContext{CollectiveOp::all_reduce, 4, 2, "fuzz"}}) {
    const auto read = reader(text, "fuzz", context);
    if (!read.ok()) {
      require(!read.error().message().empty() && read.error().message().find('\n') == std::string::npos);
      continue;
    }
    for (const CollectiveMeasurements& m : read->curves) {
      require(m.collective != CollectiveOp::unknown && m.n_ranks >= 2 &&
              m.n_ranks == m.n_nodes * m.gpus_per_node);
      for (const CollectiveSample& s : m.samples) {
        require(s.message_bytes > 0 && s.time_us > 0 && std::isfinite(s.message_bytes) &&
                std::isfinite(s.time_us));
      }
      if (m.samples.size() > 64) continue;
      const auto fit = fit_collective(m, {.min_sizes = 2});
      if (!fit.ok()) continue;
      double before = 0;
      for (double x = 0; x <= 40; x += 2) {
        const Estimate e = fit->curve().at(Bytes{std::exp2(x)});
        require(std::isfinite(e.time.value()) && e.time.value() >= before && e.p10 <= e.time &&
                e.time <= e.p90);
        before = e.time.value();
      }
    }
  }
  return 0;
}

}  // namespace stepcast::fuzz
