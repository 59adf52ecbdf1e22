// Interned strings: each distinct text is stored once and identified by a 32-bit id.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "stepcast/base/id.h"

namespace stepcast {

using NameId = Id<struct NameTag>;

// Ids start at 0 in order of insertion. Copies have the same ids.
class StringTable {
 public:
  StringTable() = default;
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  StringTable(const StringTable& other) { *this = other; }
  StringTable& operator=(const StringTable& other);

  // The id of `text`, which is added if it is new.
  NameId intern(std::string_view text);
  // The id of `text`; an invalid id if it was not interned.
  [[nodiscard]] NameId find(std::string_view text) const;
  // The text of an id, valid as long as the table exists. An invalid id gives an empty text.
  [[nodiscard]] std::string_view text(NameId id) const {
    return id.valid() ? std::string_view{texts_[id.index()]} : std::string_view{};
  }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // std::deque keeps addresses stable, which the index needs
  std::unordered_map<std::string_view, NameId> index_;
};

}  // namespace stepcast
