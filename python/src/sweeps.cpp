#include "sweeps.h"

#include <stdexcept>
#include <utility>

#include <nanobind/nanobind.h>

#include "stepcast/api/stepcast.h"

namespace stepcast::python {

namespace nb = nanobind;

std::vector<std::string> sweep_points(const std::string& text, const std::string& name,
                                      const std::string& folder) {
  const nb::gil_scoped_release others_run;
  const Result<SweepSpec> spec = parse_sweep(text, name, folder);
  if (!spec.ok()) throw std::invalid_argument(spec.error().message());
  std::vector<std::string> lines;
  for (const SweepPoint& point : spec->points) lines.push_back(point.json());
  return lines;
}

std::vector<std::string> sweep_rows(const std::vector<std::string>& lines, const std::string& folder) {
  const nb::gil_scoped_release others_run;
  const Session session;
  std::vector<std::string> rows;
  for (const std::string& line : lines) {
    const Result<SweepSpec> spec = parse_sweep(line, "a point", folder);
    if (!spec.ok()) throw std::invalid_argument(spec.error().message());
    for (const SweepPoint& point : spec->points) {
      Result<std::string> row = session.run(point);
      if (!row.ok()) throw std::runtime_error(row.error().message());
      rows.push_back(std::move(*row));
    }
  }
  return rows;
}

}  // namespace stepcast::python
