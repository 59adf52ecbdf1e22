// Words of other software and what they mean or say of it, in the lists of tables/foreign_words.csv.
#pragma once

#include <span>
#include <string_view>

namespace stepcast::detail {

struct ForeignWord {
  std::string_view word, says;
};
// A list of the table, in its order; empty if there is none.
[[nodiscard]] std::span<const ForeignWord> foreign_words(std::string_view list);

}  // namespace stepcast::detail
