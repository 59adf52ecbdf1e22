// How long a host takes around and inside framework operators and runtime calls: the five overheads T1..T5 of
// a platform (Platform::overheads), asked for by operator.
//
//   STEPCAST_ASSIGN(const HostOverheads host, HostOverheads::of(platform));
//   host.time(OverheadType::t1, "aten::addmm")         gap before aten::addmm begins
//   host.time(OverheadType::t2, "aten::addmm")         from its begin to its first launch
//   host.time(OverheadType::t4, "cudaLaunchKernel")    one call
//   host.launches("aten::addmm")                       the calls it makes, in order
//
// Times are per occurrence, occurrences of no length counted: an operator of k launches takes
// T1 + T2 + k T4 + (k - 1) T5 + T3, one without launches T1 + T5. Waiting for the GPU is in none of them.
// Names are those of operation/overhead_name.h; what was not recorded by its whole name takes the time of its operator.
// An operator that was never recorded takes the times of its family, or those of all operators.
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

// Where a time comes from, from best to worst.
enum class OverheadTimeSource : std::uint8_t {
  own,     // of this very operator or call
  family,  // of operators or calls of its kind
  all,     // of every operator or call that was recorded
  none,    // the platform has no such overhead: no time
};
[[nodiscard]] std::string_view to_string(OverheadTimeSource ground);  // "own", "family", "all", "none"

// Time of one occurrence.
struct HostOverhead {
  double mean_us = 0;
  double std_us = 0;  // of single occurrences, not of the mean
  double p10_us = 0, p50_us = 0, p90_us = 0;
  std::uint64_t n = 0;  // occurrences behind it
  OverheadTimeSource ground = OverheadTimeSource::none;

  // Mean, p10 and p90; own and family count as fitted, the others as assumed.
  [[nodiscard]] Estimate estimate() const;
};

// Calls of an operator that start GPU work or wait for a stream.
struct OpLaunches {
  std::vector<std::string> calls;  // of the most frequent sequence, in its order: "cudaLaunchKernel", ...
  double mean_calls = 0;           // over all occurrences
  std::uint64_t n = 0;             // occurrences
  friend bool operator==(const OpLaunches&, const OpLaunches&) = default;
};
using LaunchTable = std::map<std::string, OpLaunches, std::less<>>;  // by operator

// Parameters of the record `kHostLaunchesKind`:
// {"aten::addmm": {"calls": ["cudaLaunchKernel"], "mean_calls": 1, "n": 40}}. Errors name the operator.
[[nodiscard]] Result<LaunchTable> read_launches(const JsonValue& parameters);
[[nodiscard]] JsonValue write_launches(const LaunchTable& launches);

// Parameters of the record `kHostSpreadKind`: {"jobs": 7, "band": 0.23}; of one job {"jobs": 1}.
[[nodiscard]] JsonValue write_host_band(std::optional<double> band, std::size_t jobs);

// What the records of overheads are called. Operators whose names differ by what does not change between runs
// and releases share one: "autograd::engine::evaluate_function: AddmmBackward0" loses the number.
[[nodiscard]] std::string_view overhead_name(std::string_view op);
// The family of an operator or, with T4, of a call: "(backward)", "(communication)", "(view)", "(operator)";
// "(launch)", "(copy)", "(synchronization)", "(set-up)", "(other call)". Brackets tell it from the name of an operator.
[[nodiscard]] std::string_view overhead_family(OverheadType type, std::string_view op);
// T1 of the gap behind the last operator of a step.
inline constexpr std::string_view kStepEnd = "(step end)";

struct HostOverheadOptions {
  // What the profiler added for every event it recorded; taken off, where records say how many events an
  // occurrence holds, down to 0. 0: times as profiled.
  double profiler_cost_us = 0;
};

class HostOverheads {
 public:
  // Knows nothing.
  HostOverheads() = default;
  // `platform` need not outlive this. Errors: a record of launches or of the band that cannot be read.
  [[nodiscard]] static Result<HostOverheads> of(const Platform& platform,
                                                const HostOverheadOptions& options = {});

  // True: every time is 0.
  [[nodiscard]] bool empty() const { return records_.empty(); }
  // `op`: T1 the operator behind the gap (or kStepEnd); T2, T3, T5 the operator; T4 the runtime call.
  [[nodiscard]] HostOverhead time(OverheadType type, std::string_view op) const;
  // Null pointer: never recorded.
  [[nodiscard]] const OpLaunches* launches(std::string_view op) const;
  [[nodiscard]] const LaunchTable& launch_table() const { return launches_; }
  // How far the host time of a job is off what other jobs of the host say, as a share (0.23): 80 % of jobs are within. Nothing:
  // learned from a single job, or not measured.
  [[nodiscard]] std::optional<double> band() const { return band_; }
  // All host time that was recorded over the kernels and copies that it started: what one costs where a framework runs its
  // operators one by one. 0: no launches were recorded.
  [[nodiscard]] double us_per_launch() const;

 private:
  [[nodiscard]] const HostOverhead* find(OverheadType type, std::string_view op) const;

  std::unordered_map<std::string, HostOverhead> records_;  // by OverheadRecord::key()
  LaunchTable launches_;
  std::optional<double> band_;
};

}  // namespace stepcast
