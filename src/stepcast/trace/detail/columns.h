// Stores lists of integers as named columns of bytes that gzip compresses well.
//
//   Columns out;                                       Columns in{bytes};
//   out.column("start", Coding::changes, starts);      in.column("start", Coding::changes, starts);  // the same
//   const std::string bytes = out.bytes();
//
// Writing and reading are the same calls in the same order, so that one function describes a file. The parts
// of a column are:
//
//   name      its length and its bytes
//   coding    0: a cell is a value; 1: a cell is the difference to the previous value (0 for the first one)
//   count     number of values
//   first     the first value, for coding 1
//   least     the smallest cell; it is subtracted from all cells
//   unit      the greatest common divisor of all cells after that, by which they are divided; or 1
//   width     bytes per cell: 1 to 8; 0 without values
//   cells     the lowest byte of all cells, then the second byte of all cells, ...
//
// All parts except name and cells are varints: seven bits per byte, lowest first, with 128 added to all bytes
// except the last. Numbers are modulo 2^64, so negative ones are large. A reader refuses a column with
// another name than the requested one, but skips columns with names that begin with `?`. Later versions can
// add such columns, and earlier versions can still read the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::detail {

// values: for values without order. changes: for values that grow slowly, such as times.
enum class Coding : std::uint8_t { values, changes };

// Writes or reads columns, depending on the constructor.
class Columns {
 public:
  Columns() = default;  // for writing
  explicit Columns(std::string_view bytes)
      : left_(bytes), reading_(true) {}  // reads; `bytes` must outlive it

  // The direction, for code that differs between writing and reading.
  [[nodiscard]] bool is_reading() const { return reading_; }
  // For reading: a description of the first problem; empty if there is none. After a problem, no column has
  // values.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Records a problem (the first one counts) and stops reading.
  void fail(std::string problem);

  // Writes `values`, or replaces them by those of the next column.
  void column(std::string_view name, Coding coding, std::vector<std::int64_t>& values);

  // For reading: skips columns after the last one that have names beginning with `?`.
  void skip_optional();

  [[nodiscard]] const std::string& bytes() const { return bytes_; }      // for writing
  [[nodiscard]] std::size_t bytes_left() const { return left_.size(); }  // for reading

 private:
  // The numbers in front of the cells, as described above.
  struct Head {
    std::string_view name{};
    std::uint64_t coding = 0, count = 0, first = 0, least = 0, unit = 1, width = 0;
  };
  // Writes a column: head and cells.
  void write(std::string_view name, Coding coding, const std::vector<std::int64_t>& values);
  // Reads the next column that is not optional.
  void read(std::string_view name, std::vector<std::int64_t>& values);
  Head take_head();  // checked: the count fits the bytes left
  std::uint64_t take_number();
  std::string_view take_bytes(std::uint64_t n);
  // Writes a varint.
  void put_number(std::uint64_t number);

  std::string bytes_;
  std::string_view left_;
  bool reading_ = false;
  std::string problem_;
};

}  // namespace stepcast::detail
