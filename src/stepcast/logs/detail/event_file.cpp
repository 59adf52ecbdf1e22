#include "stepcast/logs/detail/event_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stepcast/base/text.h"
#include "stepcast/logs/detail/step_columns.h"

namespace stepcast::detail {
namespace {

constexpr std::size_t kHeader = 12, kFooter = 4;  // length and its checksum; checksum of the data
constexpr std::uint64_t kLongestRecord = std::uint64_t{1} << 28;  // pictures and graphs, too

template <class T>
T little_endian(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

// One field of a message of protocol buffers.
struct Field {
  std::uint32_t number = 0, wire = 0;
  std::uint64_t whole = 0;  // varint, or the bits of fixed32 and fixed64
  std::string_view bytes;
};

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

// A scalar that TensorFlow 2 and newer writers keep as a tensor: its bytes, or a list of one.
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

bool begins_event_file(std::string_view beginning) {
  return beginning.size() > kHeader && little_endian<std::uint64_t>(beginning) < 256 &&
         beginning[kHeader] == '\x09' &&
         beginning.substr(0, 256).find("brain.Event:") != std::string_view::npos;
}

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
