// Writes and reads vectors of structs as columns of a file, with the same calls for both directions.
//
//   StringTable texts;
//   ColumnFile file{columns, texts};
//   table(file, "threads", rank.threads).add("pid", &RecordedThread::pid).add("name", &RecordedThread::name);
//
// The column `threads` contains the number of rows; `threads.pid` and `threads.name` contain one number per
// row. Numbers, times and enumerators are stored unchanged, ids as their index (-1 for none), floats as
// their bits, a missing optional as the smallest 64-bit number, texts and names as their position among the
// texts of the file, and lists as their length; the elements of the lists of all rows are the column
// `TABLE.MEMBER.elements`. Reading fails if a number is out of the range of its member. The caller checks the
// meaning of the numbers.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/id.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/string_table.h"
#include "stepcast/trace/detail/columns.h"

namespace stepcast::detail {

// Times must be within this many nanoseconds of zero, so that the sum of two does not overflow.
inline constexpr std::int64_t kLatest = std::int64_t{1} << 61U;
// Bound on the memory of a table, in bytes per byte of columns that is left in the file. A row needs a cell
// for each member, and takes 7 to 20 bytes per cell. A damaged count therefore cannot allocate much memory.
inline constexpr std::uint64_t kRowBytes = 24;

// True for types Id<Tag>.
template <class Value>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;
inline constexpr std::int64_t kNoNumber = std::numeric_limits<std::int64_t>::min();

// The number that represents a value in a column.
template <class Value>
[[nodiscard]] std::int64_t number_of(const Value& value) {
  if constexpr (requires { value.has_value(); })
    return value ? number_of(*value) : kNoNumber;
  else if constexpr (std::is_same_v<Value, Nanoseconds>)
    return value.count();
  else if constexpr (kIsId<Value>)
    return value.valid() ? std::int64_t{value.index()} : -1;
  else if constexpr (std::is_same_v<Value, float>)
    return std::bit_cast<std::int32_t>(value);
  else
    return static_cast<std::int64_t>(value);
}

// Sets a value from its number. False if the number is out of range.
template <class Value>
[[nodiscard]] bool set_number(Value& value, std::int64_t number) {
  if constexpr (requires { value.has_value(); }) {
    return number == kNoNumber || set_number(value.emplace(), number);
  } else if constexpr (std::is_same_v<Value, Nanoseconds>) {
    value = Nanoseconds{number};
    return number > -kLatest && number < kLatest;
  } else if constexpr (kIsId<Value>) {
    value = number < 0 ? Value{} : Value{static_cast<std::uint32_t>(number)};
  } else if constexpr (std::is_same_v<Value, float>) {
    value = std::bit_cast<float>(static_cast<std::int32_t>(number));
    if (std::isnan(value)) return false;
  } else {
    value = static_cast<Value>(number);
  }
  return number_of(value) == number;
}

// Differences and sums modulo 2^64, so that any two numbers have a difference.
[[nodiscard]] constexpr std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
[[nodiscard]] constexpr std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// The columns of a file and its texts. A reader fills the texts before reading columns.
struct ColumnFile {
  Columns& columns;
  StringTable& texts;

  // Writes or reads one column. `get(i)` returns the number of row i of `n`; `put(i, number)` takes it and
  // returns whether it is in range. A table without rows has no columns.
  template <class Get, class Put>
  void column(const std::string& name, Coding coding, std::size_t n, const Get& get, const Put& put) {
    if (n == 0) return;
    std::vector<std::int64_t> cells;
    for (std::size_t i = 0; i < n && !columns.is_reading(); ++i) cells.push_back(get(i));
    columns.column(name, coding, cells);
    if (!columns.is_reading() || !columns.problem().empty()) return;
    bool fits = cells.size() == n;
    for (std::size_t i = 0; fits && i < n; ++i) fits = put(i, cells[i]);
    if (!fits) columns.fail(fmt::format("numbers out of range in column `{}`", name));
  }
};

// Translates between the names of a recording and their positions among the texts of the file.
struct Names {
  ColumnFile& file;
  StringTable& table;
  // Cache: [name] when writing, [position] when reading; invalid: not seen yet.
  std::vector<NameId> known{};

  NameId other(const StringTable& from, NameId id, StringTable& to) {
    if (known.size() <= id.index()) known.resize(std::size_t{id.index()} + 1);
    if (!known[id.index()].valid()) known[id.index()] = to.intern(from.text(id));
    return known[id.index()];
  }
  // For writing: the position of a name among the texts.
  std::int64_t place_of(NameId name) {
    return number_of(name.valid() ? other(table, name, file.texts) : name);
  }
  // For reading: the name at a position. False if the position is out of range.
  bool put(NameId& name, std::int64_t place) {
    if (!set_number(name, place) || (name.valid() && name.index() >= file.texts.size())) return false;
    if (name.valid()) name = other(file.texts, name, table);
    return true;
  }
};

// The columns of one vector of structs. Each add() writes or reads the column of one member.
template <class Row>
class Table {
 public:
  Table(ColumnFile& file, std::string name, std::span<Row> rows, Names* names = nullptr)
      : file_(file), name_(std::move(name)), rows_(rows), names_(names) {}

