// Recognises files that are not training logs, so that the error message can name them, and reads TensorBoard
// event files. An event file is a sequence of TFRecord records. Each record is a protocol buffer `Event`, of
// which only the fields for time, step and scalar values are decoded here, without a protobuf library.
#include "stepcast/logs/detail/foreign_files.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/named_members.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/text.h"
#include "stepcast/logs/detail/log_text.h"
#include "stepcast/logs/detail/settings_blocks.h"
#include "stepcast/logs/detail/step_columns.h"

namespace stepcast::detail {

namespace {

// A byte sequence that identifies a kind of file, and its name for messages.
struct Mark {
  std::string_view text, what;
};
STEPCAST_MEMBERS(kMark, &Mark::text, &Mark::what);

// Byte sequences at the start of binary files. The first match names the file.
constexpr Mark kMagics[] = {
    {"SQLite format 3", "a SQLite database (such as an export of Nsight Systems)"},
    {"PK\x03\x04", "a zip archive (such as a PyTorch checkpoint or an .npz file)"},
    {"\x7f"
     "ELF",
     "a program"},
    {"\x89PNG", "a picture (PNG)"},
    {"\xff\xd8\xff", "a picture (JPEG)"},
    {"%PDF", "a PDF document"},
    {"\xff\xfe", "text in UTF-16, as written by PowerShell: iconv -f UTF-16 -t UTF-8"},
    {"PAR1", "a table in Parquet"},
    {"\x93NUMPY", "an array of NumPy"},
    {"\x89HDF", "data in HDF5"},
    {"\x28\xb5\x2f\xfd", "data compressed with zstd: unpack it first"},
    {"\xfd"
     "7zXZ",
     "data compressed with xz: unpack it first"},
    {"BZh", "data compressed with bzip2: unpack it first"},
    {"\x80\x02", "a Python pickle (such as a PyTorch checkpoint)"},
    {"\x80\x04", "a pickle of Python"},
    {"\x80\x05", "a pickle of Python"},
    {"GGUF", "weights in GGUF"},
    {"ARROW1", "a table in Arrow"},
    {":W&B", "a run file of Weights & Biases: export its history as CSV"},
};

// Reads tables/foreign_texts.json: texts that occur in the output of other programs, and what to call these
// files. The first text that a file contains names it.
Result<std::vector<Mark>> read_texts() {
  static const std::string kFile = "foreign_texts.json";
  static const Result<JsonValue> kTable = parse_json(shipped_table(kFile), kFile);
  if (!kTable) return kTable.error();
  std::vector<Mark> texts;
  for (const JsonValue& item : kTable->items()) {
    STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(item, "", kFile));
    STEPCAST_TRY(read_members(keys, kMark, texts.emplace_back()));
    STEPCAST_TRY(keys.finish());
  }
  return texts;
}

// Whether the text looks like a YAML document: the first 12 non-empty lines (at least 3) are all YAML, and no
// top-level key occurs twice.
bool looks_like_yaml(std::string_view text) {
  int yaml = 0, others = 0;
  std::vector<std::string_view> keys;
  while (!text.empty() && yaml + others < 12) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!trimmed(line).empty()) ++(is_yaml_line(line) || line == "---" ? yaml : others);
    // A document does not have the same key twice on one level; log lines do.
    const std::string_view key = line.substr(0, line.find(':'));
    if (!key.empty() && key.front() != ' ' && key.front() != '-' && key.front() != '#') {
      if (std::ranges::find(keys, key) != keys.end()) return false;
      keys.push_back(key);
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return yaml >= 3 && others == 0;
}

// Header: length and its checksum; footer: checksum of the data.
constexpr std::size_t kHeader = 12, kFooter = 4;
// Bytes; records with images and graphs are large.
constexpr std::uint64_t kLongestRecord = std::uint64_t{1} << 28;

// Reads a little-endian number from the first bytes; missing bytes count as 0. The host must be little-endian.
template <class T>
T little_endian(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

// One field of a protocol buffer message. Numbers and wire types are those of the Protocol Buffers encoding.
struct Field {
  std::uint32_t number = 0, wire = 0;
  // The value of a varint, or the bits of a fixed32 or fixed64 field.
  std::uint64_t whole = 0;
  // The content of a length-delimited, fixed32 or fixed64 field. It refers to the message.
  std::string_view bytes;
};

// Iterates over the fields of a protocol buffer message. Ends at the first malformed field.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  std::optional<Field> next() {
    const auto key = varint();
    if (!key) return std::nullopt;
    constexpr std::uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
    Field field{static_cast<std::uint32_t>(*key >> 3U), static_cast<std::uint32_t>(*key & 7U), 0, {}};
    if (field.wire == kVarint) {
      const auto value = varint();
      if (!value) return std::nullopt;
      field.whole = *value;
      return field;
    }
    std::uint64_t length = field.wire == kFixed64 ? 8 : field.wire == kFixed32 ? 4 : 0;
    if (field.wire == kBytes) {
      const auto told = varint();
      if (!told) return std::nullopt;
      length = *told;
    } else if (length == 0) {
      return std::nullopt;
    }
    if (length > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (field.wire != kBytes) field.whole = little_endian<std::uint64_t>(field.bytes);
    return field;
  }

 private:
  // Decodes a base-128 varint of up to 64 bits; empty if the message ends within it.
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    return std::nullopt;
  }
  std::string_view rest_;
};

