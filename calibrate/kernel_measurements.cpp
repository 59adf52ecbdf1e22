#include "calibrate/kernel_measurements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/names.h"
#include "stepcast/base/statistics.h"
#include "stepcast/cost/families/fitted_kernel.h"

#include "calibrate/detail/kernel_layouts.h"

namespace stepcast {

namespace {

namespace fs = std::filesystem;

constexpr auto kRegimeNames = names<Regime>(
    {{Regime::unstated, "unstated"}, {Regime::burst, "burst"}, {Regime::sustained, "sustained"}});

// `n` before the times is an extent of a GEMM; after them it is the number of repetitions.
void tell_repetitions(CsvRows& rows) {
  const std::size_t time = rows.find("time_us");
  if (time == kNoColumn) return;
  for (std::size_t i = time + 1; i < rows.columns().size(); ++i)
    if (rows.columns()[i] == "n") rows.rename(i, "n_repetitions");
}

// The layout that the header matches; nullptr if it does not list kernels.
const detail::KernelLayout* layout_of(CsvRows& rows) {
  for (const detail::KernelLayout& layout : detail::kernel_layouts()) {
    if (!layout.is_meant(rows)) continue;
    if (rows.has("op") && rows.has("direction")) tell_repetitions(rows);
    return &layout;
  }
  return nullptr;
}

Error unknown_header(const std::string& name) {
  return Error::at(name, "line 1", "the header is of no kind of kernel measurements that stepcast knows")
      .expected(
          "gpu, op, direction, dtype, the shape columns of the op, time_us (docs/kernels.md lists them and "
          "the "
          "other layouts)");
}

// Adds the rows of `text` as file number `file`. Returns false without adding any if the header is not that of kernels.
Result<bool> read_into(std::string_view text, const std::string& name, KernelMeasurements& out) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  const detail::KernelLayout* layout = layout_of(rows);
  if (layout == nullptr) return false;
  STEPCAST_TRY(rows.check_names());
  STEPCAST_TRY(detail::check_columns(rows, layout->needed, layout->name));
  const std::size_t before = out.rows.size();
  STEPCAST_TRY(layout->read(rows, *layout, out));
  const auto file = static_cast<std::uint32_t>(out.files.size());
  for (std::size_t i = before; i < out.rows.size(); ++i) out.rows[i].file = file;
  out.files.emplace_back(name);
  return true;
}

// Least share of a time that remains after the timing overhead is subtracted. Assumed; keeps times positive.
constexpr double kLeastOfTimed = 0.1;
// Sustained rows must reach this share of the largest extents of the other rows. Assumed.
constexpr double kLeastReach = 0.25;

using Sizes = std::array<double, 3>;
Sizes sizes_of(const Operation& operation) {
  if (const auto* s = std::get_if<GemmShape>(&operation.shape))
    return {static_cast<double>(s->m), static_cast<double>(s->n), static_cast<double>(s->k)};
  return {work_of(operation).flops.value(), work_of(operation).bytes().value(), 0};
}

struct Reach {
  bool any = false;
  Sizes largest{};
};
using Reaches = std::array<Reach, 2>;  // [sustained]

std::map<std::string, Reaches> reaches_of(const std::vector<KernelMeasurement>& rows) {
  std::map<std::string, Reaches> reach_of;  // [record key]
  for (const KernelMeasurement& m : rows) {
    Reach& reach = reach_of[kernel_record_key(m.operation)][m.regime == Regime::sustained ? 1 : 0];
    const Sizes sizes = sizes_of(m.operation);
    reach.any = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) reach.largest[i] = std::max(reach.largest[i], sizes[i]);
  }
  return reach_of;
}

bool sustained_wanted(const Reaches& reach) {
  if (!reach[1].any) return false;
  for (std::size_t i = 0; reach[0].any && i < reach[0].largest.size(); ++i)
    if (reach[1].largest[i] < kLeastReach * reach[0].largest[i]) return false;
  return true;
}

constexpr std::string_view kOfShortReach =
    "of long runs that reach less than a quarter of the sizes of short ones";
constexpr std::string_view kOfShortRuns = "of short runs, where the same device has long ones";
constexpr std::string_view kMeasuredBothWays = "of a shape that was measured in the other regime, too";
constexpr std::string_view kOfOtherSoftware = "of long runs of slower software than the short ones";

std::vector<SkippedRows> skipped_of(
    const std::map<std::pair<std::string, std::string_view>, std::size_t>& counts) {
  std::vector<SkippedRows> skipped;
  for (const auto& [of, n] : counts) skipped.push_back({of.first, std::string{of.second}, n});
  return skipped;
}