  // Stores the difference to `base(i)`, a value that is known from other columns or rows that precede this
  // column.
  template <class Value, class Base>
  Table& add(const char* member, Value Row::*value, Coding coding, const Base& base) {
    return column(
        member, coding,
        [&](Row& row, std::size_t i) { return wrapped_difference(number_of(row.*value), base(i)); },
        [&](Row& row, std::size_t i, std::int64_t n) {
          return set_number(row.*value, wrapped_sum(n, base(i)));
        });
  }
  template <class Value>
  Table& add(const char* member, Value Row::*value, Coding coding = Coding::values) {
    return add(member, value, coding, [](std::size_t) { return std::int64_t{0}; });
  }
  // A column of names.
  Table& add(const char* member, NameId Row::*name) {
    return column(
        member, Coding::values, [&](Row& row, std::size_t) { return names_->place_of(row.*name); },
        [&](Row& row, std::size_t, std::int64_t place) { return names_->put(row.*name, place); });
  }
  // A column of texts.
  Table& add(const char* member, std::string Row::*text) {
    return column(
        member, Coding::values,
        [&](Row& row, std::size_t) { return number_of(file_.texts.intern(row.*text)); },
        [&](Row& row, std::size_t, std::int64_t place) {
          NameId id;
          const bool fits = set_number(id, place) && id.valid() && id.index() < file_.texts.size();
          if (fits) row.*text = file_.texts.text(id);
          return fits;
        });
  }
  // A list per row: a column of lengths, and a column of all elements.
  template <class Element>
  Table& add(const char* member, std::vector<Element> Row::*list) {
    std::vector<Element*> elements;
    const auto size = [&](Row& row, std::size_t) {
      for (Element& element : row.*list) elements.push_back(&element);
      return static_cast<std::int64_t>((row.*list).size());
    };
    column(member, Coding::values, size, [&](Row& row, std::size_t i, std::int64_t n) {
      // Each element takes at least one byte of the file, which bounds a damaged length.
      if (n < 0 || static_cast<std::uint64_t>(n) + elements.size() > file_.columns.bytes_left()) return false;
      (row.*list).resize(static_cast<std::size_t>(n));
      return size(row, i) == n;
    });
    file_.column(
        fmt::format("{}.{}.elements", name_, member), Coding::values, elements.size(),
        [&](std::size_t i) { return number_of(*elements[i]); },
        [&](std::size_t i, std::int64_t n) { return set_number(*elements[i], n); });
    return *this;
  }

 private:
  template <class Get, class Put>
  Table& column(const char* member, Coding coding, const Get& get, const Put& put) {
    file_.column(
        fmt::format("{}.{}", name_, member), coding, rows_.size(),
        [&](std::size_t i) { return get(rows_[i], i); },
        [&](std::size_t i, std::int64_t n) { return put(rows_[i], i, n); });
    return *this;
  }

  ColumnFile& file_;
  std::string name_;
  std::span<Row> rows_;
  Names* names_;
};

// Writes or reads the number of rows and returns the table. Reading resizes `rows`.
template <class Row>
Table<Row> table(ColumnFile& file, const char* name, std::vector<Row>& rows, Names* names = nullptr) {
  const auto count = [&](std::size_t) { return static_cast<std::int64_t>(rows.size()); };
  file.column(name, Coding::values, 1, count, [&](std::size_t, std::int64_t n) {
    const std::uint64_t most = kRowBytes * file.columns.bytes_left() / sizeof(Row);
    if (n < 0 || static_cast<std::uint64_t>(n) > most) return false;
    rows.resize(static_cast<std::size_t>(n));
    return true;
  });
  return {file, name, rows, names};
}

// A map from reasons to counts as a table.
inline void counts(ColumnFile& file, const char* name, std::map<std::string, std::uint64_t>& counts) {
  // A row of the table.
  struct Count {
    std::string reason;
    std::uint64_t events = 0;
  };
  std::vector<Count> rows;
  for (const auto& [reason, events] : counts) rows.push_back({reason, events});
  table(file, name, rows).add("reason", &Count::reason).add("events", &Count::events);
  for (const Count& row : rows) counts[row.reason] = row.events;
}

}  // namespace stepcast::detail
