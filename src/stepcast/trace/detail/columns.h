// Lists of whole numbers as named columns of bytes that gzip compresses well.
//
//   Columns out;                                       Columns in{bytes};
//   out.column("start", Coding::changes, starts);      in.column("start", Coding::changes, starts);  // the same
//   const std::string bytes = out.bytes();
//
// Writing and reading are the same calls in the same order, so one function describes a file. A column is:
//
//   name      its length, and its bytes
//   coding    0: a cell is a value, 1: a cell is the difference from the value before (0 for the first one)
//   count     of the values
//   first     value, with coding 1
//   least     of the cells; it is subtracted from all of them
//   unit      the largest number that divides all of them then, and by which they are divided; or 1
//   width     bytes of a cell: 1 to 8; 0 without values
//   cells     the lowest byte of all cells, then the second byte of all cells, ...
//
// All but name and cells are varints: seven bits a byte, the lowest first, 128 added to all bytes but the last. Numbers are modulo
// 2^64, negative ones large. A reader refuses a column with another name than the one it asks for, but skips those whose names
// begin with `?`: a later version can add such columns, and earlier ones still read its files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::detail {

enum class Coding : std::uint8_t { values, changes };

class Columns {
 public:
  Columns() = default;  // writes
  explicit Columns(std::string_view bytes)
      : left_(bytes), reading_(true) {}  // reads; `bytes` must outlive it

  [[nodiscard]] bool is_reading() const { return reading_; }
  // Of reading: what is wrong with the bytes; empty: nothing so far. Once set, no later column has values.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  void fail(std::string problem);

  void column(std::string_view name, Coding coding, std::vector<std::int64_t>& values);

  // Of reading: passes over columns behind the last one whose names begin with `?`.
  void skip_optional();

  [[nodiscard]] const std::string& bytes() const { return bytes_; }      // of writing
  [[nodiscard]] std::size_t bytes_left() const { return left_.size(); }  // of reading

 private:
  struct Head {
    std::string_view name{};
    std::uint64_t coding = 0, count = 0, first = 0, least = 0, unit = 1, width = 0;
  };
  void write(std::string_view name, Coding coding, const std::vector<std::int64_t>& values);
  void read(std::string_view name, std::vector<std::int64_t>& values);
  Head take_head();  // with a count that the bytes left can hold
  std::uint64_t take_number();
  std::string_view take_bytes(std::uint64_t n);
  void put_number(std::uint64_t number);

  std::string bytes_;
  std::string_view left_;
  bool reading_ = false;
  std::string problem_;
};

}  // namespace stepcast::detail