// Comparing two regimes: fewest shapes with both, fewest shapes of a knot of the ratio, most knots.
constexpr std::size_t kLeastPairs = 60, kPairsOfKnot = 20, kMostKnots = 12;
// Runs shorter than this are not throttled. Larger ratios than kMostOfClock come from other software. Assumed.
constexpr double kUnthrottledUs = 50, kMostOfClock = 1.25;

// Times of one record in both regimes, and the conversion from one regime to the other.
struct RegimePair {
  struct Hash {
    std::size_t operator()(const Operation& o) const { return hash_of(o); }
  };
  std::size_t to = 0;  // the wanted regime; 1: sustained
  std::array<std::unordered_map<Operation, double, Hash>, 2> times;
  bool other_software = false;
  std::vector<std::pair<double, double>> knots;  // ln us, ln(wanted / other)

  // `carries`: rows may be converted to the wanted regime.
  void compare(bool carries) {
    const std::size_t from = 1 - to;
    std::vector<std::pair<double, double>> both;
    std::vector<double> unthrottled;
    for (const auto& [operation, us] : times[from]) {
      const auto found = times[to].find(operation);
      if (found == times[to].end()) continue;
      both.emplace_back(std::log(us), std::log(found->second / us));
      if (us < kUnthrottledUs) unthrottled.push_back(both.back().second);
    }
    if (both.size() < kLeastPairs) return;
    if (!unthrottled.empty() && std::abs(median(std::move(unthrottled))) > std::log(kMostOfClock)) {
      other_software = true;
      to = 0;
      return;
    }
    if (!carries) return;
    std::ranges::sort(both);
    const std::size_t n = std::clamp<std::size_t>(both.size() / kPairsOfKnot, 1, kMostKnots);
    for (std::size_t k = 0; k < n; ++k) {
      std::vector<double> at, ratio;
      for (std::size_t i = k * both.size() / n; i < (k + 1) * both.size() / n; ++i) {
        at.push_back(both[i].first);
        ratio.push_back(both[i].second);
      }
      knots.emplace_back(median(std::move(at)), median(std::move(ratio)));
    }
  }

  [[nodiscard]] double log_ratio(double log_us) const {
    if (log_us <= knots.front().first) return knots.front().second;
    if (log_us >= knots.back().first) return knots.back().second;
    const auto above = std::ranges::upper_bound(knots, log_us, {}, &std::pair<double, double>::first);
    const auto below = above - 1;
    const double share = (log_us - below->first) / (above->first - below->first);
    return below->second + share * (above->second - below->second);
  }
};

}  // namespace

std::string_view to_string(Regime regime) { return kRegimeNames[regime]; }
std::optional<Regime> parse_regime(std::string_view text) { return kRegimeNames.find(text); }

Result<KernelMeasurements> parse_kernel_measurements(std::string_view text, const std::string& name) {
  KernelMeasurements measurements;
  STEPCAST_ASSIGN(const bool known, read_into(text, name, measurements));
  if (!known) return unknown_header(name);
  return measurements;
}

Result<KernelMeasurements> read_kernel_measurements(const fs::path& path) {
  STEPCAST_ASSIGN(const std::string text, read_file(path));
  return parse_kernel_measurements(text, path.generic_string());
}

Result<KernelMeasurements> read_kernel_measurements(const std::vector<fs::path>& paths) {
  KernelMeasurements all;
  for (const fs::path& path : paths) {
    std::error_code failure;
    const bool folder = fs::is_directory(path, failure);
    std::size_t n_read = 0;
    for (const fs::path& file : folder ? csv_files_in(path, /*below=*/true) : std::vector{path}) {
      STEPCAST_ASSIGN(const std::string text, read_file(file));
      auto known = read_into(text, file.generic_string(), all);
      if (!known) return std::move(known).error();
      if (*known)
        ++n_read;
      else if (!folder)
        return unknown_header(file.generic_string());
      else
        all.skipped.push_back({file.filename().string(), "no kernel measurements: another header", 1});
    }
    if (folder && n_read == 0) {
      return Error::at(path.generic_string(), "the folder", "has no file with kernel measurements")
          .expected("CSV files with the columns gpu, op, direction, dtype, ..., time_us (docs/kernels.md)");
    }
  }
  return all;
}

bool is_impossible(const KernelMeasurement& measurement, const AnalyticModel& device) {
  return measurement.time < kImpossibleShareOfBound * device.lower_bound(measurement.operation);
}

