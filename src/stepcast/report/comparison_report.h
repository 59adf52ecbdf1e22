// What differs between two steps, as a person reads it, and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/analyze/compare.h"

namespace stepcast {

class JsonWriter;

// The verdict, then lists, each with at most `rows` lines.
[[nodiscard]] std::string comparison_text(const Comparison& comparison, std::size_t rows = 10);

// stepcast.comparison/1 (docs/schemas/comparison.json); `a` and `b` are the names of what was compared.
[[nodiscard]] std::string comparison_json(const Comparison& comparison, const std::string& a,
                                          const std::string& b);
// The members of that document alone, into an object that is open.
void write_comparison(JsonWriter& json, const Comparison& comparison);

// "computation: gemm x 1.09 (its 273.3 ms)": the likeliest of the explanations, at most `most` of them.
[[nodiscard]] std::string explanations_text(const Comparison& comparison, std::size_t most);

}  // namespace stepcast
