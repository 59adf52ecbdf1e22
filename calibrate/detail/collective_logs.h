// The readers behind collective_measurements.h, one per format.
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

// Shared between them.
[[nodiscard]] std::vector<std::string_view> words(std::string_view line);
// Splits at line breaks; a trailing carriage return is dropped.
[[nodiscard]] std::vector<std::string_view> lines(std::string_view text);
[[nodiscard]] std::optional<double> finite_number(std::string_view word);
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view word);
// "all_reduce_perf", "alltoall", "p2p", ... as found in logs and CSV files.
[[nodiscard]] CollectiveOp measured_collective(std::string_view text);
// A collective test named anywhere in the text ("/opt/nccl-tests/build/all_gather_perf -b 8"); unknown if
// none.
[[nodiscard]] CollectiveOp mentioned_collective(std::string_view text);

// Checks what every format must keep: a positive finite size and time. `place` is the line.
[[nodiscard]] Status check_sample(const CollectiveSample& sample, const std::string& name,
                                  const std::string& place);

// Adds the sample to the curve, with the hash that tells it from other rows.
void add_sample(CollectiveMeasurements& curve, CollectiveSample sample);
// `op`, else the collective that the name of the file mentions; an Error if that is none.
[[nodiscard]] Result<CollectiveOp> collective_or_named(CollectiveOp op, const std::string& name,
                                                       const std::string& place);

// How many ranks on how many nodes, from what a log says about them.
struct RankHeader {
  std::uint32_t n_ranks = 0;
  std::vector<std::string> hosts;  // one per rank; may be empty
  std::string gpu;
};
// Fills nodes and ranks of `curve`, or says what is missing.
[[nodiscard]] Status apply_ranks(const RankHeader& header, const MeasurementContext& context,
                                 const std::string& name, CollectiveMeasurements& curve);

}  // namespace stepcast::detail
