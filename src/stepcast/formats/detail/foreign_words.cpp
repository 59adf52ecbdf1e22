#include "stepcast/formats/detail/foreign_words.h"

#include <map>
#include <vector>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/shipped_table.h"

namespace stepcast::detail {
namespace {

using WordLists = std::map<std::string_view, std::vector<ForeignWord>>;

// Reads the table with the columns list, word and says. Rows of a list need not be adjacent.
Result<WordLists> read_word_lists() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("foreign_words.csv"), "foreign_words.csv"));
  WordLists lists;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return lists;
    lists[rows.cell("list")].push_back({rows.cell("word"), rows.cell("says")});
  }
}

}  // namespace

std::span<const ForeignWord> foreign_words(std::string_view list) {
  static const WordLists kLists = as_shipped(read_word_lists());
  const auto found = kLists.find(list);
  return found == kLists.end() ? std::span<const ForeignWord>{} : found->second;
}

}  // namespace stepcast::detail
