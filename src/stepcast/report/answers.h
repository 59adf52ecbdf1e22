// The list of all answers with a JSON schema (docs/schemas/). Their JSON is described by lists of fields
// (report/fields/field_list.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepcast {

// The schema of one answer.
struct AnswerSchema {
  std::string_view name;     // the name of its file in docs/schemas/: "forecast.json"
  std::string_view summary;  // the command that prints the answer
  std::string (*text)();     // returns the content of the file
};

// All schemas, sorted by name.
[[nodiscard]] std::span<const AnswerSchema> answer_schemas();

}  // namespace stepcast