std::vector<SkippedRows> remove_impossible_rows(std::vector<KernelMeasurement>& rows,
                                                const AnalyticModel& device) {
  std::map<std::string, std::size_t> counts;
  std::erase_if(rows, [&](const KernelMeasurement& m) {
    const bool impossible = is_impossible(m, device);
    if (impossible) ++counts[kernel_set_name(m)];
    return impossible;
  });
  std::vector<SkippedRows> skipped;
  for (const auto& [set, n] : counts)
    skipped.push_back({set, "impossible: more than 5 % faster than the bound of the device", n});
  return skipped;
}

void take_off_timing(std::vector<KernelMeasurement>& rows, Microseconds timing) {
  for (KernelMeasurement& m : rows) m.time = std::max(m.time - timing, kLeastOfTimed * m.time);
}

std::vector<SkippedRows> keep_one_regime(std::vector<KernelMeasurement>& rows) {
  const std::map<std::string, Reaches> reach_of = reaches_of(rows);
  std::map<std::pair<std::string, std::string_view>, std::size_t> counts;
  std::erase_if(rows, [&](const KernelMeasurement& m) {
    const bool sustained = m.regime == Regime::sustained;
    const bool leave = sustained != sustained_wanted(reach_of.at(kernel_record_key(m.operation)));
    if (leave) ++counts[{kernel_set_name(m), sustained ? kOfShortReach : kOfShortRuns}];
    return leave;
  });
  return skipped_of(counts);
}

std::vector<SkippedRows> join_regimes(std::vector<KernelMeasurement>& rows) {
  std::map<std::string, RegimePair> pairs;
  for (const auto& [key, reaches] : reaches_of(rows))
    if (reaches[0].any && reaches[1].any) pairs[key].to = sustained_wanted(reaches) ? 1 : 0;
  for (const KernelMeasurement& m : rows) {
    const auto pair = pairs.find(kernel_record_key(m.operation));
    if (pair != pairs.end())
      pair->second.times[m.regime == Regime::sustained ? 1 : 0].emplace(m.operation, m.time.value());
  }
  // Carried rows do not improve forecasts of long runs of GEMMs, and make steps on Blackwell worse (docs/kernels.md).
  for (auto& [key, pair] : pairs) pair.compare(key.starts_with("attention/"));
  std::map<std::pair<std::string, std::string_view>, std::size_t> counts;
  std::erase_if(rows, [&](KernelMeasurement& m) {
    const auto found = pairs.find(kernel_record_key(m.operation));
    if (found == pairs.end()) return false;
    const RegimePair& pair = found->second;
    const std::size_t regime = m.regime == Regime::sustained ? 1 : 0;
    if (regime == pair.to) return false;
    std::string_view why;
    if (pair.other_software)
      why = kOfOtherSoftware;
    else if (pair.knots.empty())
      why = regime == 1 ? kOfShortReach : kOfShortRuns;
    else if (pair.times[pair.to].contains(m.operation))
      why = kMeasuredBothWays;
    if (!why.empty()) {
      ++counts[{kernel_set_name(m), why}];
      return true;
    }
    m.time = m.time * std::exp(pair.log_ratio(std::log(m.time.value())));
    m.regime = pair.to == 1 ? Regime::sustained : Regime::burst;
    m.carried = true;
    return false;
  });
  return skipped_of(counts);
}

std::string kernel_set_name(const KernelMeasurement& measurement) {
  return fmt::format("{}/{}/{}", measurement.gpu, measurement.label,
                     to_string(measurement.operation.direction));
}

std::vector<std::string_view> record_families(std::span<const KernelMeasurement> rows) {
  std::map<std::string, std::map<std::string_view, std::size_t>> n_rows;  // [record key][narrow family]
  for (const KernelMeasurement& m : rows)
    ++n_rows[kernel_record_key(m.operation)][narrow_family_of(m.operation)];
  std::vector<std::string_view> families;
  for (const KernelMeasurement& m : rows) {
    const auto& of_key = n_rows.at(kernel_record_key(m.operation));
    const auto& most = of_key.contains("")
                           ? *of_key.find("")
                           : *std::ranges::max_element(of_key, {}, [](const auto& f) { return f.second; });
    const std::string_view narrow = narrow_family_of(m.operation);
    families.push_back(narrow == most.first ? family_of(m.operation) : narrow);
  }
  return families;
}

std::string kernel_record_key(const Operation& operation) {
  return fmt::format("{}/{}/{}", family_of(operation), to_string(operation.dtype),
                     to_string(operation.direction));
}

}  // namespace stepcast
