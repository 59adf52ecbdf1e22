// What calls cost, of the program whose one source includes this: the processor time of all threads, and allocations.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <new>
#include <utility>
#include <vector>

#include "stepcast/base/statistics.h"

namespace stepcast {

inline std::atomic<std::size_t> allocations{0}, allocated_bytes{0};

inline double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

struct CallCost {
  double ms = 0, allocations = 0, megabytes = 0;
};

template <class Call>
CallCost cost_of(const Call& call) {
  const std::size_t count = allocations.load(), bytes = allocated_bytes.load();
  const double start_ms = processor_ms();
  call();
  return {processor_ms() - start_ms, static_cast<double>(allocations.load() - count),
          static_cast<double>(allocated_bytes.load() - bytes) * 1e-6};
}

inline double median(const std::vector<CallCost>& calls, double CallCost::*part) {
  std::vector<double> values;
  for (const CallCost& call : calls) values.push_back(call.*part);
  return upper_median(std::move(values));
}

}  // namespace stepcast

// NOLINTBEGIN(misc-definitions-in-headers): one source of a program includes this.
// Not inlined: the compiler would see malloc behind `new` and free behind `delete` apart from each other, and warn that they
// do not match.
[[gnu::noinline]] void* operator new(std::size_t size) {
  stepcast::allocations.fetch_add(1, std::memory_order_relaxed);
  stepcast::allocated_bytes.fetch_add(size, std::memory_order_relaxed);
  void* memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
// NOLINTEND(misc-definitions-in-headers)
