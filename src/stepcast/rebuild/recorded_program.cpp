// Names of delay classes for reports.
#include "stepcast/rebuild/recorded_program.h"

#include <string_view>

#include <fmt/format.h>

#include "stepcast/base/names.h"

namespace stepcast {

namespace {

std::string_view text_of(DelayEnd end) {
  return name_of<DelayEnd::blocking_copy>(
      end,
      {"", "computation", "kernel", "collective", "copy", "copy to device", "copy to host", "copy on device",
       "fill", "stream synchronisation", "device synchronisation", "event synchronisation", "blocking copy"});
}

}  // namespace

std::string describe(const DelayClass& delay, const StringTable& names) {
  switch (delay.kind) {
    case DelayKind::wait_base: return fmt::format("base cost, {} (smallest)", text_of(delay.to));
    case DelayKind::launch:
    case DelayKind::inside_launch:
      if (!delay.call.valid()) return "gap until a launch that is not in the file";
      return fmt::format("launch delay from the call's {}, {} -> {}{}",
                         delay.kind == DelayKind::launch ? "end" : "start", names.text(delay.call),
                         text_of(delay.to), delay.pageable ? " (pageable)" : "");
    case DelayKind::stream_gap:
      return fmt::format("stream gap, {} -> {}", text_of(delay.from), text_of(delay.to));
    case DelayKind::event:
      return fmt::format("event delay, {} -> {}", text_of(delay.from), text_of(delay.to));
    case DelayKind::sync_return: return fmt::format("return delay, {}", text_of(delay.to));
    case DelayKind::handoff_wake: return "hand-off, main thread wakes another";
    case DelayKind::handoff_join: return "hand-off, main thread continues after another";
    case DelayKind::handoff_evaluate: return "hand-off, main thread continues inside backward";
  }
  return {};
}

}  // namespace stepcast
