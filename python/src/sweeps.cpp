#include "sweeps.h"

#include <stdexcept>
#include <utility>

#include <nanobind/nanobind.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/stop.h"

namespace stepcast::python {

namespace nb = nanobind;

namespace {

// In a process that works for an executor, Ctrl-C arrives while points are run; elsewhere this thread hears of none.
void look_after_signals() {
  const nb::gil_scoped_acquire back;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

std::vector<std::string> sweep_points(const std::string& text, const std::string& name,
                                      const std::string& folder) {
  const nb::gil_scoped_release others_run;
  const Result<SweepSpec> spec = parse_sweep(text, name, folder);
  if (!spec.ok()) throw std::invalid_argument(spec.error().message());
  std::vector<std::string> lines;
  for (const SweepPoint& point : spec->points) lines.push_back(point.json());
  return lines;
}

std::vector<std::string> sweep_rows(const std::vector<std::string>& lines, const std::string& folder,
                                    const std::stop_source* stop) {
  const StopScope scope{stop != nullptr ? stop->get_token() : std::stop_token{}};
  const nb::gil_scoped_release others_run;
  const Session session;
  std::vector<std::string> rows;
  for (const std::string& line : lines) {
    const Result<SweepSpec> spec = parse_sweep(line, "a point", folder);
    if (!spec.ok()) throw std::invalid_argument(spec.error().message());
    for (const SweepPoint& point : spec->points) {
      Result<std::string> row = session.run(point);
      if (is_stop_requested()) throw std::runtime_error("interrupted");
      if (!row.ok()) throw std::runtime_error(row.error().message());
      rows.push_back(std::move(*row));
      look_after_signals();
    }
  }
  return rows;
}

}  // namespace stepcast::python
