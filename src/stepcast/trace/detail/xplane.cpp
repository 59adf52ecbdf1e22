#include "stepcast/trace/detail/xplane.h"

#include <utility>

#include "stepcast/trace/detail/protobuf.h"

namespace stepcast::detail {
namespace {

// Reads the fields of a message. `take` gets each field and returns false for one of the wrong type. False if
// the message is damaged.
template <class Take>
bool read_fields(std::string_view message, const Take& take) {
  ProtobufFields f{message};
  while (f.next())
    if (!take(f)) return false;
  return !f.damaged();
}

// Take the value of a field; false if it has another type.
bool take(const ProtobufFields& f, std::int64_t& value) {
  value = static_cast<std::int64_t>(f.value());
  return !f.is_bytes();
}
bool take(const ProtobufFields& f, std::string_view& bytes) {
  bytes = f.bytes();
  return f.is_bytes();
}

// Real numbers are not needed; their bits are in `number`.
bool read_stat(std::string_view message, XStat& stat) {
  return read_fields(message, [&](const ProtobufFields& f) {
    switch (f.number()) {
      case 1: return take(f, stat.name);
      case 2:
      case 3:
      case 4: return take(f, stat.number);
      case 5:
      case 6: return take(f, stat.text);
      case 7: stat.is_reference = true; return take(f, stat.number);
      default: return true;
    }
  });
}

// Reads the head of a line. Its events are checked when they are read.
bool read_line(std::string_view message, XLine& line) {
  line.message = message;
  std::string_view shown;
  const bool whole = read_fields(message, [&](const ProtobufFields& f) {
    switch (f.number()) {
      case 1: return take(f, line.id);
      case 2: return take(f, line.name);
      case 3: return take(f, line.timestamp_ns);
      case kLineEvents: return f.is_bytes();
      case 11: return take(f, shown);
      default: return true;
    }
  });
  if (line.name.empty()) line.name = shown;
  return whole;
}

// Reads an entry of a map from a number to metadata with a name in field 2 and, for events, a short one in
// field `shown`.
bool read_name(std::string_view entry, std::uint64_t shown,
               std::unordered_map<std::int64_t, std::string_view>& names) {
  std::int64_t key = 0;
  std::string_view metadata, name, short_name;
  const bool whole = read_fields(entry, [&](const ProtobufFields& f) {
    if (f.number() == 1) return take(f, key);
    return f.number() != 2 || take(f, metadata);
  });
  if (!whole) return false;
  if (!read_fields(metadata, [&](const ProtobufFields& f) {
        if (f.number() == 2) return take(f, name);
        return f.number() != shown || take(f, short_name);
      }))
    return false;
  names[key] = short_name.empty() ? name : short_name;
  return true;
}

XStatKey key_of(std::string_view stat) {
  if (stat == "correlation_id") return XStatKey::correlation;
  if (stat == "step_num") return XStatKey::step;
  if (stat == "hlo_op") return XStatKey::hlo_op;
  if (stat == "memcpy_details") return XStatKey::copy;
  if (stat == "memset_details") return XStatKey::fill;
  return XStatKey::other;
}

std::string_view text_of(const XPlane& plane, const XStat& stat) {
  if (!stat.is_reference) return stat.text;
  const auto name = plane.stat_names.find(stat.number);
  return name == plane.stat_names.end() ? std::string_view{} : name->second;
}

// Takes a fact about an event.
void take_stat(const XPlane& plane, const XStat& stat, XEvent& event) {
  const auto key = plane.stat_keys.find(stat.name);
  if (key == plane.stat_keys.end()) return;
  switch (key->second) {
    case XStatKey::correlation: event.correlation = stat.number; break;
    case XStatKey::step: event.step = stat.number; break;
    case XStatKey::hlo_op: event.hlo_op = text_of(plane, stat); break;
    case XStatKey::copy: event.copy = text_of(plane, stat); break;
    case XStatKey::fill: event.fill = text_of(plane, stat); break;
    case XStatKey::other: break;
  }
}

const XStat* find_stat(const XPlane& plane, std::string_view name) {
  for (const XStat& stat : plane.stats)
    if (const auto found = plane.stat_names.find(stat.name);
        found != plane.stat_names.end() && found->second == name)
      return &stat;
  return nullptr;
}

}  // namespace

bool read_plane(std::string_view message, XPlane& plane) {
  constexpr std::uint64_t kShortEventName = 4, kNoShortName = 0;
  const bool whole = read_fields(message, [&](const ProtobufFields& f) {
    switch (f.number()) {
      case 2: return take(f, plane.name);
      case 3: return f.is_bytes() && read_line(f.bytes(), plane.lines.emplace_back());
      case 4: return f.is_bytes() && read_name(f.bytes(), kShortEventName, plane.event_names);
      case 5: return f.is_bytes() && read_name(f.bytes(), kNoShortName, plane.stat_names);
      case 6: return f.is_bytes() && read_stat(f.bytes(), plane.stats.emplace_back());
      default: return true;
    }
  });
  for (const auto& [id, name] : plane.stat_names)
    if (const XStatKey key = key_of(name); key != XStatKey::other) plane.stat_keys.emplace(id, key);
  return whole;
}

bool read_event(const XPlane& plane, std::string_view message, XEvent& event) {
  std::int64_t name = 0;
  const bool whole = read_fields(message, [&](const ProtobufFields& f) {
    switch (f.number()) {
      case 1: return take(f, name);
      case 2: return take(f, event.offset_ps);
      case 3: return take(f, event.duration_ps);
      case 4: {
        XStat stat;
        if (!f.is_bytes() || !read_stat(f.bytes(), stat)) return false;
        take_stat(plane, stat, event);
        return true;
      }
      default: return true;
    }
  });
  if (const auto found = plane.event_names.find(name); found != plane.event_names.end())
    event.name = found->second;
  return whole;
}

std::optional<std::int64_t> number_in(const XPlane& plane, std::string_view stat) {
  const XStat* const found = find_stat(plane, stat);
  return found == nullptr || !found->text.empty() ? std::nullopt : std::optional{found->number};
}

std::string_view text_in(const XPlane& plane, std::string_view stat) {
  const XStat* const found = find_stat(plane, stat);
  return found == nullptr ? std::string_view{} : text_of(plane, *found);
}

}  // namespace stepcast::detail
