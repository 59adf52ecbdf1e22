// The GPUs that train one job: pools of different GPUs, and the zones that they stand in, as people write them.
//
//   parse_cluster("64xdgx-h100@east+64xdgx-a100@west", {"east:bandwidth=400Gbps", "west:bandwidth=400Gbps"})
//   parse_cluster("32xdgx-h100+32xdgx-h100", {})     // one pool of 64
//   parse_cluster("32xdgx-h100:500W+32xdgx-a100", {})   // GPUs of the first have a power limit
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"

namespace stepcast {

struct GpuPool {
  std::int64_t n_gpus = 0;
  std::string platform;                   // a name, or a file
  std::string zone;                       // empty: not said
  std::optional<double> power_limit_W{};  // of each GPU
  friend bool operator==(const GpuPool&, const GpuPool&) = default;
};

struct GpuZone {
  std::string name;
  std::optional<double> price_per_gpu_hour;
  std::optional<BytesPerSecond> bandwidth;  // to other zones, of all its nodes together, one direction
  std::optional<Microseconds> latency;      // of a message to other zones
  friend bool operator==(const GpuZone&, const GpuZone&) = default;
};

// True for "64xh100", false for "64".
[[nodiscard]] bool names_gpu_pools(std::string_view text);
[[nodiscard]] Result<std::vector<GpuPool>> parse_gpu_pools(std::string_view text);
[[nodiscard]] Result<GpuZone> parse_gpu_zone(std::string_view text);

// Whether zones and pools belong together: every zone has a pool, is said once, and all have a price or none. Pools of
// several zones say what joins them.
[[nodiscard]] Status check_gpu_zones(std::span<const GpuPool> pools, std::span<const GpuZone> zones);

// No two pools have the same platform, zone and power limit. A question about one pool is the question about as many GPUs of its
// platform.
struct Cluster {
  std::vector<GpuPool> pools;
  std::vector<GpuZone> zones;
  [[nodiscard]] std::int64_t n_gpus() const;
  // Null: nothing is known of the zone, or the pool names none.
  [[nodiscard]] const GpuZone* zone_of(const GpuPool& pool) const;
  // Pools with the same platform, zone and power limit become one, at the place of the first.
  void merge();
};
// Errors: those of the three functions above.
[[nodiscard]] Result<Cluster> parse_cluster(std::string_view pools, std::span<const std::string> zones);

}  // namespace stepcast
