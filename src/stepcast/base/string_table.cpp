#include "stepcast/base/string_table.h"

namespace stepcast {

StringTable& StringTable::operator=(const StringTable& other) {
  if (this == &other) return *this;
  texts_.clear();
  index_.clear();
  for (const std::string& text : other.texts_) intern(text);
  return *this;
}

NameId StringTable::intern(std::string_view text) {
  if (const auto it = index_.find(text); it != index_.end()) return it->second;
  const NameId id{texts_.size()};
  texts_.emplace_back(text);
  index_.emplace(texts_.back(), id);
  return id;
}

NameId StringTable::find(std::string_view text) const {
  const auto it = index_.find(text);
  return it == index_.end() ? NameId{} : it->second;
}

}  // namespace stepcast
