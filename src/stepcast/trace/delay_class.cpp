#include "stepcast/trace/delay_class.h"

#include <string_view>

#include <fmt/format.h>

namespace stepcast {
namespace {

std::string_view text_of(DelayEnd end) {
  switch (end) {
    case DelayEnd::none: return "";
    case DelayEnd::computation: return "computation";
    case DelayEnd::kernel: return "kernel";
    case DelayEnd::collective: return "collective";
    case DelayEnd::copy: return "copy";
    case DelayEnd::copy_to_device: return "copy to device";
    case DelayEnd::copy_to_host: return "copy to host";
    case DelayEnd::copy_on_device: return "copy on device";
    case DelayEnd::fill: return "fill";
    case DelayEnd::stream_sync: return "stream synchronisation";
    case DelayEnd::device_sync: return "device synchronisation";
    case DelayEnd::event_sync: return "event synchronisation";
    case DelayEnd::blocking_copy: return "blocking copy";
  }
  return "";
}

}  // namespace

std::string describe(const DelayClass& delay, const StringTable& names) {
  switch (delay.kind) {
    case DelayKind::wait_base: return fmt::format("base cost, {} (smallest)", text_of(delay.to));
    case DelayKind::launch:
    case DelayKind::inside_launch:
      return fmt::format("launch delay from the call's {}, {} -> {}{}",
                         delay.kind == DelayKind::launch ? "end" : "start", names.text(delay.call),
                         text_of(delay.to), delay.pageable ? " (pageable)" : "");
    case DelayKind::stream_gap:
      return fmt::format("stream gap, {} -> {}", text_of(delay.from), text_of(delay.to));
    case DelayKind::event:
      return fmt::format("event delay, {} -> {}", text_of(delay.from), text_of(delay.to));
    case DelayKind::sync_return: return fmt::format("return delay, {}", text_of(delay.to));
    case DelayKind::handoff_wake: return "hand-off, main thread wakes another";
    case DelayKind::handoff_join: return "hand-off, main thread goes on behind another";
    case DelayKind::handoff_evaluate: return "hand-off, main thread goes on inside backward";
  }
  return {};
}

}  // namespace stepcast
