#include "stepcast/simulate/timeline_store.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace stepcast::detail {
namespace {

// Size of a huge page on x86-64 and most arm64 systems: 2 MiB.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

IntervalStore::IntervalStore(IntervalStore&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

IntervalStore& IntervalStore::operator=(IntervalStore&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

IntervalStore::IntervalStore(const IntervalStore& other) { *this = other; }

IntervalStore& IntervalStore::operator=(const IntervalStore& other) {
  if (this == &other) return *this;
  if (!resize(other.size_)) throw std::bad_alloc{};  // copying a container throws when memory runs out
  if (size_ > 0) std::memcpy(data_, other.data_, size_ * sizeof(Interval));
  return *this;
}

IntervalStore::~IntervalStore() { std::free(data_); }

// Allocates in whole huge pages from two pages on, otherwise in whole cache lines of 64 bytes.
bool IntervalStore::resize(std::size_t count) {
  if (count > capacity_) {
    std::free(std::exchange(data_, nullptr));
    size_ = capacity_ = 0;
    const bool huge = count * sizeof(Interval) >= 2 * kHugePage;
    const std::size_t unit = huge ? kHugePage : std::size_t{64};
    const std::size_t bytes = (count * sizeof(Interval) + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, bytes);
    if (memory == nullptr) return false;
#ifdef __linux__
    if (huge)
      madvise(memory, bytes, MADV_HUGEPAGE);  // a hint only: the result affects speed, not correctness
#endif
    data_ = static_cast<Interval*>(memory);
    capacity_ = bytes / sizeof(Interval);
  }
  size_ = count;
  return true;
}

}  // namespace stepcast::detail
