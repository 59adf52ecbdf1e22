#include "calibrate/lookup_measurements.h"

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/text.h"
#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/platform/provenance.h"
#include "stepcast/recommend/dlrm_job.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostTables = 100'000;  // of one kernel
constexpr double kMostBags = 1e12;

// Reads the cells of the kernel, without those of the table.
Result<LookupMeasurement> kernel_of(const CsvRows& rows) {
  LookupMeasurement m{.line = rows.line()};
  m.gpu = rows.cell("gpu");
  if (m.gpu.empty()) return rows.error("gpu").expected("the GPU that was measured");
  const std::string direction = lower(rows.cell("direction"));
  if (direction != "forward" && direction != "backward")
    return rows.error("direction").expected("forward or backward");
  m.direction = direction == "forward" ? Direction::forward : Direction::backward;
  m.dtype = parse_dtype(rows.cell("dtype"));
  if (element_size(m.dtype).value() <= 0) return rows.error("dtype").expected("fp32, fp16, bf16 or int8");
  if (const std::string_view name = rows.cell("optimizer"); !name.empty()) {
    const std::optional<OptimizerKind> kind = find_table_optimizer(name);
    if (!kind) return rows.error("optimizer").expected(table_optimizer_names());
    m.optimizer = *kind;
  }
  STEPCAST_ASSIGN(const std::int64_t bags, rows.extent("batch"));
  m.bags = static_cast<double>(bags);
  if (m.bags > kMostBags) return rows.error("batch").expected("samples of one kernel");
  STEPCAST_ASSIGN(m.time_us, rows.number("time_us", 0));
  if (!(m.time_us > 0)) return rows.error("time_us").expected("a time above 0 in microseconds");
  return m;
}

Result<LookupMeasurement::Table> table_of(const CsvRows& rows) {
  LookupMeasurement::Table t;
  STEPCAST_ASSIGN(const std::int64_t n_rows, rows.extent("rows"));
  STEPCAST_ASSIGN(const std::int64_t dim, rows.extent("dim"));
  STEPCAST_ASSIGN(t.pooling, rows.number("pooling_factor", 0));
  t.rows = static_cast<double>(n_rows);
  t.dim = static_cast<double>(dim);
  if (t.pooling <= 0) return t;
  STEPCAST_ASSIGN(t.reuse, read_reuse_shares(rows));
  return t;
}

// The name of a value that two lines of one kernel must share but do not; empty if there is none.
std::string_view contradiction(const LookupMeasurement& a, const LookupMeasurement& b) {
  if (a.gpu != b.gpu) return "gpu";
  if (a.direction != b.direction) return "direction";
  if (a.dtype != b.dtype) return "dtype";
  if (a.optimizer != b.optimizer) return "optimizer";
  if (a.bags != b.bags) return "batch";
  return a.time_us != b.time_us ? "time_us" : "";
}

void close(LookupMeasurement& m) {
  std::string tables;
  for (const LookupMeasurement::Table& t : m.tables)
    tables += fmt::format("{} {} {} {};", t.rows, t.dim, t.pooling, fmt::join(t.reuse, " "));
  m.hash = row_hash({m.gpu, to_string(m.direction), to_string(m.dtype), to_string(m.optimizer),
                     fmt::format("{} {}", m.bags, m.time_us), tables});
}

}  // namespace

bool looks_like_lookup_measurements(std::string_view text) {
  const Result<CsvRows> rows = CsvRows::open(text.substr(0, text.find('\n')), "header");
  if (!rows.ok()) return false;
  return rows->has("kernel") && rows->has("pooling_factor") && rows->has("reuse") && rows->has("time_us");
}

Result<std::vector<LookupMeasurement>> parse_lookup_measurements(std::string_view text,
                                                                 const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  for (const std::string_view column : {"gpu", "kernel", "direction", "dtype", "batch", "rows", "dim",
                                        "pooling_factor", "reuse", "time_us"}) {
    if (rows.has(column)) continue;
    return Error::at(name, "the header")
        .found(fmt::format("no column {}", column))
        .expected("a line for every table of a measured lookup (docs/dlrm.md)");
  }
  std::vector<LookupMeasurement> kernels;
  std::set<std::string, std::less<>> seen;
  std::string current;
  while (true) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    const std::string_view id = rows.cell("kernel");
    if (id.empty()) return rows.error("kernel").expected("what tells the kernel from others");
    STEPCAST_ASSIGN(LookupMeasurement m, kernel_of(rows));
    if (kernels.empty() || id != current) {
      if (!seen.emplace(id).second)
        return rows.error("kernel", "the lines of a kernel are not consecutive")
            .advice("sort them by kernel, and name every kernel otherwise");
      current = id;
      kernels.push_back(std::move(m));
    } else if (const std::string_view column = contradiction(kernels.back(), m); !column.empty()) {
      return rows.error(column, fmt::format("kernel {} says otherwise in line {}", id, kernels.back().line));
    }
    if (kernels.back().tables.size() == kMostTables)
      return rows.error("kernel").expected(fmt::format("at most {} tables", kMostTables));
    STEPCAST_ASSIGN(const LookupMeasurement::Table table, table_of(rows));
    kernels.back().tables.push_back(table);
  }
  for (LookupMeasurement& m : kernels) close(m);
  if (kernels.empty())
    return Error::at(name, "the file").found("no kernels").expected("a line for every table of a kernel");
  return kernels;
}

Result<LookupFiles> read_lookup_measurements(const std::vector<std::filesystem::path>& paths) {
  LookupFiles files;
  for (const std::filesystem::path& path : paths) {
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(path, ignored);
    const std::vector<std::filesystem::path> inside = folder ? csv_files_in(path) : std::vector{path};
    bool any_other = !folder;
    for (const std::filesystem::path& file : inside) {
      STEPCAST_ASSIGN(const std::string text, read_file(file));
      if (!looks_like_lookup_measurements(text)) {
        any_other = true;
        continue;
      }
      if (!folder) any_other = false;
      STEPCAST_ASSIGN(std::vector<LookupMeasurement> more, parse_lookup_measurements(text, file.string()));
      std::move(more.begin(), more.end(), std::back_inserter(files.kernels));
    }
    if (any_other || inside.empty()) files.others.push_back(path);
  }
  return files;
}

}  // namespace stepcast
