// The values of the keys that were asked for last, so many at most: what is expensive to find and may be found again.
//
//   Recent<Options, Prices> known{8};
//   known.of(options).find(...)          // as it was left, or empty
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stepcast {

template <class Key, class Value>
class Recent {
 public:
  explicit Recent(std::size_t most) : most_(most) {}

  // Of the key for which `is_asked(key)` holds; null if none is known.
  template <class IsAsked>
  Value* find_if(const IsAsked& is_asked) {
    for (Entry& entry : entries_) {
      if (!is_asked(entry.key)) continue;
      entry.asked = ++now_;
      return &entry.value;
    }
    return nullptr;
  }
  // In place of the one that was not asked for the longest, if there are too many. `key` must not be known. The reference
  // stays valid until the next one is added.
  Value& add(Key key, Value value) {
    if (entries_.size() >= most_) {
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const Entry& a, const Entry& b) { return a.asked < b.asked; }));
    }
    entries_.push_back(Entry{std::move(key), std::move(value), ++now_});
    return entries_.back().value;
  }
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
