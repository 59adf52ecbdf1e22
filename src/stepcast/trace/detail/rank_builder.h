// Builds a RecordedRank from the events of a profiler trace.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/detail/event_store.h"
#include "stepcast/trace/detail/interner.h"
#include "stepcast/trace/detail/kineto_event.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

class RankFold;

// Collects the events of one file.
class RankBuilder {
 public:
  // With a `fold`, events are added to it and not kept.
  explicit RankBuilder(std::string file, RankFold* fold = nullptr);
  RankBuilder(const RankBuilder&) = delete;
  RankBuilder& operator=(const RankBuilder&) = delete;

  // The rank being built; the reader writes header fields into it.
  [[nodiscard]] RecordedRank& rank() { return rank_; }

  // Adds an event. Skipped events are counted by reason.
  void add(const KinetoEvent& event);

  // Call after the last event. `base_time_ns` is added to all starts. Error: times out of range.
  [[nodiscard]] Result<RecordedRank> finish(std::int64_t base_time_ns);

 private:
  using Row = std::pair<std::int64_t, std::int64_t>;  // (pid, tid)
  // Hash of a row, for the tables of threads and GPU rows.
  struct RowHash {
    std::size_t operator()(const Row& row) const noexcept {
      return std::hash<std::int64_t>{}(row.first) * 31 + std::hash<std::int64_t>{}(row.second);
    }
  };

  // Add an event of one class to its list.
  void add_cpu(const KinetoEvent& event);
  void add_gpu(const KinetoEvent& event);
  void add_sync(const KinetoEvent& event);
  void add_thread_name(const KinetoEvent& event);
  std::int32_t add_collective(const KinetoEvent& event);
  ThreadId thread_of(const KinetoEvent& event);
  // Counts an event that is left out.
  void count_skip(std::string_view reason);

  template <class Event>
  void keep(ChunkedList<Event>& list, const Event& event);

  // Steps of finish(), see the source.
  void drop_times_of_zero();
  [[nodiscard]] bool is_gpu_row(std::size_t thread) const;
  void drop_annotations_on_gpu_rows();
  [[nodiscard]] std::vector<ThreadId> order_threads();
  void order_collectives();

  RecordedRank rank_;
  RankFold* fold_;
  Interner interner_;
  ChunkedList<CpuOp> cpu_ops_;
  ChunkedList<RuntimeCall> runtime_calls_;
  ChunkedList<GpuOp> gpu_ops_;
  ChunkedList<StreamSync> stream_syncs_;
  ChunkedList<AllocatorState> allocator_states_;
  std::int64_t first_start_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_start_ns_ = std::numeric_limits<std::int64_t>::min();
  std::unordered_map<Row, ThreadId, RowHash> threads_;
  std::vector<bool> has_ops_or_calls_;  // [thread]
  Row last_row_{};
  ThreadId last_thread_;
  std::unordered_map<Row, std::string, RowHash> thread_names_;
  std::unordered_map<Row, bool, RowHash> gpu_rows_;
  Row last_gpu_row_{};
  std::string last_skip_;
  std::uint64_t* last_skip_count_ = nullptr;
  std::string scratch_;
};

}  // namespace stepcast::detail
