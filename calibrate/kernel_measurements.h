// Measured kernel times, read from CSV files of several layouts into one form.
//
// The header determines the layout: the schema of this project (`gpu, op, direction, dtype, <shape columns>, time_us,
// time_us_p10, time_us_p90, n, software`), or one of the headers of $STEPCAST_DATA/kernels. docs/kernels.md lists the columns
// of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/analytic_model.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// How long the device had been busy when a time was measured.
enum class Regime : std::uint8_t {
  unstated,
  burst,      // short repetitions, with clocks above those that the power limit sustains
  sustained,  // runs of a second and more, with the clocks of training
};
[[nodiscard]] std::string_view to_string(Regime regime);
[[nodiscard]] std::optional<Regime> parse_regime(std::string_view text);

struct KernelMeasurement {
  Operation operation;
  std::string gpu;    // as written: "A100-SXM4-80GB"
  std::string label;  // operator as named by the source: "linear1", "bmm", "gemm"
  Microseconds time;
  std::optional<Microseconds> p10, p90;
  Regime regime = Regime::unstated;
  bool carried = false;                               // by join_regimes(): measured in the other regime
  bool cold = false;                                  // caches were flushed before each repetition
  std::uint64_t n = 1;                                // repetitions behind the time
  std::int64_t hidden_size = 0, sequence_length = 0;  // of the model if the source states them, else 0
  std::uint32_t file = 0;                             // index into KernelMeasurements::files
  std::uint32_t line = 0;                             // of that file, the header is line 1
  std::uint32_t hash = 0;                             // row_hash() of its cells and direction
};

struct SkippedRows {
  std::string what, why;
  std::size_t n = 0;
};

struct KernelMeasurements {
  std::vector<KernelMeasurement> rows;
  std::vector<std::filesystem::path> files;
  std::vector<SkippedRows> skipped;  // rows without a time, optimizer rows without counts, ...
};

// Reads one CSV file. Errors name the line and column: a missing column, a time that is not positive, a unit that
// contradicts the header, a shape that does not fit the operation.
[[nodiscard]] Result<KernelMeasurements> read_kernel_measurements(const std::filesystem::path& path);
// The same from memory; `name` names the file in messages.
[[nodiscard]] Result<KernelMeasurements> parse_kernel_measurements(std::string_view text,
                                                                   const std::string& name);
// Reads files and folders. A folder means all its *.csv and *.csv.gz with a header of kernels; its other files are listed in
// `skipped`.
[[nodiscard]] Result<KernelMeasurements> read_kernel_measurements(
    const std::vector<std::filesystem::path>& paths);

// Steps before fitting and scoring: names, keys, and removal of impossible rows.

// A row below this share of its bound is impossible. The margin allows for jitter of clocks and for nominal peaks.
inline constexpr double kImpossibleShareOfBound = 0.95;

[[nodiscard]] bool is_impossible(const KernelMeasurement& measurement, const AnalyticModel& device);

// Removes impossible rows. Returns their number by gpu, label and direction.
[[nodiscard]] std::vector<SkippedRows> remove_impossible_rows(std::vector<KernelMeasurement>& rows,
                                                              const AnalyticModel& device);

// Subtracts the overhead of timing from each time.
void take_off_timing(std::vector<KernelMeasurement>& rows, Microseconds timing);

// Keeps rows of one regime for each family, type and direction, because two regimes give two times for one shape. Sustained
// rows are kept, since a step is one long run, unless they reach less than a quarter of the extents of the other rows.
// `rows`: all of one device. Returns the removed rows, as remove_impossible_rows() does.
std::vector<SkippedRows> keep_one_regime(std::vector<KernelMeasurement>& rows);

// The same, but keeps attention rows of the other regime if the wanted one has no row of that shape. Their times are converted by
// the ratio of shapes measured in both regimes, as a function of time. If rows are longer at every length by more than clocks
// explain, they come from other software: then the short runs stay and the long ones are removed.
std::vector<SkippedRows> join_regimes(std::vector<KernelMeasurement>& rows);

// The name of the rows of one operator in reports, for example "A100-SXM4-80GB/linear1/backward".
[[nodiscard]] std::string kernel_set_name(const KernelMeasurement& measurement);

// Name of the record that is fitted to rows like this one, for example "gemm/fp16/forward".
[[nodiscard]] std::string kernel_record_key(const Operation& operation);

// The family of the record to which each row is fitted: normally that of its operation. If rows of several narrow families
// (narrow_family_of(): attention by several kernels, copies of pinned and of pageable memory) were measured, each gets its own
// record. The one with most rows, or the rows without a narrow family, form the general record.
[[nodiscard]] std::vector<std::string_view> record_families(std::span<const KernelMeasurement> rows);

}  // namespace stepcast
