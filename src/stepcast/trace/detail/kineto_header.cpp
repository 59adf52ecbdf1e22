#include "stepcast/trace/detail/kineto_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "stepcast/trace/detail/json_cursor.h"
#include "stepcast/trace/detail/quote.h"

namespace stepcast::detail {
namespace {

constexpr std::size_t kMostDevices = 4096;

// A whole number, also one in quotes.
std::optional<std::int64_t> integer_value(JsonCursor& c) {
  std::string_view text;
  if (c.peek() == '"') {
    JsonText quoted;
    if (!c.string(quoted)) return std::nullopt;
    text = quoted.raw;
  } else if (!c.raw_value(text)) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  if (!parse_integer(text, value)) return std::nullopt;
  return value;
}

std::optional<std::int32_t> small_integer(JsonCursor& c) {
  const auto value = integer_value(c);
  if (!value || *value < 0 || *value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

std::string text_value(JsonCursor& c) {
  std::string out;
  if (c.peek() == '"') {
    JsonText quoted;
    if (c.string(quoted) && !unescape(quoted.raw, out)) out = quoted.raw;
  } else if (std::string_view raw; c.raw_value(raw)) {
    out = raw;
  }
  return out;
}

void read_distributed_info(std::string_view value, RecordedRank& rank) {
  JsonCursor c(value);
  if (c.peek() != '{') return;
  std::string_view key;
  for (c.enter('{'); c.next_member(key);)
    if (key == "rank")
      rank.rank = small_integer(c);
    else if (key == "world_size")
      rank.world_size = small_integer(c);
    else
      c.skip_value();
}

DeviceProperties read_device(JsonCursor& c) {
  DeviceProperties device;
  std::string_view key;
  for (c.enter('{'); c.next_member(key);)
    if (key == "id")
      device.id = small_integer(c).value_or(0);
    else if (key == "name")
      device.name = text_value(c);
    else if (key == "totalGlobalMem")
      device.memory_bytes = std::max<std::int64_t>(0, integer_value(c).value_or(0));
    else if (key == "numSms")
      device.sm_count = small_integer(c).value_or(0);
    else if (key == "maxThreadsPerMultiprocessor")
      device.max_threads_per_sm = small_integer(c).value_or(0);
    else
      c.skip_value();
  return device;
}

void read_devices(std::string_view value, RecordedRank& rank) {
  JsonCursor c(value);
  if (c.peek() != '[') return;
  std::vector<DeviceProperties> devices;
  for (c.enter('['); c.next_element() && devices.size() < kMostDevices;)
    if (c.peek() == '{')
      devices.push_back(read_device(c));
    else
      c.skip_value();
  if (!c.failed()) rank.devices = std::move(devices);
}

}  // namespace

Status read_kineto_header(std::string_view key, std::string_view value, RecordedRank& rank,
                          KinetoHeader& header) {
  if (key == "schemaVersion") {
    JsonCursor c(value);
    rank.schema = text_value(c).substr(0, 64);
  } else if (key == "distributedInfo") {
    read_distributed_info(value, rank);
  } else if (key == "deviceProperties") {
    read_devices(value, rank);
  } else if (key == "baseTimeNanoseconds") {
    JsonCursor c(value);
    const auto base = integer_value(c);
    if (!base) {
      return Error::at("", "baseTimeNanoseconds")
          .found(quote_for_message(value))
          .expected("whole nanoseconds");
    }
    header.base_time_ns = *base;
  }
  return Ok{};
}

}  // namespace stepcast::detail
