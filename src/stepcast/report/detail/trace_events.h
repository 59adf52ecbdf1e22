// The events of a timeline in one of Perfetto's two formats: Chrome trace JSON, or its protobuf packets (.pftrace).
//
//   const std::unique_ptr<TraceEvents> events = json_trace_events();      // or perfetto_trace_events()
//   events->process(1, "rank 0");
//   events->thread(1, 2, "compute", 1002);
//   events->slice(1, 2, {.start = 0, .end = 1500, .name = "gemm", .category = "gemm"});
//   events->counter(1, "memory GiB", 0, 12.5);
//   std::string text = events->finish();
//
// Times are whole nanoseconds from the start of the timeline. Slices of one thread come ordered by start, parents before
// children, and nest. Processes and threads are announced before their events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stepcast/base/output_file.h"
#include "stepcast/base/result.h"

namespace stepcast::detail {

using Ns = std::int64_t;

// Shown in the details of a slice. Numbers with a fraction are written with three decimals.
struct TraceArg {
  std::string_view key;
  std::variant<std::string, std::int64_t, double> value;
};

struct TraceSlice {
  Ns start = 0, end = 0;
  std::string_view name, category;
  std::vector<TraceArg> args{};
};

// From a moment inside one slice to a moment inside another one; `id` is unique in the document.
struct TraceArrow {
  struct End {
    int pid = 0, tid = 0;
    Ns at = 0;
  };
  std::uint64_t id = 0;
  std::string name;
  End from, to;
};

class TraceEvents {
 public:
  TraceEvents() = default;
  TraceEvents(const TraceEvents&) = delete;
  TraceEvents& operator=(const TraceEvents&) = delete;
  virtual ~TraceEvents() = default;

  virtual void process(int pid, std::string_view name) = 0;
  // `order`: threads of a process are shown in ascending order.
  virtual void thread(int pid, int tid, std::string_view name, int order) = 0;
  virtual void slice(int pid, int tid, const TraceSlice& slice) = 0;
  virtual void arrow(const TraceArrow& arrow) = 0;
  // From `at` on the counter of this name has this value.
  virtual void counter(int pid, std::string_view name, Ns at, double value) = 0;
  // The document. Nothing may be added afterwards.
  [[nodiscard]] virtual std::string finish() = 0;
};

[[nodiscard]] std::unique_ptr<TraceEvents> json_trace_events();
[[nodiscard]] std::unique_ptr<TraceEvents> perfetto_trace_events();

// Writes the events that `add` adds: protobuf packets when the name ends in ".pftrace", JSON otherwise; gzip-compressed when it
// ends in ".gz".
[[nodiscard]] Status write_events(const OutputFile& file, const std::function<void(TraceEvents&)>& add);

}  // namespace stepcast::detail
