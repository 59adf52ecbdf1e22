// Parsing and checking of --gpus (pools) and --zone (zones). Grammar, with optional parts in brackets:
//
//   --gpus  COUNTxPLATFORM[:WATTS][@ZONE] joined by "+":  64xdgx-h100:500W@east+64xdgx-a100@west
//   --zone  ZONE:KEY=VALUE,...  with the keys price, bandwidth and latency:  east:price=2.5,bandwidth=400Gbps
//
// The text is split from its end (`@`, then `:`), because PLATFORM may be the path of a file.
#include "stepcast/describe/gpu_pools.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/cost/node_power.h"

namespace stepcast {
namespace {

// Limits of --gpus: GPUs per pool and number of pools.
constexpr std::int64_t kMostOfPool = 1'000'000;
constexpr std::size_t kMostPools = 8;

// The errors of malformed --gpus and --zone values. They show the first 80 characters of `text` and a valid
// example.
Error wrong_pools(std::string_view text) {
  return Error::at("", "--gpus")
      .found(fmt::format("`{}`", text.substr(0, 80)))
      .expected("pools such as 64xh100+64xa100, or with zones: 64xh100@east+64xa100@west");
}

Error wrong_zone(std::string_view text) {
  return Error::at("", "--zone")
      .found(fmt::format("`{}`", text.substr(0, 80)))
      .expected(
          "a zone with its price and its links to others: east:price=2.5,bandwidth=400Gbps,latency=20ms");
}

}  // namespace

bool names_gpu_pools(std::string_view text) {
  const std::size_t x = text.find('x');
  return x != std::string_view::npos && x > 0 &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(x),
                     [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::vector<GpuPool>> parse_gpu_pools(std::string_view text) {
  std::vector<GpuPool> pools;
  for (std::string_view word : split(text, '+')) {
    if (!names_gpu_pools(word)) return wrong_pools(text);
    const std::size_t x = word.find('x');
    GpuPool pool;
    // An unreadable count becomes 0, which the range check below rejects.
    pool.n_gpus = scan<decltype(pool.n_gpus)>(word.substr(0, x)).value_or(0);
    std::string_view rest = word.substr(x + 1);
    const std::size_t at = rest.rfind('@');
    if (at != std::string_view::npos) {
      pool.zone = rest.substr(at + 1);
      rest = rest.substr(0, at);
      if (pool.zone.empty()) return wrong_pools(text);
    }
    const std::size_t colon = rest.rfind(':');
    // Only a colon in front of a digit begins a power limit: names and paths of platforms may contain colons.
    if (colon != std::string_view::npos && colon + 1 < rest.size() && is_digit(rest[colon + 1])) {
      STEPCAST_ASSIGN(pool.power_limit_W, parse_watts(rest.substr(colon + 1), "--gpus"));
      rest = rest.substr(0, colon);
    }
    pool.platform = rest;
    if (rest.empty() || rest.find(',') != std::string_view::npos) return wrong_pools(text);
    if (pool.n_gpus < 1 || pool.n_gpus > kMostOfPool) {
      return Error::at("", "--gpus")
          .found(fmt::format("`{}`", word.substr(0, 80)))
          .expected(fmt::format("1 to {} GPUs in every pool", kMostOfPool));
    }
    pools.push_back(std::move(pool));
  }
  if (pools.size() > kMostPools) {
    return Error::at("", "--gpus")
        .found(fmt::format("{} pools", pools.size()))
        .expected(fmt::format("at most {}", kMostPools));
  }
  return pools;
}

Result<GpuZone> parse_gpu_zone(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, std::min(colon, text.size()));
  if (name.empty() || name.find('=') != std::string_view::npos) {
    return Error::at("", "--zone")
        .found(fmt::format("`{}`, a price or a bandwidth without its zone", text.substr(0, 80)))
        .expected("the zone before it: east:price=2.5,bandwidth=400Gbps");
  }
  GpuZone zone{std::string{name}, {}, {}, {}};
  if (colon == std::string_view::npos) return wrong_zone(text);
  std::set<std::string_view> keys;
  for (const std::string_view word : split(text.substr(colon + 1), ',')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return wrong_zone(word);
    const std::string_view key = word.substr(0, equals), said = word.substr(equals + 1);
    // `scan_front` consumes the number from `unit`, so that only the unit is left. A price has no unit.
    std::string_view unit = said;
    const double value = scan_front<double>(unit).value_or(0);
    if (!(value > 0) || !(value < 1e12) || !keys.insert(key).second) return wrong_zone(word);
    if (key == "price" && unit.empty()) {
      zone.price_per_gpu_hour = value;
      // Gbps and Tbps are bits per second; the field is in bytes per second.
    } else if (key == "bandwidth" && (unit == "Gbps" || unit == "Tbps")) {
      zone.bandwidth = BytesPerSecond{value * (unit == "Gbps" ? 1e9 : 1e12) / 8};
    } else if (key == "latency" && (unit == "us" || unit == "ms" || unit == "s")) {
      zone.latency = Microseconds{value * (unit == "us" ? 1 : unit == "ms" ? 1e3 : 1e6)};
    } else {
      return wrong_zone(word);
    }
  }
  return zone;
}

Status check_gpu_zones(std::span<const GpuPool> pools, std::span<const GpuZone> zones) {
  // `used`: zones that pools name (an empty name means "no zone"). `described`: zones with a --zone so far.
  std::set<std::string> used, described;
  for (const GpuPool& pool : pools) used.insert(pool.zone);
  std::string names;
  for (const std::string& name : used) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  const bool priced =
      std::ranges::any_of(zones, [](const GpuZone& z) { return z.price_per_gpu_hour.has_value(); });
  for (const GpuZone& zone : zones) {
    if (!used.contains(zone.name)) {
      return Error::at("", "--zone")
          .found(fmt::format("`{}`, which has no pool in --gpus", zone.name.substr(0, 80)))
          .expected(names.empty() ? std::string{"a pool in it: --gpus 64xh100@"} + zone.name
                                  : fmt::format("one of {}", names));
    }
    if (!described.insert(zone.name).second) return Error{fmt::format("--zone says {} twice", zone.name)};
    if (priced && !zone.price_per_gpu_hour) {
      return Error::at("", "--zone")
          .found(fmt::format("`{}` without a price, others have one", zone.name.substr(0, 80)))
          .expected("a price for every zone, or for none");
    }
  }
  for (const GpuPool& pool : pools) {
    if (described.contains(pool.zone)) continue;
    // With prices, each pool needs a priced zone. With several zones, each zone needs a bandwidth.
    if (priced || used.size() > 1) {
      return Error::at("", "--gpus")
          .found(pool.zone.empty() ? fmt::format("{} x {} in no zone", pool.n_gpus, pool.platform)
                                   : fmt::format("the zone {}, without a --zone", pool.zone))
          .expected(fmt::format("--zone {}:{}bandwidth=400Gbps", pool.zone.empty() ? "NAME" : pool.zone,
                                priced ? "price=2.5," : ""));
    }
  }
  if (used.size() > 1) {
    for (const GpuZone& zone : zones) {
      if (zone.bandwidth) continue;
      return Error::at("", "--zone")
          .found(fmt::format("`{}` without a bandwidth", zone.name.substr(0, 80)))
          .expected("total bandwidth of its nodes to other zones: bandwidth=400Gbps");
    }
  }
  return Ok{};
}

std::int64_t Cluster::n_gpus() const {
  std::int64_t all = 0;
  for (const GpuPool& pool : pools) all += pool.n_gpus;
  return all;
}

const GpuZone* Cluster::zone_of(const GpuPool& pool) const {
  const auto found = std::ranges::find(zones, pool.zone, &GpuZone::name);
  return found == zones.end() ? nullptr : &*found;
}

void Cluster::merge() {
  std::vector<GpuPool> merged;
  for (const GpuPool& pool : pools) {
    const auto same = std::ranges::find_if(merged, [&](const GpuPool& m) {
      return m.platform == pool.platform && m.zone == pool.zone && m.power_limit_W == pool.power_limit_W;
    });
    if (same == merged.end())
      merged.push_back(pool);
    else
      same->n_gpus += pool.n_gpus;
  }
  pools = std::move(merged);
}

Result<Cluster> parse_cluster(std::string_view pools, std::span<const std::string> zones) {
  Cluster cluster;
  STEPCAST_ASSIGN(cluster.pools, parse_gpu_pools(pools));
  for (const std::string& text : zones) {
    STEPCAST_ASSIGN(GpuZone zone, parse_gpu_zone(text));
    cluster.zones.push_back(std::move(zone));
  }
  STEPCAST_TRY(check_gpu_zones(cluster.pools, cluster.zones));
  cluster.merge();
  return cluster;
}

}  // namespace stepcast
