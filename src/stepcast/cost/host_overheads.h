// Host time around and inside framework operators and runtime calls: the five overheads T1..T5 of a platform
// (Platform::overheads), looked up by operator.
//
//   STEPCAST_ASSIGN(const HostOverheads host, HostOverheads::of(platform));
//   host.time(OverheadType::t1, "aten::addmm")         gap before aten::addmm begins
//   host.time(OverheadType::t2, "aten::addmm")         from its begin to its first launch
//   host.time(OverheadType::t4, "cudaLaunchKernel")    one call
//   host.launches("aten::addmm")                       the calls it makes, in order
//
// Times are means per occurrence, and occurrences of zero length count: an operator of k launches takes T1 +
// T2 + k T4 + (k - 1) T5 + T3, one without launches T1 + T5. None of them includes waiting for the GPU. Names
// follow operation/overhead_name.h; a name without a record falls back to its operator, then to its family,
// then to all operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/overhead_type.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Basis of a time, from best to worst.
enum class OverheadTimeSource : std::uint8_t {
  own,     // records of exactly this operator or call
  family,  // records of operators or calls of its family
  all,     // records of all operators or calls
  none,    // the platform has no such overhead: the time is 0
};
[[nodiscard]] std::string_view to_string(OverheadTimeSource ground);  // "own", "family", "all", "none"

// Time of one occurrence.
struct HostOverhead {
  double mean_us = 0;
  double std_us = 0;  // of single occurrences, not of the mean
  double p10_us = 0, p50_us = 0, p90_us = 0;
  std::uint64_t n = 0;  // recorded occurrences
  OverheadTimeSource ground = OverheadTimeSource::none;

  // Mean, p10 and p90. The sources own and family give `fitted`, the others `assumed`.
  [[nodiscard]] Estimate estimate() const;
};

// Calls of an operator that start GPU work or wait for a stream.
struct OpLaunches {
  std::vector<std::string> calls;  // the most frequent sequence, in order: "cudaLaunchKernel", ...
  double mean_calls = 0;           // over all occurrences
  std::uint64_t n = 0;             // occurrences
  friend bool operator==(const OpLaunches&, const OpLaunches&) = default;
};
using LaunchTable = std::map<std::string, OpLaunches, std::less<>>;  // by operator

// Parameters of the record `kHostLaunchesKind`: {"aten::addmm": {"calls": ["cudaLaunchKernel"], "mean_calls":
// 1, "n": 40}}. Errors name the operator.
[[nodiscard]] Result<LaunchTable> read_launches(const JsonValue& parameters);
[[nodiscard]] JsonValue write_launches(const LaunchTable& launches);

// Parameters of the record `kHostSpreadKind`: {"jobs": 7, "band": 0.23}; of a single job {"jobs": 1}.
[[nodiscard]] JsonValue write_host_band(std::optional<double> band, std::size_t jobs);

// Name of an operator in records. Operators that differ only by run-dependent parts share one name:
// "autograd::engine::evaluate_function: AddmmBackward0" loses the number.
[[nodiscard]] std::string_view overhead_name(std::string_view op);
// The family of an operator or, with T4, of a call: "(backward)", "(communication)", "(view)", "(operator)";
// "(launch)", "(copy)", "(synchronization)", "(set-up)", "(other call)". The brackets distinguish it from
// operator names.
[[nodiscard]] std::string_view overhead_family(OverheadType type, std::string_view op);
// Name of the T1 gap after the last operator of a step.
inline constexpr std::string_view kStepEnd = "(step end)";

struct HostOverheadOptions {
  // Profiler cost per recorded event. It is subtracted where records state the number of events of an
  // occurrence, down to 0. 0: times as profiled.
  double profiler_cost_us = 0;
};

class HostOverheads {
 public:
  // Empty: all times are 0.
  HostOverheads() = default;
  // Copies what it needs of `platform`. Errors: an unreadable record of launches or of the band.
  [[nodiscard]] static Result<HostOverheads> of(const Platform& platform,
                                                const HostOverheadOptions& options = {});

  // Without records, every time is 0.
  [[nodiscard]] bool empty() const { return records_.empty(); }
  // `op`: for T1 the operator after the gap (or kStepEnd); for T2, T3, T5 the operator; for T4 the runtime
  // call.
  [[nodiscard]] HostOverhead time(OverheadType type, std::string_view op) const;
  // Null: never recorded.
  [[nodiscard]] const OpLaunches* launches(std::string_view op) const;
  [[nodiscard]] const LaunchTable& launch_table() const { return launches_; }
  // Relative deviation of the host time of a job from other jobs on the host (0.23): 80 % of jobs are within
  // it. None: learned from a single job, or not measured.
  [[nodiscard]] std::optional<double> band() const { return band_; }
  // All recorded host time divided by the number of kernels and copies that it started: the cost of a launch
  // where a framework runs operators one by one. 0: no launches were recorded.
  [[nodiscard]] double us_per_launch() const;

 private:
  // The record of exactly this key, or null.
  [[nodiscard]] const HostOverhead* find(OverheadType type, std::string_view op) const;

  std::unordered_map<std::string, HostOverhead> records_;  // by OverheadRecord::key()
  LaunchTable launches_;
  std::optional<double> band_;
};

}  // namespace stepcast
