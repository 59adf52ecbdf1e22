// A table with columns in C++, which frame libraries read through the Arrow C stream interface.
//
//   const Table table = Table::from_csv(text);
//   export_stream(std::make_shared<const Table>(table), stream)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stepcast::python {

// Values of one type. Rows without a value have `valid` 0, and zero or an empty text in `values`.
struct Column {
  std::string name;
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::uint8_t>,
               std::vector<std::string>>
      values;  // the third are truth values
  std::vector<std::uint8_t> valid;
};

struct Table {
  std::vector<Column> columns;
  std::size_t n_rows = 0;

  // Parses CSV (RFC 4180) with a header. A column has integers, numbers or truth values if all of its values are of
  // that kind, else texts. Empty fields are missing values. Rows with too few or too many fields are filled or cut.
  [[nodiscard]] static Table from_csv(std::string_view text);
  [[nodiscard]] std::string csv() const;
};

// The layout that the Arrow C data interface defines: https://arrow.apache.org/docs/format/CDataInterface.html
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

// One batch with all rows. The consumer of the stream calls its release function.
void export_stream(std::shared_ptr<const Table> table, ArrowArrayStream& stream);
void export_schema(const Table& table, ArrowSchema& schema);

}  // namespace stepcast::python