double float_of(std::uint64_t bits) {
  float value = 0;
  const auto low = static_cast<std::uint32_t>(bits);
  std::memcpy(&value, &low, sizeof value);
  return static_cast<double>(value);
}

double double_of(std::uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The value of a scalar that TensorFlow 2 and newer writers store as a TensorProto: as raw bytes, or as a
// packed list of one float or double. Empty for other tensors.
std::optional<double> tensor_value(std::string_view message) {
  constexpr std::uint32_t kType = 1, kContent = 4, kFloats = 5, kDoubles = 6;
  constexpr std::uint64_t kDoubleType = 2;
  std::uint64_t type = 1;
  Fields fields{message};
  while (const auto field = fields.next()) {
    if (field->number == kType) type = field->whole;
    const std::size_t size = type == kDoubleType ? 8 : 4;
    const bool packed = field->number == kContent || field->number == kFloats || field->number == kDoubles;
    if (packed && field->bytes.size() == size) {
      const auto bits = little_endian<std::uint64_t>(field->bytes);
      return type == kDoubleType ? double_of(bits) : float_of(bits);
    }
  }
  return std::nullopt;
}

}  // namespace

// Magic numbers first, then formats with a mark at a fixed offset (tar, safetensors).
std::string_view name_of_binary(std::string_view beginning) {
  for (const Mark& magic : kMagics)
    if (beginning.starts_with(magic.text)) return magic.what;
  constexpr std::size_t kTar = 257;
  if (beginning.size() > kTar && beginning.substr(kTar).starts_with("ustar")) return "an archive (tar)";
  if (beginning.size() > 9 && beginning[8] == '{' && beginning[9] == '"') return "weights in safetensors";
  return "binary data";
}

std::string_view name_of_text(std::string_view beginning) {
  static const std::vector<Mark> kTexts = as_shipped(read_texts());
  for (const Mark& mark : kTexts)
    if (beginning.find(mark.text) != std::string_view::npos) return mark.what;
  const std::string_view text = trimmed(beginning);
  if (text.starts_with('{') || text.starts_with("[{") || text.starts_with("[\n")) return "JSON";
  if (looks_like_yaml(beginning)) return "a YAML document: `--config` reads configs of frameworks";
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.find(',') != std::string_view::npos && line.find(": ") == std::string_view::npos &&
      line.find(" ") > line.find(','))
    return "a table (CSV) without columns of steps and their times";
  return {};
}

