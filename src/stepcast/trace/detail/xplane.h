// Planes, lines and events of an XLA profile (XSpace), read in place from the protobuf message. Views refer
// to the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stepcast::detail {

// Field number of the events of a line.
inline constexpr std::uint64_t kLineEvents = 4;

// The facts about an event that are used.
enum class XStatKey : std::uint8_t { other, correlation, step, hlo_op, copy, fill };

// A named value. A text is in `text`, other values are in `number`.
struct XStat {
  std::int64_t name = 0;
  std::int64_t number = 0;
  std::string_view text;
  bool is_reference = false;  // `number` is the key of a name in XPlane::stat_names
};

// A line of a plane: a stream, a thread, or a list of steps.
struct XLine {
  std::int64_t id = 0;
  std::string_view name;
  std::int64_t timestamp_ns = 0;  // events start relative to it
  std::string_view message;       // with the events
};

// A plane: a device or the host.
struct XPlane {
  std::string_view name;
  std::vector<XLine> lines;
  std::vector<XStat> stats;
  std::unordered_map<std::int64_t, std::string_view> event_names;  // the short name if there is one
  std::unordered_map<std::int64_t, std::string_view> stat_names;
  std::unordered_map<std::int64_t, XStatKey> stat_keys;  // without `other`
};

// An event. -1 or empty: the event does not say.
struct XEvent {
  std::string_view name;
  std::int64_t offset_ps = 0, duration_ps = 0;
  std::int64_t correlation = -1;
  std::int64_t step = -1;   // "step_num"
  std::string_view hlo_op;  // the operation of the program
  std::string_view copy;    // "memcpy_details"
  std::string_view fill;    // "memset_details"
};

// Reads a plane without its events. False if the message is damaged.
[[nodiscard]] bool read_plane(std::string_view message, XPlane& plane);
// Reads an event of a line of this plane. False if the message is damaged.
[[nodiscard]] bool read_event(const XPlane& plane, std::string_view message, XEvent& event);

// A fact about the plane by its name; empty if the plane does not say it.
[[nodiscard]] std::optional<std::int64_t> number_in(const XPlane& plane, std::string_view stat);
[[nodiscard]] std::string_view text_in(const XPlane& plane, std::string_view stat);

}  // namespace stepcast::detail
