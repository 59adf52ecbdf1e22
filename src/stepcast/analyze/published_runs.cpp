#include "stepcast/analyze/published_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/text.h"

namespace stepcast {
namespace {

// One row of the table.
struct Row {
  PublishedRuns runs;
  double parameters = 0;  // active parameters per token
  bool has_experts = false;
};

// Parses the shipped table. Errors name the row and the column.
// Columns: source, model, gpu, precision, framework; min_gpus, max_gpus, runs; measured_over_forecast with
// its minimum and maximum; active parameters; has_experts.
Result<std::vector<Row>> read_rows() {
  constexpr const char* kFile = "published_runs.csv";
  STEPCAST_ASSIGN(CsvRows csv, CsvRows::open(shipped_table(kFile), kFile));
  std::vector<Row> rows;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, csv.next());
    if (!more) return rows;
    Row row;
    PublishedRuns& r = row.runs;
    for (const auto& [column, to] : {std::pair{"source", &r.source},
                                     {"model", &r.model},
                                     {"gpu", &r.gpu},
                                     {"precision", &r.precision},
                                     {"framework", &r.framework}})
      *to = csv.cell(column);
    STEPCAST_TRY(csv.extents({{"min_gpus", &r.min_gpus}, {"max_gpus", &r.max_gpus}, {"runs", &r.runs}}));
    for (const auto& [column, to] : {std::pair{"measured_over_forecast", &r.measured_over_forecast},
                                     {"min_measured_over_forecast", &r.min_measured_over_forecast},
                                     {"max_measured_over_forecast", &r.max_measured_over_forecast},
                                     {"parameters", &row.parameters}}) {
      STEPCAST_ASSIGN(*to, csv.number(column, 0));
    }
    STEPCAST_ASSIGN(row.has_experts, csv.truth("has_experts", false));
    rows.push_back(std::move(row));
  }
}

// The table, parsed once. The shipped file must parse, so an error ends the program.
const std::vector<Row>& table() {
  static const std::vector<Row> rows = as_shipped(read_rows());
  return rows;
}

// The absolute logarithm of a / b to base 2.
double log2_ratio(double a, double b) { return std::abs(std::log2(a / b)); }

}  // namespace

std::optional<PublishedRuns> nearest_published(const PublishedQuestion& job) {
  const auto parameters = static_cast<double>(std::max<std::int64_t>(1, active_parameter_count(job.model)));
  const auto n_gpus = static_cast<double>(job.n_gpus);
  std::optional<PublishedRuns> nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const Row& row : table()) {
    PublishedRuns runs = row.runs;
    std::vector<std::string> differs;
    // Adds a term to the distance. Smaller terms than kTold are not mentioned.
    const auto differ = [&](double by, std::string what) {
      constexpr double kTold = 0.02;
      runs.distance += by;
      if (by > kTold) differs.push_back(std::move(what));
    };
    differ(
        (row.has_experts != job.model.moe.has_value() ? 2 : 0) + log2_ratio(row.parameters, parameters) / 2,
        fmt::format("model ({} for {})", runs.model, job.model.name));
    // Each call adds one term of the distance and, if it matters, a few words for the reader.
    differ(runs.gpu != job.gpu ? 1 : 0, fmt::format("GPU ({})", runs.gpu));
    differ(runs.precision != to_string(job.precision) ? 1 : 0, fmt::format("precision ({})", runs.precision));
    differ(runs.framework != to_string(job.framework) ? 0.5 : 0,
           fmt::format("framework ({})", runs.framework));
    // Within the range of GPUs that the row covers, the number of GPUs adds no distance.
    const double few = static_cast<double>(runs.min_gpus), many = static_cast<double>(runs.max_gpus);
    differ(log2_ratio(n_gpus, std::clamp(n_gpus, few, many)) / 4,
           runs.min_gpus == runs.max_gpus
               ? fmt::format("number of GPUs ({})", runs.min_gpus)
               : fmt::format("number of GPUs ({} to {})", runs.min_gpus, runs.max_gpus));
    if (runs.distance >= least) continue;
    least = runs.distance;
    runs.differs = join(differs, ", ");
    nearest = std::move(runs);
  }
  constexpr double kFarthest = 4;
  if (least > kFarthest) return std::nullopt;
  return nearest;
}

}  // namespace stepcast
