// Interns the texts of a JSON document by their raw spelling, so that a repeated text costs one hash and one
// comparison.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/string_table.h"
#include "stepcast/trace/detail/json_cursor.h"

namespace stepcast::detail {

// Refers to a StringTable that must outlive it.
class Interner {
 public:
  explicit Interner(StringTable& table) : table_(table), slots_(kFirstSlots) {}

  // The text with escapes resolved; invalid escapes are kept as written.
  NameId text(const JsonText& text) {
    return find_or_add(text.raw, [&]() -> std::string_view {
      return text.escaped && unescape(text.raw, scratch_) ? std::string_view{scratch_} : text.raw;
    });
  }

  // JSON text without white space between tokens.
  NameId compact_json(std::string_view json) {
    return find_or_add(json, [&]() -> std::string_view {
      scratch_.clear();
      bool in_string = false;
      bool escaped = false;
      for (const char c : json) {
        if (!in_string && (c == ' ' || c == '\n' || c == '\t' || c == '\r')) continue;
        if (c == '"' && !escaped) in_string = !in_string;
        escaped = c == '\\' && !escaped;
        scratch_ += c;
      }
      return scratch_;
    });
  }

 private:
  static constexpr std::size_t kFirstSlots = 1024;  // must be a power of two

  // An entry of the hash table (open addressing, linear probing).
  struct Slot {
    std::uint64_t hash = 0;
    NameId id;  // invalid: the slot is free
    // Index into raws_ if the raw spelling differs from the interned text.
    std::uint32_t raw = kSame;
  };
  static constexpr std::uint32_t kSame = 0xffffffff;

  // A 64-bit hash, 16 bytes at a time.
  static std::uint64_t hash_of(std::string_view text) {
    constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ULL;
    const auto rotate = [](std::uint64_t v) { return (v << 29) | (v >> 35); };
    std::uint64_t a = text.size() * kFactor;
    std::uint64_t b = ~a;
    const char* p = text.data();
    std::size_t n = text.size();
    std::uint64_t words[2];
    for (; n >= 16; n -= 16, p += 16) {
      std::memcpy(words, p, 16);
      a = (rotate(a) ^ words[0]) * kFactor;
      b = (rotate(b) ^ words[1]) * kFactor;
    }
    words[0] = words[1] = 0;
    if (n > 0) std::memcpy(words, p, n);
    a = (rotate(a) ^ words[0]) * kFactor;
    b = (rotate(b) ^ words[1]) * kFactor;
    std::uint64_t h = (a ^ rotate(b)) * kFactor;
    return h ^ (h >> 32);
  }

  // The id of a raw spelling. `resolve` gives the text to intern if the spelling is new.
  template <class Resolve>
  NameId find_or_add(std::string_view raw, Resolve resolve) {
    const std::uint64_t hash = hash_of(raw);
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].id.valid(); at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.hash == hash &&
          raw == (slot.raw == kSame ? table_.text(slot.id) : std::string_view{raws_[slot.raw]})) {
        return slot.id;
      }
    }
    const std::string_view resolved = resolve();
    Slot slot{hash, table_.intern(resolved), kSame};
    if (resolved != raw) {
      slot.raw = static_cast<std::uint32_t>(raws_.size());
      raws_.emplace_back(raw);
    }
    slots_[at] = slot;
    if (++used_ * 2 > slots_.size()) grow();
    return slot.id;
  }

  // Doubles the table. It is at most half full.
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (!slot.id.valid()) continue;
      std::size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].id.valid()) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  StringTable& table_;
  std::vector<Slot> slots_;
  std::vector<std::string> raws_;
  std::size_t used_ = 0;
  std::string scratch_;
};

}  // namespace stepcast::detail
