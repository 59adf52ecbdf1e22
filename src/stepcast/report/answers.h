// Every answer whose JSON comes from a list of fields (report/fields/field_list.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepcast {

struct AnswerSchema {
  std::string_view name;     // "forecast.json": a file of docs/schemas/
  std::string_view summary;  // what prints it
  std::string (*text)();     // the whole file
};

[[nodiscard]] std::span<const AnswerSchema> answer_schemas();

}  // namespace stepcast
