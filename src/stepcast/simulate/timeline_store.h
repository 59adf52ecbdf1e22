// Memory of a Timeline: where every task's interval lies, and the array itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepcast/base/interval.h"

namespace stepcast {

namespace detail {

// A rank's intervals: one that holds its start offset, then its instances in order. An instance is one
// interval per task followed by its in-port values, two to an interval, so that a Moment code is a position in
// it.
struct TimelineLayout {
  struct RankClass {
    std::uint32_t first_instance = 0;  // into `instances`
    std::uint32_t lane_count = 0;
    std::uint32_t multiplicity = 1;
    std::size_t intervals_per_rank = 1;
  };
  struct Instance {
    std::size_t first_interval = 0;  // within a rank
    std::uint32_t block = 0;
    std::uint32_t task_count = 0;
  };
  std::vector<RankClass> rank_classes;
  std::vector<Instance> instances;  // of all classes
};

// An array of intervals that is not set to zero first and asks for huge pages: page faults would cost more
// than the sweep.
class IntervalStore {
 public:
  IntervalStore() = default;
  IntervalStore(IntervalStore&& other) noexcept;
  IntervalStore& operator=(IntervalStore&& other) noexcept;
  IntervalStore(const IntervalStore& other);
  IntervalStore& operator=(const IntervalStore& other);
  ~IntervalStore();

  // Contents become indeterminate. False if there is no memory.
  [[nodiscard]] bool resize(std::size_t count);
  [[nodiscard]] Interval* data() { return data_; }
  [[nodiscard]] const Interval* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const { return capacity_ * sizeof(Interval); }

 private:
  Interval* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace detail
}  // namespace stepcast
