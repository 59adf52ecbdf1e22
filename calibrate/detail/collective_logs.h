// Readers for collective_measurements.h, one for each format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/collective_measurements.h"

namespace stepcast::detail {

[[nodiscard]] Result<MeasuredCollectives> parse_nccl_tests_text(std::string_view text,
                                                                const std::string& name,
                                                                const MeasurementContext& context);
[[nodiscard]] Result<MeasuredCollectives> parse_nccl_tests_json(std::string_view text,
                                                                const std::string& name,
                                                                const MeasurementContext& context);
[[nodiscard]] Result<MeasuredCollectives> parse_param_log(std::string_view text, const std::string& name,
                                                          const MeasurementContext& context);
[[nodiscard]] Result<MeasuredCollectives> parse_collective_csv(std::string_view text, const std::string& name,
                                                               const MeasurementContext& context);

// Helpers of several readers.
[[nodiscard]] std::vector<std::string_view> words(std::string_view line);
// Splits at line breaks; a trailing carriage return is dropped.
[[nodiscard]] std::vector<std::string_view> lines(std::string_view text);
[[nodiscard]] std::optional<double> finite_number(std::string_view word);
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view word);
// "all_reduce_perf", "alltoall", "p2p", ... as found in logs and CSV files.
[[nodiscard]] CollectiveOp measured_collective(std::string_view text);
// The collective of a benchmark named anywhere in the text ("/opt/nccl-tests/build/all_gather_perf -b 8"); unknown if there
// is none.
[[nodiscard]] CollectiveOp mentioned_collective(std::string_view text);

// Checks that size and time are positive and finite. `place` is the line.
[[nodiscard]] Status check_sample(const CollectiveSample& sample, const std::string& name,
                                  const std::string& place);

// Adds the sample to the curve, with a hash that identifies its row.
void add_sample(CollectiveMeasurements& curve, CollectiveSample sample);
// `op`, or if unknown the collective named by the file name; an Error if there is none.
[[nodiscard]] Result<CollectiveOp> collective_or_named(CollectiveOp op, const std::string& name,
                                                       const std::string& place);

// Number of ranks and nodes, from the statements of a log.
struct RankHeader {
  std::uint32_t n_ranks = 0;
  std::vector<std::string> hosts;  // one for each rank; may be empty
  std::string gpu;
};
// Sets nodes and ranks of `curve`. An error names missing values.
[[nodiscard]] Status apply_ranks(const RankHeader& header, const MeasurementContext& context,
                                 const std::string& name, CollectiveMeasurements& curve);

}  // namespace stepcast::detail
