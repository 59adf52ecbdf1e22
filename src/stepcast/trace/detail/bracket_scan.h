// Finds the end of a bracketed JSON value, 64 bytes at a time. Each group is turned into bit masks
// for quotes, backslashes and brackets, so that most groups need no loop over their bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stepcast::detail {

// One bit per byte of a group of 64 bytes.
struct ByteMasks {
  std::uint64_t quote = 0;
  std::uint64_t backslash = 0;
  std::uint64_t open = 0;   // '{' and '['
  std::uint64_t close = 0;  // '}' and ']'
};

// Portable version, also the reference for tests.
inline ByteMasks classify_64_portable(const char* bytes) {
  ByteMasks m;
  for (unsigned i = 0; i < 64; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const char c = bytes[i];
    if (c == '"') m.quote |= bit;
    if (c == '\\') m.backslash |= bit;
    if (c == '{' || c == '[') m.open |= bit;
    if (c == '}' || c == ']') m.close |= bit;
  }
  return m;
}

#if defined(__SSE2__)
// SSE2 version: four loads of 16 bytes.
inline ByteMasks classify_64(const char* bytes) {
  ByteMasks m;
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
  // '[' and ']' differ from '{' and '}' in this bit only.
  const __m128i brace_bit = _mm_set1_epi8(0x20);
  for (unsigned i = 0; i < 4; ++i) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * std::size_t{i}));
    const __m128i braces = _mm_or_si128(v, brace_bit);
    const auto mask = [i](__m128i equal) {
      return static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(equal))) << (16 * i);
    };
    m.quote |= mask(_mm_cmpeq_epi8(v, quote));
    m.backslash |= mask(_mm_cmpeq_epi8(v, backslash));
    m.open |= mask(_mm_cmpeq_epi8(braces, open));
    m.close |= mask(_mm_cmpeq_epi8(braces, close));
  }
  return m;
}
#else
inline ByteMasks classify_64(const char* bytes) { return classify_64_portable(bytes); }
#endif

// Bit i of the result is the parity of bits 0..i. Applied to quotes, it marks the bytes inside strings,
// including the opening quote.
constexpr std::uint64_t prefix_xor(std::uint64_t bits) {
  for (unsigned shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

// std::popcount is a library call on the x86-64 baseline; this takes about a dozen instructions.
constexpr std::uint32_t count_bits(std::uint64_t v) {
  v -= (v >> 1) & 0x5555555555555555ULL;
  v = (v & 0x3333333333333333ULL) + ((v >> 2) & 0x3333333333333333ULL);
  v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
  return static_cast<std::uint32_t>((v * 0x0101010101010101ULL) >> 56);
}

// The state between groups of 64 bytes. Pass the groups of a value in order, from its opening bracket on.
class BracketScan {
 public:
  explicit BracketScan(std::uint32_t max_depth) : max_depth_(max_depth) {}

  // Results of step() that are not a position.
  static constexpr unsigned kNotYet = 64;
  static constexpr unsigned kTooDeep = 65;

  // Examines 64 readable bytes; only the first `valid` count. Returns the position of the bracket that closes
  // the value, kNotYet if it is not in this group, or kTooDeep.
  unsigned step(const char* bytes, unsigned valid = 64) {
    const ByteMasks m = classify_64(bytes);
    const std::uint64_t counted = valid >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << valid) - 1;
    const std::uint64_t quote = m.quote & ~escaped_bytes(m.backslash & counted) & counted;
    const std::uint64_t in_string = prefix_xor(quote) ^ string_carry_;
    string_carry_ = (in_string >> 63) != 0 ? ~std::uint64_t{0} : 0;
    const std::uint64_t open = m.open & ~in_string & counted;
    std::uint64_t close = m.close & ~in_string & counted;

    const std::uint32_t opened = count_bits(open);
    const std::uint32_t closed = count_bits(close);
    if (closed < depth_ && depth_ + opened <= max_depth_) {  // the value cannot end or become too deep here
      depth_ += opened - closed;
      return kNotYet;
    }
    for (std::uint64_t both = open | close; both != 0; both &= both - 1) {
      const std::uint64_t bit = both & (~both + 1);
      if ((open & bit) != 0) {
        if (++depth_ > max_depth_) return kTooDeep;
      } else if (--depth_ == 0) {
        return static_cast<unsigned>(std::countr_zero(bit));
      }
    }
    return kNotYet;
  }

 private:
  // Marks the bytes after an unescaped backslash. The arithmetic with carries is that of simdjson (Langdale
  // and Lemire 2019).
  std::uint64_t escaped_bytes(std::uint64_t backslash) {
    if (backslash == 0) {
      const std::uint64_t escaped = escape_carry_;
      escape_carry_ = 0;
      return escaped;
    }
    constexpr std::uint64_t kEven = 0x5555555555555555ULL;
    backslash &= ~escape_carry_;
    const std::uint64_t follows = (backslash << 1) | escape_carry_;
    const std::uint64_t odd_starts = backslash & ~kEven & ~follows;
    const std::uint64_t even_sequences = odd_starts + backslash;
    escape_carry_ = even_sequences < backslash ? 1 : 0;
    return (kEven ^ (even_sequences << 1)) & follows;
  }

  std::uint32_t max_depth_;
  std::uint32_t depth_ = 0;
  std::uint64_t string_carry_ = 0;
  std::uint64_t escape_carry_ = 0;
};

}  // namespace stepcast::detail
