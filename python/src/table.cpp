#include "table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepcast::python {
namespace {

// The fields of the record at `at`, which moves to the next record.
std::vector<std::string> read_record(std::string_view text, std::size_t& at) {
  std::vector<std::string> fields{std::string{}};
  bool quoted = false;
  while (at < text.size()) {
    const char c = text[at++];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (at < text.size() && text[at] == '"') {
        fields.back() += text[at++];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

template <class Number>
std::optional<Number> number(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return value;
}

std::optional<std::uint8_t> truth(const std::string& text) {
  if (text == "true") return std::uint8_t{1};
  if (text == "false") return std::uint8_t{0};
  return std::nullopt;
}

// All fields as values of one type; nothing if a field is of another type.
template <class Value, class Read>
std::optional<std::vector<Value>> all_as(const std::vector<std::string>& fields, const Read& read) {
  std::vector<Value> values(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty()) continue;
    const std::optional<Value> value = read(fields[i]);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  return values;
}

Column typed(std::string name, std::vector<std::string> fields) {
  Column column;
  column.name = std::move(name);
  column.valid.resize(fields.size());
  std::transform(fields.begin(), fields.end(), column.valid.begin(),
                 [](const std::string& field) { return std::uint8_t{!field.empty()}; });
  if (auto whole = all_as<std::int64_t>(fields, number<std::int64_t>)) {
    column.values = *std::move(whole);
  } else if (auto numbers = all_as<double>(fields, number<double>)) {
    column.values = *std::move(numbers);
  } else if (auto truths = all_as<std::uint8_t>(fields, truth)) {
    column.values = *std::move(truths);
  } else {
    column.values = std::move(fields);
  }
  return column;
}

void add_field(std::string& out, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string shortest(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

Table Table::from_csv(std::string_view text) {
  Table table;
  std::size_t at = 0;
  const std::vector<std::string> names = read_record(text, at);
  std::vector<std::vector<std::string>> fields(names.size());
  while (at < text.size()) {
    std::vector<std::string> record = read_record(text, at);
    record.resize(names.size());
    for (std::size_t c = 0; c < names.size(); ++c) fields[c].push_back(std::move(record[c]));
    ++table.n_rows;
  }
  for (std::size_t c = 0; c < names.size(); ++c)
    table.columns.push_back(typed(names[c], std::move(fields[c])));
  return table;
}

std::string Table::csv() const {
  std::string out;
  for (const Column& column : columns) {
    if (&column != columns.data()) out += ',';
    add_field(out, column.name);
  }
  out += '\n';
  for (std::size_t row = 0; row < n_rows; ++row) {
    for (const Column& column : columns) {
      if (&column != columns.data()) out += ',';
      if (column.valid[row] == 0) continue;
      std::visit(
          [&](const auto& values) {
            using Value = typename std::decay_t<decltype(values)>::value_type;
            if constexpr (std::is_same_v<Value, std::string>) {
              add_field(out, values[row]);
            } else if constexpr (std::is_same_v<Value, double>) {
              out += shortest(values[row]);
            } else if constexpr (std::is_same_v<Value, std::uint8_t>) {
              out += values[row] != 0 ? "true" : "false";
            } else {
              out += std::to_string(values[row]);
            }
          },
          column.values);
    }
    out += '\n';
  }
  return out;
}

// ---------------------------------------------------------------------------------------------------- Arrow

namespace {

constexpr std::int64_t kNullable = 2;

const char* format_of(const Column& column) {
  constexpr const char* kFormats[] = {"l", "g", "b", "U"};  // int64, float64, bool, large utf8
  return kFormats[column.values.index()];
}

struct SchemaParts {
  std::vector<std::string> names;
  std::vector<ArrowSchema> fields;
  std::vector<ArrowSchema*> children;
};

// A child is part of its parent's memory. A consumer that moves it out releases it separately.
void release_field(ArrowSchema* field) { field->release = nullptr; }

void release_schema(ArrowSchema* schema) {
  auto* parts = static_cast<SchemaParts*>(schema->private_data);
  for (ArrowSchema* child : parts->children) {
    if (child->release != nullptr) child->release(child);
  }
  delete parts;
  schema->release = nullptr;
}

// The buffers of one column. A bitmap has eight rows per byte.
struct ArrayParts {
  std::vector<std::uint8_t> validity, bits;
  std::vector<std::int64_t> offsets;
  std::string text;
  std::vector<std::int64_t> whole;
  std::vector<double> numbers;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> columns;
  std::vector<ArrowArray*> children;
};

void release_array(ArrowArray* array) {
  auto* parts = static_cast<ArrayParts*>(array->private_data);
  for (ArrowArray* child : parts->children) {
    if (child->release != nullptr) child->release(child);
  }
  delete parts;
  array->release = nullptr;
}

std::vector<std::uint8_t> bitmap(const std::vector<std::uint8_t>& truths) {
  std::vector<std::uint8_t> bits((truths.size() + 7) / 8);
  for (std::size_t i = 0; i < truths.size(); ++i) {
    if (truths[i] != 0) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | (1U << (i % 8)));
  }
  return bits;
}

ArrowArray array_of(ArrayParts* parts, std::size_t n_rows, std::int64_t n_null) {
  ArrowArray array{};
  array.length = static_cast<std::int64_t>(n_rows);
  array.null_count = n_null;
  array.n_buffers = static_cast<std::int64_t>(parts->buffers.size());
  array.buffers = parts->buffers.data();
  array.n_children = static_cast<std::int64_t>(parts->children.size());
  array.children = parts->children.data();
  array.release = release_array;
  array.private_data = parts;
  return array;
}

ArrowArray column_array(const Column& column, std::size_t n_rows) {
  auto parts = std::make_unique<ArrayParts>();
  const auto n_null = std::count(column.valid.begin(), column.valid.end(), std::uint8_t{0});
  parts->validity = bitmap(column.valid);
  parts->buffers.push_back(n_null > 0 ? parts->validity.data() : nullptr);
  if (const auto* whole = std::get_if<0>(&column.values)) {
    parts->whole = *whole;
    parts->buffers.push_back(parts->whole.data());
  } else if (const auto* numbers = std::get_if<1>(&column.values)) {
    parts->numbers = *numbers;
    parts->buffers.push_back(parts->numbers.data());
  } else if (const auto* truths = std::get_if<2>(&column.values)) {
    parts->bits = bitmap(*truths);
    parts->buffers.push_back(parts->bits.data());
  } else {
    parts->offsets.push_back(0);
    for (const std::string& text : std::get<3>(column.values)) {
      parts->text += text;
      parts->offsets.push_back(static_cast<std::int64_t>(parts->text.size()));
    }
    parts->buffers.push_back(parts->offsets.data());
    parts->buffers.push_back(parts->text.data());
  }
  return array_of(parts.release(), n_rows, n_null);
}

struct StreamParts {
  std::shared_ptr<const Table> table;
  bool is_given = false;
};

StreamParts& parts_of(ArrowArrayStream* stream) { return *static_cast<StreamParts*>(stream->private_data); }

int get_schema(ArrowArrayStream* stream, ArrowSchema* schema) {
  export_schema(*parts_of(stream).table, *schema);
  return 0;
}

int get_next(ArrowArrayStream* stream, ArrowArray* array) {
  StreamParts& parts = parts_of(stream);
  *array = {};  // the end of the stream: no release function
  if (std::exchange(parts.is_given, true)) return 0;
  auto all = std::make_unique<ArrayParts>();
  for (const Column& column : parts.table->columns)
    all->columns.push_back(column_array(column, parts.table->n_rows));
  for (ArrowArray& column : all->columns) all->children.push_back(&column);
  all->buffers = {nullptr};
  *array = array_of(all.release(), parts.table->n_rows, 0);
  return 0;
}

const char* no_error(ArrowArrayStream*) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<StreamParts*>(stream->private_data);
  stream->release = nullptr;
}

}  // namespace

void export_schema(const Table& table, ArrowSchema& schema) {
  auto parts = std::make_unique<SchemaParts>();
  parts->fields.resize(table.columns.size());
  for (const Column& column : table.columns) parts->names.push_back(column.name);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    ArrowSchema& field = parts->fields[c];
    field.format = format_of(table.columns[c]);
    field.name = parts->names[c].c_str();
    field.flags = kNullable;
    field.release = release_field;
    parts->children.push_back(&field);
  }
  schema = {};
  schema.format = "+s";
  schema.name = "";
  schema.n_children = static_cast<std::int64_t>(parts->children.size());
  schema.children = parts->children.data();
  schema.release = release_schema;
  schema.private_data = parts.release();
}

void export_stream(std::shared_ptr<const Table> table, ArrowArrayStream& stream) {
  stream = {};
  stream.get_schema = get_schema;
  stream.get_next = get_next;
  stream.get_last_error = no_error;
  stream.release = release_stream;
  stream.private_data = new StreamParts{std::move(table)};
}

}  // namespace stepcast::python
