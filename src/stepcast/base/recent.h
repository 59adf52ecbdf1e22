// A small cache of the most recently used keys, for values that are expensive to compute.
//
//   Recent<Options, Prices> known{8};
//   known.of(options).find(...)          // the kept value, or an empty one
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stepcast {

// Lookups are linear, so `most` should be small. Not thread-safe.
template <class Key, class Value>
class Recent {
 public:
  explicit Recent(std::size_t most) : most_(most) {}

  // The value of the first key for which `is_asked(key)` is true; null if there is none.
  template <class IsAsked>
  Value* find_if(const IsAsked& is_asked) {
    for (Entry& entry : entries_) {
      if (!is_asked(entry.key)) continue;
      entry.asked = ++now_;
      return &entry.value;
    }
    return nullptr;
  }
  // Adds a key, which must not be present. If the cache is full, the least recently used entry is removed.
  // The reference is valid until the next add().
  Value& add(Key key, Value value) {
    if (entries_.size() >= most_) {
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const Entry& a, const Entry& b) { return a.asked < b.asked; }));
    }
    entries_.push_back(Entry{std::move(key), std::move(value), ++now_});
    return entries_.back().value;
  }
  // The value of `key`, which is added with Value{} if it is missing.
  Value& of(const Key& key) {
    Value* known = find_if([&](const Key& one) { return one == key; });
    return known != nullptr ? *known : add(key, Value{});
  }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    Value value;
    std::uint64_t asked = 0;
  };
  std::size_t most_;
  std::uint64_t now_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace stepcast
