// The GPUs that train one job: pools of equal GPUs, and the zones (data centres, regions) that the pools are
// in. This header parses the values of --gpus and --zone.
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

// GPUs of one kind in one zone: one "64xdgx-h100:500W@east" of --gpus.
struct GpuPool {
  std::int64_t n_gpus = 0;
  std::string platform;                   // name of a platform, or path of a platform file
  std::string zone;                       // empty: none was given
  std::optional<double> power_limit_W{};  // watts per GPU; nothing: the default of the GPU
  friend bool operator==(const GpuPool&, const GpuPool&) = default;
};

// A zone of --zone: its price and its connection to the other zones.
struct GpuZone {
  std::string name;
  // In the currency of the user, per GPU and hour.
  std::optional<double> price_per_gpu_hour;
  // Of all nodes of the zone together to other zones, in one direction.
  std::optional<BytesPerSecond> bandwidth;
  std::optional<Microseconds> latency;  // of one message to another zone
  friend bool operator==(const GpuZone&, const GpuZone&) = default;
};

// True if `text` describes pools: digits followed by `x`. True for "64xh100", false for "64".
[[nodiscard]] bool names_gpu_pools(std::string_view text);
// Pools in the order of `text`; pools that could be merged are not. Errors: wrong syntax, fewer than 1 or
// more than 1,000,000 GPUs in a pool, more than 8 pools, an invalid power limit. Platform names are not
// looked up here.
[[nodiscard]] Result<std::vector<GpuPool>> parse_gpu_pools(std::string_view text);
// The zone of one --zone value. Errors: wrong syntax, a key that is unknown or given twice, a value of 0 or
// less.
[[nodiscard]] Result<GpuZone> parse_gpu_zone(std::string_view text);

// Checks that zones and pools match. Errors: a zone without a pool or described twice, prices for only some
// of the zones, and, if there are several zones, a pool without a zone or a zone without a bandwidth.
[[nodiscard]] Status check_gpu_zones(std::span<const GpuPool> pools, std::span<const GpuZone> zones);

// Pools and their zones. Invariant (after parse_cluster and merge): no two pools have the same platform, zone
// and power limit. A cluster of one pool is treated like a plain number of GPUs of its platform.
struct Cluster {
  std::vector<GpuPool> pools;
  std::vector<GpuZone> zones;
  // GPUs of all pools together.
  [[nodiscard]] std::int64_t n_gpus() const;
  // The zone of a pool. Null: the pool names no zone, or the zone is not described.
  [[nodiscard]] const GpuZone* zone_of(const GpuPool& pool) const;
  // Adds up pools with the same platform, zone and power limit. The sum takes the position of the first of
  // them.
  void merge();
};
// Parses and checks the value of --gpus and all values of --zone, then merges equal pools. Errors: as in the
// three functions above.
[[nodiscard]] Result<Cluster> parse_cluster(std::string_view pools, std::span<const std::string> zones);

}  // namespace stepcast
