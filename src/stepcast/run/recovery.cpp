#include "stepcast/run/recovery.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/names.h"
#include "stepcast/base/scan.h"
#include "stepcast/run/run_forecast.h"

namespace stepcast {
namespace {

// Units of the words, with their factors to s and GB/s.
constexpr ScanUnit kTimeUnits[] = {{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
constexpr ScanUnit kRateUnits[] = {{"", 1}, {"GB/s", 1}, {"TB/s", 1000}};

// A number above 0 with one of the units; empty if it is invalid.
template <std::size_t N>
std::optional<double> in_units(std::string_view text, const ScanUnit (&units)[N]) {
  std::string_view unit = text;
  const std::optional<double> value = scan_front<double>(unit);
  return value && *value < 1e9 ? scan_with_unit(text, units) : std::nullopt;
}

// Stores one word of the recovery options. Returns an empty string if it is valid, else the expected form.
std::string take_recovery(std::string_view key, std::string_view value, Recovery& out) {
  const auto time = [&](auto& to) -> std::string {
    const std::optional<double> s = in_units(value, kTimeUnits);
    if (s) to = *s;
    return s ? "" : "a time above 0 with its unit: 90s, 15m, 24h or 2d";
  };
  if (key == "interval") return time(out.interval_s);
  if (key == "restart") return time(out.restart_s);
  if (key == "repair") return time(out.repair_s);
  if (key == "storage") {
    out.storage_GBps = in_units(value, kRateUnits);
    return out.storage_GBps ? "" : "total write bandwidth of all ranks: 200GB/s or 2TB/s";
  }
  if (key == "spares") {
    const std::int64_t n = scan<std::int64_t>(value).value_or(-1);
    if (n < 0 || n > 100'000) return "nodes, 0 to 100000";
    out.spare_nodes = n;
    return {};
  }
  if (key == "elastic") {
    out.elastic = value == "yes";
    return out.elastic || value == "no" ? "" : "yes or no";
  }
  if (key == "mode") {
    for (const CheckpointMode mode : {CheckpointMode::sync, CheckpointMode::async, CheckpointMode::memory}) {
      if (value != to_string(mode)) continue;
      out.mode = mode;
      return {};
    }
    return "sync, async or memory";
  }
  return "interval=, mode=, storage=, restart=, spares=, repair= or elastic=";
}

// Rates of a job on several pools from "NAME=SOURCE,NAME=SOURCE". Every pool needs an entry; causes get the name of their pool.
Result<FailureRates> failures_of_pools(const std::string& text, std::span<const RunPool> pools) {
  const auto has = [](const RunPool& pool, std::string_view name) {
    return std::ranges::find(pool.names, name) != pool.names.end();
  };
  std::vector<std::optional<FailureRates>> of_pool(pools.size());
  double all = 0;
  std::string names;
  for (const RunPool& pool : pools) {
    all += pool.n_gpus;
    names += (names.empty() ? "" : ", ") + pool.names.front();
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin), name = word.substr(0, word.find('='));
    begin = end + 1;
    if (name.size() == word.size() ||
        std::ranges::none_of(pools, [&](const RunPool& pool) { return has(pool, name); }))
      return Error::at("", "--failures")
          .found(fmt::format("`{}`", word.substr(0, 80)))
          .expected(
              fmt::format("NAME=default or NAME=LOG, with commas between them, of the pools {}", names));
    STEPCAST_ASSIGN(const FailureRates rates, read_failures(word.substr(name.size() + 1)));
    for (std::size_t p = 0; p < pools.size(); ++p)
      if (has(pools[p], name)) of_pool[p] = rates;
  }
  FailureRates out{.source = text};
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const std::string& name = pools[p].names.front();
    if (!of_pool[p])
      return Error::at("", "--failures")
          .found(fmt::format("no entry for the pool {}", name))
          .expected(fmt::format("{}=default, or a log of its interruptions", name));
    for (FailureCause& cause : of_pool[p]->causes) {
      cause.name = fmt::format("{} of {}", cause.name, name);
      cause.of_gpus = pools[p].n_gpus / all;
      cause.gpus_per_node = pools[p].gpus_per_node;
      out.causes.push_back(std::move(cause));
    }
  }
  return out;
}

}  // namespace

std::string_view to_string(CheckpointMode mode) {
  return name_of<CheckpointMode::memory>(mode, {"sync", "async", "memory"});
}

Result<Recovery> read_recovery(const std::vector<std::string>& recovery) {
  Recovery out;
  std::set<std::string_view> keys;
  for (const std::string& word : recovery) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = std::string_view{word}.substr(0, equals);
    const std::string_view value = std::string_view{word}.substr(std::min(equals + 1, word.size()));
    std::string expected = take_recovery(key, value, out);
    if (expected.empty() && !keys.insert(key).second) expected = fmt::format("{}= once", key);
    if (!expected.empty())
      return Error::at("", "--recovery")
          .found(fmt::format("`{}`", word.substr(0, 80)))
          .expected(std::move(expected));
  }
  // Elastic jobs need a number of spare nodes; without one there are none.
  if (out.elastic && !out.spare_nodes) out.spare_nodes = 0;
  if (keys.contains("repair") && !out.spare_nodes)
    return Error::at("", "--recovery", "give the time for which spare nodes replace failed ones with repair=")
        .advice("add spares=");
  return out;
}

Result<RunAssumptions> read_run_assumptions(const std::string& failures,
                                            const std::vector<std::string>& recovery,
                                            std::span<const RunPool> pools) {
  RunAssumptions out;
  if (!pools.empty() && failures.find('=') != std::string::npos) {
    STEPCAST_ASSIGN(out.failures, failures_of_pools(failures, pools));
  } else {
    STEPCAST_ASSIGN(out.failures, read_failures(failures));
  }
  STEPCAST_ASSIGN(out.recovery, read_recovery(recovery));
  return out;
}

}  // namespace stepcast
