// Numbers, symbols and names as few bits, by what came before them in the same circumstances.
//
// An arithmetic coder of binary decisions (as in lpaq and LZMA), whose probabilities adapt. Writing and reading go through the same
// calls in the same order: each takes the value to write and gives back the one that stands there.
//
//   AdaptiveCoder out;                                         AdaptiveCoder in;
//   out.start_writing();                                       in.start_reading(bytes);
//   out.number(kLength, 17);                                   in.number(kLength, 0);   // 17
//   const std::string bytes = out.finish();
//
// What a coder has learned stays with it over the next start: a second text like the first one takes next to nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/string_table.h"

namespace stepcast::detail {

// How likely the next decision of a sort is 1, and how many decisions that rests on.
struct BitModel {
  std::uint16_t one = 1U << 15U;  // of 2^16
  std::uint16_t seen = 0;
};

// The bytes of texts: what follows the last six, else three bytes elsewhere, else by the last one to four.
struct TextModel {
  TextModel();

  std::string history = std::string(8, ' ');          // all texts, those of tables/known_names.txt first
  std::vector<BitModel> as_expected;                  // [hash of length of the match and byte]
  std::vector<std::uint32_t> after_six, after_three;  // [hash of bytes] place in the history of what followed
  std::vector<BitModel> literals;                     // [hash of order, bytes and bits before]
  std::array<BitModel, 32> matches{};                 // [length of the match][bit that it expects]
  std::array<std::array<std::int32_t, 6>, 16> weights{};  // [length of the match][order]
  std::uint32_t match = 0, matched = 0;                   // where the match goes on, and its bytes so far
};

class AdaptiveCoder {
 public:
  AdaptiveCoder();

  void start_writing();
  [[nodiscard]] std::string finish();
  void start_reading(std::string_view bytes);
  [[nodiscard]] bool is_reading() const { return reading_; }
  // Of reading: the bytes ended before, or say what nobody wrote.
  [[nodiscard]] bool failed() const { return failed_; }
  void fail() { failed_ = true; }

  // Fields are below this; those of differences below 8.
  static constexpr std::uint32_t kFields = 128;

  // Any number, by the magnitudes that there were of this field.
  std::int64_t number(std::uint32_t field, std::int64_t value);
  // One that depends on its circumstances: what it was when they last were all the same, else roughly the same, else a number.
  std::int64_t symbol(std::uint32_t field, std::int64_t value, std::uint64_t all, std::uint64_t roughly);
  // A difference whose magnitude depends on the circumstances.
  std::int64_t difference(std::uint32_t field, std::int64_t value, std::uint64_t all, std::uint64_t roughly);
  // A name, as its place in names(); 0 is none.
  std::uint32_t name(std::uint32_t field, std::uint32_t kind, std::string_view value, bool is_there,
                     std::uint64_t all, std::uint64_t roughly);
  bool flag(std::uint32_t field, std::uint64_t circumstances, bool value);
  // Kinds are those of tables/known_names.txt, and 6 for others.
  std::string text(std::uint32_t kind, std::string_view value);

  // Those that were written or read.
  [[nodiscard]] const StringTable& names() const { return names_; }

 private:
  struct NumberModel {
    BitModel is_zero;
    std::array<BitModel, 64> width;
    std::array<BitModel, 104> leading;  // [width][up to three bits below the highest]
  };
  struct Memory {
    std::uint32_t mark = 0;   // of the circumstances; 0: nothing
    std::uint32_t again = 0;  // times in a row
    std::int64_t value = 0;
  };

  explicit AdaptiveCoder(std::nullptr_t);  // of texts alone, without any known ones
  bool bit(BitModel& model, bool value);
  bool decide(std::uint32_t one_of_65536, bool value);
  std::uint64_t plain_bits(unsigned n, std::uint64_t value);
  std::uint32_t next_byte();
  Memory& memory_of(std::uint32_t field, std::uint64_t circumstances, bool& is_known);
  bool recalls(std::uint32_t field, const Memory& memory, bool roughly, std::int64_t value);
  template <class Explicit>
  std::int64_t recalled(std::uint32_t field, std::int64_t value, std::uint64_t all, std::uint64_t roughly,
                        const Explicit& say);
  unsigned char byte(unsigned char value);
  unsigned char literal(unsigned char value);

  std::uint32_t low_ = 0, high_ = ~std::uint32_t{0}, code_ = 0;
  std::string out_;
  std::string_view in_;
  std::size_t past_end_ = 0;
  bool reading_ = false, failed_ = false;

  std::vector<NumberModel> numbers_;
  std::vector<Memory> memories_;
  std::vector<BitModel> recalled_;  // [field][all or roughly][times in a row]
  std::vector<BitModel> flags_;     // [hash]
  StringTable names_;
  TextModel text_;
};

// For circumstances.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0,
                                            std::uint64_t d = 0) {
  std::uint64_t h = a * 0x9e3779b97f4a7c15U;
  for (const std::uint64_t x : {b, c, d})
    h = (h ^ (h >> 29U) ^ x) * 0xbf58476d1ce4e5b9U + 0x94d049bb133111ebU;
  return h ^ (h >> 32U);
}

}  // namespace stepcast::detail
