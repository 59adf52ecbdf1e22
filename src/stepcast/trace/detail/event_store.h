// Collects and sorts an unknown number of events, with little more memory than the events need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace stepcast::detail {

// A growing list in chunks. Growing does not move elements, and take() frees each chunk after copying it.
template <class T>
class ChunkedList {
 public:
  // Amortised O(1), without moving earlier elements.
  void push_back(const T& value) {
    if (used_ == kChunk) {
      chunks_.push_back(std::make_unique_for_overwrite<T[]>(kChunk));
      used_ = 0;
    }
    chunks_.back()[used_++] = value;
  }
  // Number of elements.
  [[nodiscard]] std::size_t size() const {
    return chunks_.empty() ? 0 : (chunks_.size() - 1) * kChunk + used_;
  }

  // All elements in one vector; the list is empty afterwards.
  [[nodiscard]] std::vector<T> take() {
    std::vector<T> all;
    all.reserve(size());
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const std::size_t n = i + 1 == chunks_.size() ? used_ : kChunk;
      all.insert(all.end(), chunks_[i].get(), chunks_[i].get() + n);
      chunks_[i].reset();
    }
    chunks_.clear();
    used_ = kChunk;
    return all;
  }

 private:
  static constexpr std::size_t kChunk = 4096;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t used_ = kChunk;
};

// Sorts by (start, -duration, position), so that an enclosing event precedes the events inside it. Sorts
// small keys and then moves each event once.
template <class Event>
void sort_by_time(std::vector<Event>& events) {
  const auto before = [](const Event& a, const Event& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  };
  if (std::ranges::is_sorted(events, before)) return;
  // The sort key of an event: duration and position decide only among equal starts.
  struct Key {
    std::int64_t start;
    std::uint32_t position;
  };
  std::vector<Key> keys(events.size());
  for (std::size_t i = 0; i < events.size(); ++i)
    keys[i] = {events[i].start.count(), static_cast<std::uint32_t>(i)};
  std::ranges::sort(keys, [&events](const Key& a, const Key& b) {
    if (a.start != b.start) return a.start < b.start;
    const auto a_duration = events[a.position].duration;
    const auto b_duration = events[b.position].duration;
    return a_duration != b_duration ? a_duration > b_duration : a.position < b.position;
  });
  // Follow the cycles of the permutation. A position that is done refers to itself.
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].position == i) continue;
    Event held = std::move(events[i]);
    std::size_t hole = i;
    for (;;) {
      const std::size_t from = keys[hole].position;
      keys[hole].position = static_cast<std::uint32_t>(hole);
      if (from == i) break;
      events[hole] = std::move(events[from]);
      hole = from;
    }
    events[hole] = std::move(held);
  }
}

}  // namespace stepcast::detail
