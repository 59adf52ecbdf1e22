// Points of a sweep for workers of any executor (Session::run).
#pragma once

#include <stop_token>
#include <string>
#include <vector>

namespace stepcast::python {

// The points of a spec (docs/sweeps.md), a line of JSON each. `name` stands for the text in errors; files that it names are
// looked for in `folder`. Throws std::invalid_argument, a ValueError in Python.
[[nodiscard]] std::vector<std::string> sweep_points(const std::string& text, const std::string& name,
                                                    const std::string& folder);

// The row of every point, in their order. Throws std::runtime_error where the machine fails or `stop` asks to end, and
// what a handler of signals raised.
[[nodiscard]] std::vector<std::string> sweep_rows(const std::vector<std::string>& lines,
                                                  const std::string& folder, const std::stop_source* stop);

}  // namespace stepcast::python
