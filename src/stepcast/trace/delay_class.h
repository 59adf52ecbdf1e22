// What sort of delay stands between two tasks of a recorded rank: delays of one class are one constant of the
// machine.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stepcast/base/string_table.h"
#include "stepcast/program/block.h"

namespace stepcast {

enum class DelayKind : std::uint8_t {
  wait_base,         // what a waiting call costs when there is nothing to wait for: a duration, on no edge
  launch,            // from the end of the launching call to the start of its work
  inside_launch,     // from the start of the launching call, for work that starts before the call returns
  stream_gap,        // between neighbours on a stream when the second was waiting
  event,             // from the end of awaited work to the start of work on the waiting stream
  sync_return,       // from the end of GPU work to the return of the call that waits for it
  handoff_wake,      // the main thread sets another thread going
  handoff_join,      // the main thread goes on when another thread is done
  handoff_evaluate,  // the same, inside backward
};

// One end of a delay.
enum class DelayEnd : std::uint8_t {
  none,
  computation,  // event: everything but collectives
  kernel,
  collective,
  copy,  // stream_gap: in any direction; launch: in none of the following
  copy_to_device,
  copy_to_host,
  copy_on_device,
  fill,
  stream_sync,
  device_sync,
  event_sync,
  blocking_copy,
};

struct DelayClass {
  DelayKind kind = DelayKind::launch;
  NameId call{};  // launch, inside_launch: the runtime call, in the Program's names
  DelayEnd from = DelayEnd::none;
  DelayEnd to = DelayEnd::none;
  bool pageable = false;  // a copy from or to host memory that is not pinned
  auto operator<=>(const DelayClass&) const = default;
};

[[nodiscard]] constexpr bool is_handoff(DelayKind kind) {
  return kind == DelayKind::handoff_wake || kind == DelayKind::handoff_join ||
         kind == DelayKind::handoff_evaluate;
}

// The classes that the edges of a recorded Program name (EdgeInfo::delay).
class DelayTable {
 public:
  DelayId intern(const DelayClass& delay) {
    const auto [it, fresh] = index_.try_emplace(delay, DelayId{classes_.size()});
    if (fresh) classes_.push_back(delay);
    return it->second;
  }
  // `id` must be valid.
  [[nodiscard]] const DelayClass& of(DelayId id) const { return classes_[id.index()]; }
  [[nodiscard]] std::size_t size() const { return classes_.size(); }

 private:
  std::vector<DelayClass> classes_;
  std::map<DelayClass, DelayId> index_;
};

// For people: "launch delay from the call's end, cudaLaunchKernel -> kernel". `names`: those of the Program.
[[nodiscard]] std::string describe(const DelayClass& delay, const StringTable& names);

}  // namespace stepcast
