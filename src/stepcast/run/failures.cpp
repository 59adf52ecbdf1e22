#include "stepcast/run/failures.h"

#include <cmath>
#include <cstddef>
#include <map>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/one_line.h"

namespace stepcast {
namespace {

// Size of the published job: 2,048 nodes of 8 GPUs, two nodes per switch.
constexpr double kJobHours = 54 * 24, kJobGpus = 16384, kJobNodes = 2048, kJobSwitches = 1024;
// Its interruptions: GPUs including memory (148 + 72 + 48), hosts, network, software and other (54 + 9).
constexpr double kGpuEvents = 268, kHostEvents = 53, kNetworkEvents = 35, kSoftwareEvents = 63;
// Relative error of the mean downtime for a log with too few downtimes to estimate it.
constexpr double kFewDowntimesError = 0.5;
// Limits of a log: distinct causes, and nodes lost by one interruption.
constexpr std::size_t kMostCauses = 100;
constexpr int kMostNodes = 100'000;

// Interruptions of one cause in a log.
struct Seen {
  double events = 0, nodes_lost = 0;
  std::vector<double> downtimes_s;
};

double mean_of_downtimes(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Relative standard error of the mean downtime, from the deviations of the downtimes from the mean of their cause. 0 without
// downtimes.
double error_of_downtimes(const std::map<std::string, Seen>& causes) {
  double sum = 0, squares = 0, n = 0, means = 0;
  for (const auto& [name, seen] : causes) {
    if (seen.downtimes_s.empty()) continue;
    const double mean = mean_of_downtimes(seen.downtimes_s);
    for (const double value : seen.downtimes_s) squares += (value - mean) * (value - mean);
    n += static_cast<double>(seen.downtimes_s.size());
    sum += mean * static_cast<double>(seen.downtimes_s.size());
    ++means;
  }
  if (n == 0) return 0;
  if (n <= means) return kFewDowntimesError;
  return std::sqrt(squares / (n - means) / n) / (sum / n);
}

// A number above 0, or empty for an empty cell.
Result<std::optional<double>> positive_if_any(const CsvRows& rows, std::string_view column) {
  if (rows.cell(column).empty()) return std::optional<double>{};
  const Result<double> value = rows.number(column, 0);
  if (!value || !(*value > 0)) return rows.error(column).expected("a number above 0, or no value");
  return std::optional{*value};
}

// Adds one row of the log: checks its time, counts GPU-hours since the row before and records its cause. `ended`: the row with
// the cause `end` was read.
Status add_row(const CsvRows& rows, double& time_h, double& gpu_hours, std::map<std::string, Seen>& causes,
               bool& ended) {
  if (ended) return rows.error("cause", "a row after the end of the log").advice("`end` is the last row");
  const Result<double> at = rows.number("time_h", 0);
  if (!at || !(*at > time_h)) {
    return rows.error("time_h").expected(
        time_h > 0 ? fmt::format("hours since the start of the job, above {:g} of the row before", time_h)
                   : "hours since the start of the job, above 0");
  }
  STEPCAST_ASSIGN(const std::int64_t n_gpus, rows.extent("n_gpus"));
  gpu_hours += (*at - time_h) * static_cast<double>(n_gpus);
  time_h = *at;
  const std::string cause = in_one_line(rows.cell("cause"));
  ended = cause == "end";
  if (ended) return Ok{};
  if (cause.empty() || cause.size() > 40)
    return rows.error("cause").expected("a word for its cause, or `end` in the last row");
  Seen& seen = causes[cause];
  if (causes.size() > kMostCauses)
    return rows.error("cause").expected(fmt::format("at most {} causes: kinds, not messages", kMostCauses));
  STEPCAST_ASSIGN(const std::optional<double> downtime_min, positive_if_any(rows, "downtime_min"));
  STEPCAST_ASSIGN(const double nodes_lost, rows.number("nodes_lost", 0, 0));
  ++seen.events;
  if (nodes_lost > kMostNodes)
    return rows.error("nodes_lost").expected(fmt::format("at most {}", kMostNodes));
  seen.nodes_lost += nodes_lost;
  if (downtime_min) seen.downtimes_s.push_back(*downtime_min * 60);
  return Ok{};
}

}  // namespace

FailureRates default_failures() {
  // GPU and host failures remove a node. That each of them needs repair is assumed.
  return {.source = "default",
          .causes = {{.name = "gpu", .mean_time_h = kJobGpus * kJobHours / kGpuEvents, .nodes_lost = 1},
                     {.name = "host",
                      .unit = FailureUnit::node,
                      .mean_time_h = kJobNodes * kJobHours / kHostEvents,
                      .nodes_lost = 1},
                     {.name = "network",
                      .unit = FailureUnit::rack_switch,
                      .mean_time_h = kJobSwitches * kJobHours / kNetworkEvents},
                     {.name = "software",
                      .unit = FailureUnit::node,
                      .mean_time_h = kJobNodes * kJobHours / kSoftwareEvents}}};
}

Result<FailureRates> parse_failure_log(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  for (const std::string_view column : {"time_h", "n_gpus", "cause"})
    if (!rows.has(column))
      return Error::at(name, "the header")
          .found(fmt::format("no column {}", column))
          .expected("time_h,n_gpus,cause and, if known, downtime_min and nodes_lost");
  std::map<std::string, Seen> causes;
  double time_h = 0, gpu_hours = 0;
  bool ended = false;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    STEPCAST_TRY(add_row(rows, time_h, gpu_hours, causes, ended));
  }
  if (!(time_h > 0))
    return Error::at(name, "the rows")
        .found("none")
        .expected("one row per interruption, or one with the cause `end`");
  if (causes.empty()) causes["any"];  // nothing happened, and that says how rare it is
  FailureRates rates{.source = name};
  for (const auto& [cause, seen] : causes) {
    FailureCause& out = rates.causes.emplace_back();
    out.name = cause;
    out.events = seen.events;
    out.gpu_hours = gpu_hours;
    out.prior_events = ended ? 0.5 / static_cast<double>(causes.size()) : 0;
    out.downtime_error = error_of_downtimes(causes);
    out.mean_time_h = gpu_hours / (out.events + out.prior_events);
    if (!seen.downtimes_s.empty()) out.downtime_s = mean_of_downtimes(seen.downtimes_s);
    if (seen.events > 0) out.nodes_lost = seen.nodes_lost / seen.events;
  }
  return rates;
}

Result<FailureRates> read_failures(const std::string& word) {
  if (word == "default") return default_failures();
  const Result<std::string> file = read_file(word);
  if (!file)
    return Error::at("", "--failures", file.error().message())
        .expected("default, or a log of interruptions (docs/runs.md)");
  return parse_failure_log(*file, word);
}

}  // namespace stepcast
