// Interned strings: each distinct text is stored once and named by a 32-bit id.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "stepcast/base/id.h"

namespace stepcast {

using NameId = Id<struct NameTag>;

class StringTable {
 public:
  StringTable() = default;
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  StringTable(const StringTable& other) { *this = other; }
  StringTable& operator=(const StringTable& other);

  NameId intern(std::string_view text);
  // The id of `text` if it was interned, an invalid id otherwise.
  [[nodiscard]] NameId find(std::string_view text) const;
  // Valid as long as the table lives. An invalid id gives an empty text.
  [[nodiscard]] std::string_view text(NameId id) const {
    return id.valid() ? std::string_view{texts_[id.index()]} : std::string_view{};
  }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // stable addresses: the index below points into it
  std::unordered_map<std::string_view, NameId> index_;
};

}  // namespace stepcast