// The first record of an event file contains the version "brain.Event:N". It has a short length and begins
// with the key of field 1 (wall_time, a double).
bool begins_event_file(std::string_view beginning) {
  return beginning.size() > kHeader && little_endian<std::uint64_t>(beginning) < 256 &&
         beginning[kHeader] == '\x09' &&
         beginning.substr(0, 256).find("brain.Event:") != std::string_view::npos;
}

// Records that are complete in `bytes` are decoded. The checksums are not verified.
std::optional<std::size_t> EventFile::take(std::string_view bytes) {
  std::size_t taken = 0;
  while (bytes.size() - taken >= kHeader) {
    const auto length = little_endian<std::uint64_t>(bytes.substr(taken));
    if (length > kLongestRecord) return std::nullopt;
    if (bytes.size() - taken < kHeader + length + kFooter) break;
    event(bytes.substr(taken + kHeader, length));
    taken += kHeader + length + kFooter;
  }
  return taken;
}

// Decodes one Event: wall time, step, and all scalars of its summary. Field numbers are those of event.proto
// and summary.proto.
void EventFile::event(std::string_view message) {
  constexpr std::uint32_t kWallTime = 1, kStep = 2, kSummary = 5, kValue = 1, kTag = 1, kSimple = 2,
                          kTensor = 8;
  constexpr std::uint64_t kMostSteps = 4'000'000'000;
  ++log_.n_lines;
  std::string_view summary;
  step_ = 0;
  Fields fields{message};
  while (const auto field = fields.next()) {
    if (field->number == kWallTime) wall_s_ = double_of(field->whole);
    if (field->number == kStep) step_ = static_cast<std::uint32_t>(std::min(field->whole, kMostSteps));
    if (field->number == kSummary && field->wire == 2) summary = field->bytes;
  }
  Fields values{summary};
  while (const auto value = values.next()) {
    if (value->number != kValue || value->wire != 2) continue;
    std::string_view tag;
    std::optional<double> number;
    Fields parts{value->bytes};
    while (const auto part = parts.next()) {
      if (part->number == kTag) tag = part->bytes;
      if (part->number == kSimple && part->wire == 5) number = float_of(part->whole);
      if (part->number == kTensor) number = tensor_value(part->bytes);
    }
    if (number && std::isfinite(*number)) scalar(tag, *number);
  }
}

// Uses one scalar. The batch size is remembered for later steps. The first tag that is a step time
// (step_columns.h) supplies the times of all steps; other time tags are ignored. Every step is also put on
// the clock, for files without a time tag.
void EventFile::scalar(std::string_view tag, double value) {
  constexpr double kMostBatch = 1e9, kLatest = 1e12;
  const std::string name = lower(tag);
  if (is_batch_column(name)) {
    if (value >= 1 && value < kMostBatch) batch_ = static_cast<std::uint32_t>(value);
    return;
  }
  if (clock_.empty() || clock_.back().step != step_) {
    LoggedStep step;
    step.step = step_;
    step.wall_s = std::isfinite(wall_s_) && std::abs(wall_s_) < kLatest ? wall_s_ : 0;
    clock_.push_back(step);
  }
  const std::optional<TimeColumn> column = time_column(name);
  constexpr double kLeast = 1e-9;
  if (!column || value <= kLeast || (!time_tag_.empty() && tag != time_tag_)) return;
  time_tag_ = tag;
  LoggedStep step = clock_.back();
  step.time_ms = column->milliseconds(value);
  step.batch_sequences = batch_;
  constexpr double kMostMs = 1e12, kFloat = 6e-8, kPercent = 100;
  // Scalars are stored as float, with a relative rounding of 6e-8.
  if (step.time_ms > kMostMs) return;
  log_.rounding_percent = kPercent * kFloat;
  log_.steps.push_back(step);
}

void EventFile::finish() {
  if (log_.steps.empty()) log_.steps = std::move(clock_);
  std::uint32_t line = 0;
  for (LoggedStep& step : log_.steps) {
    step.format = LogFormat::tensorboard;
    step.line = ++line;
  }
  log_.n_of_format[static_cast<std::size_t>(LogFormat::tensorboard)] = log_.steps.size();
}

}  // namespace stepcast::detail
