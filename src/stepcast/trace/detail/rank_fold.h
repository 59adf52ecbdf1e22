// The summary of a rank's events for `inspect`, computed event by event in any order, without keeping them.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stepcast/trace/detail/step_signs.h"
#include "stepcast/trace/recorded_rank.h"
#include "stepcast/trace/trace_summary.h"

namespace stepcast::detail {

// Counts the events that use a number defined by other events of the file, before or after them.
class LinkCount {
 public:
  // An event defines the number `id`.
  void define(std::int64_t id) { defined_[id >> kShift].set(static_cast<std::size_t>(id & kMask)); }
  // use() of a number that is defined later is resolved in settle(), which runs at growing intervals.
  void use(std::int64_t id);
  // Number of uses of numbers that were defined at any time.
  [[nodiscard]] std::size_t count();

 private:
  static constexpr unsigned kShift = 8;
  static constexpr std::int64_t kMask = 255;
  // Resolves the waiting uses as far as possible.
  void settle();

  std::unordered_map<std::int64_t, std::bitset<256>> defined_;  // consecutive numbers share an entry
  std::vector<std::int64_t> waiting_;                           // used, not yet defined
  std::size_t settle_at_ = std::size_t{1} << 16U, found_ = 0;
};

// The time in which a stream works: the union of intervals, which come in the order of time except within a
// window.
class BusyTime {
 public:
  // Adds an interval. If not `bounded`, intervals can be in any order and all are kept. False if the interval
  // is older than the window.
  [[nodiscard]] bool add(Nanoseconds start, Nanoseconds end, bool bounded);
  // Length of the union.
  [[nodiscard]] Nanoseconds total();

 private:
  // A stretch in which the stream works.
  struct Stretch {
    Nanoseconds start, end;
  };
  // Sorts and merges the stretches.
  void unite();

  static constexpr std::size_t kWindow = std::size_t{1} << 15U;

  std::vector<Stretch> stretches_;
  std::size_t unite_at_ = kWindow;
  Nanoseconds settled_{}, settled_until_ = Nanoseconds::min();
};

// The sums over all events of a file.
class RankFold {
 public:
  explicit RankFold(bool bounded) : bounded_(bounded) {}

  // `names` are those of the rank; texts of shapes may be missing.
  void add(const CpuOp& op, const StringTable& names);
  void add(const RuntimeCall& call, const StringTable& names);
  void add(const GpuOp& op, const StringTable& names);
  void add(const StreamSync&, const StringTable&) { ++s_.stream_syncs; }
  void add(const AllocatorState& state, const StringTable& names);

  // True if the events of streams were in an order that needs unbounded memory. The caller then reads the
  // file again.
  [[nodiscard]] bool is_out_of_order() const { return out_of_order_; }
  // Number of operators, annotations and steps on a thread.
  [[nodiscard]] std::size_t rows_of(ThreadId thread) const;
  // False if it is not certain that a step of the file launches GPU work.
  [[nodiscard]] bool launches_in_a_step() const { return launches_in_a_step_; }
  // Number of GPU events.
  [[nodiscard]] std::size_t work_count() const { return s_.gpu_events; }
  // The file has only GPU work, which is then the step.
  [[nodiscard]] bool is_only_work() const { return threads_.empty() && first_work_ < last_work_; }
  // The first operator or annotation in the order of the file.
  [[nodiscard]] const std::optional<CpuOp>& first_op() const { return first_op_; }

  // `renamed`: [thread of the events] -> one of `n_threads` threads; invalid for rows that are not threads.
  void finish(std::span<const ThreadId> renamed, std::size_t n_threads, Nanoseconds base_time);
  // The steps by start, on the clock of the events. Call after finish().
  [[nodiscard]] std::vector<StepStretch> steps() const;
  // The summary. Call once, after finish().
  [[nodiscard]] RankSummary take() { return std::move(s_); }

 private:
  // Sums of a thread; record_param_comms are counted as `records`.
  struct Thread {
    std::size_t ops = 0, annotations = 0, steps = 0, calls = 0, records = 0, records_with_metadata = 0;
    Nanoseconds first = Nanoseconds::max(), last = Nanoseconds::min();  // over all events of the thread
  };
  struct Stream {
    RankSummary::Stream counts;
    BusyTime busy;
  };
  struct Name {
    KernelClass kernel_class = KernelClass::none;  // none: not classified yet
    bool is_record = false;                        // record_param_comms
  };
  struct Step {
    std::int64_t number = 0;
    Nanoseconds start, duration;
    ThreadId thread;
  };

  using Starts = std::unordered_map<std::int64_t, Nanoseconds>;  // [correlation]

  // Decides whether a call launches this work, or the reverse, inside of a step.
  void look_for_launch(std::int64_t correlation, Nanoseconds start, const Starts& others, Starts& own);
  Thread& thread_of(ThreadId id, Nanoseconds start, Nanoseconds end);
  Name& look_up(NameId name, const StringTable& names);

  RankSummary s_;
  bool bounded_, out_of_order_ = false;
  std::vector<Thread> threads_;
  std::vector<Name> names_;
  std::vector<Step> steps_;
  std::optional<CpuOp> first_op_;
  std::map<std::pair<std::int32_t, std::int32_t>, Stream> streams_;  // by device and stream
  std::array<Nanoseconds, kKernelClassCount> kernel_time_{};
  Nanoseconds first_work_ = Nanoseconds::max(), last_work_ = Nanoseconds::min();
  LinkCount launches_, operators_;
  std::size_t with_external_id_ = 0, with_correlation_as_id_ = 0;
  // Until a launch inside a step is found: the latest calls and work, and the starts of calls with work that
  // was seen.
  Starts latest_calls_, latest_work_;
  std::vector<Nanoseconds> launching_;
  bool launches_in_a_step_ = false;
};

// The meaning of "External id", from the number of GPU events that have one, that repeat their correlation in
// it, and that name an operator with it.
[[nodiscard]] ExternalIdMeaning external_id_meaning(std::size_t with_id, std::size_t is_correlation,
                                                    std::size_t names_op);

}  // namespace stepcast::detail
