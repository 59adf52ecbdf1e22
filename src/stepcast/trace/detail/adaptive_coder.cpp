#include "stepcast/trace/detail/adaptive_coder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "stepcast/base/shipped_table.h"
namespace stepcast::detail {
namespace {

// Decisions that a probability rests on at most: more, and it follows no change; fewer, and it never gets sure.
constexpr std::uint32_t kMostSeen = 60;
constexpr std::uint32_t kTimesTold = 8;                                // in a row, told apart
constexpr unsigned kMemoryBits = 15, kFlagBits = 12, kMatchBits = 14;  // of hash tables
constexpr unsigned kLiteralBits = 18, kExpectedBits = 13;
constexpr std::uint32_t kLongMatch = 6;
constexpr std::uint32_t kMagnitudes = 64, kDifferences = 8;  // sorts of numbers behind those of the fields
constexpr std::size_t kMostPastEnd = 8;     // bytes that a reader asks for beyond the last one
constexpr char kEnd = '\0', kMeant = '\1';  // of a text; the next byte is no sign

constexpr std::array<std::uint32_t, kMostSeen + 1> rates() {
  std::array<std::uint32_t, kMostSeen + 1> rates{};
  for (std::uint32_t n = 0; n <= kMostSeen; ++n) rates[n] = 2 * 65536 / (2 * n + 3);
  return rates;
}

void learn(BitModel& model, bool value) {
  static constexpr auto kRates = rates();
  const std::int64_t aim = value ? 65535 : 0;
  model.one = static_cast<std::uint16_t>(model.one + (aim - model.one) * kRates[model.seen] / 65536);
  if (model.seen < kMostSeen) ++model.seen;
}

std::uint32_t hash_of(std::string_view bytes) {
  std::uint64_t h = bytes.size();
  for (const char c : bytes) h = (h + static_cast<unsigned char>(c) + 1) * 0x9e3779b97f4a7c15U;
  return static_cast<std::uint32_t>(h >> 32U);
}

// ln(p / (1 - p)) and back, in 1/256, between -8 and 8.
struct MixingTables {
  std::array<std::int16_t, 4096> stretched{};
  std::array<std::uint16_t, 4096> squashed{};

  MixingTables() {
    for (int i = 0; i < 4096; ++i) {
      const double x = (i + 0.5) / 4096, y = 65536 / (1 + std::exp(-(i - 2047) / 256.0));
      stretched[static_cast<std::size_t>(i)] =
          static_cast<std::int16_t>(std::lround(256 * std::log(x / (1 - x))));
      squashed[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(std::clamp(y, 64.0, 65535.0 - 64));
    }
  }
};

}  // namespace

TextModel::TextModel()
    : as_expected(std::size_t{1} << kExpectedBits),
      after_six(std::size_t{1} << kMatchBits),
      after_three(std::size_t{1} << kMatchBits),
      literals(std::size_t{1} << kLiteralBits) {
  for (auto& of_length : weights) of_length.fill(20000);
}

AdaptiveCoder::AdaptiveCoder()
    : numbers_(kFields + std::size_t{2} * kDifferences * kMagnitudes),
      memories_(std::size_t{1} << kMemoryBits),
      recalled_(std::size_t{2} * kFields * kTimesTold),
      flags_(std::size_t{1} << kFlagBits) {
  // The names that programs have in common are learned once: of operators, calls, kernels and types of PyTorch 2.11 on an H100
  // (data/measured/) and of examples/dlrm_4gpu. A line each, behind a digit for its kind: operator 0, types 2, values 3, call 4,
  // kernel 5. A change of them is another version of the file (rank_file.h).
  static const TextModel kKnown = [] {
    AdaptiveCoder coder{nullptr};
    coder.start_writing();
    std::string_view left = shipped_table("known_names.txt");
    while (!left.empty()) {
      const std::size_t end = left.find('\n');
      const std::string_view line = left.substr(0, end);
      if (!line.empty()) coder.text(static_cast<std::uint32_t>(line.front() - '0'), line.substr(1));
      left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    }
    return std::move(coder.text_);
  }();
  text_ = kKnown;
}

AdaptiveCoder::AdaptiveCoder(std::nullptr_t) {}

void AdaptiveCoder::start_writing() {
  reading_ = failed_ = false;
  low_ = 0;
  high_ = ~std::uint32_t{0};
  out_.clear();
}

std::string AdaptiveCoder::finish() {
  // Zeroes are read behind the end, and this with zeroes lies between low and high, whose first bytes differ.
  out_ += static_cast<char>(high_ >> 24U);
  return std::move(out_);
}

void AdaptiveCoder::start_reading(std::string_view bytes) {
  reading_ = true;
  failed_ = false;
  low_ = 0;
  high_ = ~std::uint32_t{0};
  code_ = 0;
  past_end_ = 0;
  in_ = bytes;
  for (int i = 0; i < 4; ++i) code_ = code_ << 8U | next_byte();
}

std::uint32_t AdaptiveCoder::next_byte() {
  if (in_.empty()) {
    if (++past_end_ > kMostPastEnd) failed_ = true;
    return 0;
  }
  const auto byte = static_cast<unsigned char>(in_.front());
  in_.remove_prefix(1);
  return byte;
}

bool AdaptiveCoder::decide(std::uint32_t one_of_65536, bool value) {
  const std::uint64_t range = high_ - low_;
  const auto middle =
      static_cast<std::uint32_t>(low_ + (range * std::clamp<std::uint32_t>(one_of_65536, 1, 65535) >> 16U));
  if (reading_) value = code_ <= middle;
  (value ? high_ : low_) = value ? middle : middle + 1;
  while (((low_ ^ high_) & 0xff000000U) == 0) {
    if (reading_)
      code_ = code_ << 8U | next_byte();
    else
      out_ += static_cast<char>(high_ >> 24U);
    low_ <<= 8U;
    high_ = high_ << 8U | 255U;
  }
  return value;
}

bool AdaptiveCoder::bit(BitModel& model, bool value) {
  value = decide(model.one, value);
  learn(model, value);
  return value;
}

std::uint64_t AdaptiveCoder::plain_bits(unsigned n, std::uint64_t value) {
  std::uint64_t read = 0;
  while (n-- > 0) read = read << 1U | (decide(1U << 15U, ((value >> n) & 1U) != 0) ? 1U : 0U);
  return read;
}

std::int64_t AdaptiveCoder::number(std::uint32_t field, std::int64_t value) {
  NumberModel& model = numbers_[field];
  // The sign stands in the lowest bit.
  const std::uint64_t unsign = static_cast<std::uint64_t>(value) << 1U ^ (value < 0 ? ~std::uint64_t{0} : 0);
  if (bit(model.is_zero, unsign == 0)) return 0;
  std::uint32_t width = static_cast<std::uint32_t>(std::bit_width(unsign)) - 1, node = 1;
  for (unsigned i = 6; i-- > 0;) node = 2 * node + (bit(model.width[node], ((width >> i) & 1U) != 0) ? 1 : 0);
  width = node - 64;
  std::uint64_t read = 1;
  const unsigned modelled = std::min(width, 3U);
  for (unsigned i = 0; i < modelled; ++i) {
    const bool is_set = ((unsign >> (width - 1 - i)) & 1U) != 0;
    read = 2 * read + (bit(model.leading[8 * std::min(width, 12U) + read], is_set) ? 1 : 0);
  }
  const unsigned left = width - modelled;
  read = left == 0 ? read : read << left | plain_bits(left, unsign);
  return static_cast<std::int64_t>(read >> 1U ^ ((read & 1U) != 0 ? ~std::uint64_t{0} : 0));
}

AdaptiveCoder::Memory& AdaptiveCoder::memory_of(std::uint32_t field, std::uint64_t circumstances,
                                                bool& is_known) {
  const std::uint64_t hash = mixed(circumstances, field);
  Memory& memory = memories_[hash >> (64U - kMemoryBits)];
  const std::uint32_t mark = static_cast<std::uint32_t>(hash) | 1U;
  is_known = memory.mark == mark;
  if (!is_known) memory = {.mark = mark};
  return memory;
}

bool AdaptiveCoder::recalls(std::uint32_t field, const Memory& memory, bool roughly, std::int64_t value) {
  const std::size_t model =
      (2 * std::size_t{field} + (roughly ? 1 : 0)) * kTimesTold + std::min(memory.again, kTimesTold - 1);
  return bit(recalled_[model], value == memory.value);
}

template <class Explicit>
std::int64_t AdaptiveCoder::recalled(std::uint32_t field, std::int64_t value, std::uint64_t all,
                                     std::uint64_t roughly, const Explicit& say) {
  bool all_known = false, roughly_known = false;
  Memory& first = memory_of(field, all, all_known);
  if (all_known && recalls(field, first, false, value)) {
    ++first.again;
    return first.value;
  }
  // What goes as it went before is not worth a look at the rest: most of what a recording holds does.
  const std::int64_t excluded = first.value;
  Memory& second = memory_of(field + kFields, roughly, roughly_known);
  if (roughly_known && !(all_known && second.value == excluded) && recalls(field, second, true, value)) {
    value = second.value;
    ++second.again;
  } else {
    value = say(value);
    second.value = value;
    second.again = 0;
  }
  first.value = value;
  first.again = 0;
  return value;
}

std::int64_t AdaptiveCoder::symbol(std::uint32_t field, std::int64_t value, std::uint64_t all,
                                   std::uint64_t roughly) {
  return recalled(field, value, all, roughly, [&](std::int64_t told) { return number(field, told); });
}

std::uint32_t AdaptiveCoder::name(std::uint32_t field, std::uint32_t kind, std::string_view value,
                                  bool is_there, std::uint64_t all, std::uint64_t roughly) {
  std::uint32_t place = 0;
  if (!reading_ && is_there) {
    const NameId known = names_.find(value);
    place = known.valid() ? static_cast<std::uint32_t>(known.index()) + 1
                          : static_cast<std::uint32_t>(names_.size()) + 1;
  }
  const auto say = [&](std::int64_t told) -> std::int64_t {
    const auto n = static_cast<std::int64_t>(names_.size());
    // 0: none, 1: a new one; else from the newest one back.
    const std::int64_t back = number(field, told == 0 ? 0 : n + 2 - told);
    if (back == 0) return std::int64_t{0};
    if (back > 1 && back <= n + 1) return n + 2 - back;
    const std::string text = back == 1 ? this->text(kind, value) : std::string{};
    if (back != 1 || names_.find(text).valid()) failed_ = true;
    return failed_ ? 0 : std::int64_t{names_.intern(text).index()} + 1;
  };
  const std::int64_t read = recalled(field, place, all, roughly, say);
  // What nobody wrote may recall the value of another field.
  if (read < 0 || read > static_cast<std::int64_t>(names_.size())) failed_ = true;
  return failed_ ? 0 : static_cast<std::uint32_t>(read);
}

std::int64_t AdaptiveCoder::difference(std::uint32_t field, std::int64_t value, std::uint64_t all,
                                       std::uint64_t roughly) {
  // Expected are half powers of two, as an average of the last ones.
  bool all_known = false, roughly_known = false;
  Memory& first = memory_of(field, all, all_known);
  Memory& second = memory_of(field + kFields, roughly, roughly_known);
  const std::int64_t expected = all_known       ? first.value / 16
                                : roughly_known ? second.value / 16
                                                : kMagnitudes - 1;
  value = number(kFields + (2 * (field % kDifferences) + (all_known ? 1 : 0)) * kMagnitudes +
                     static_cast<std::uint32_t>(std::min<std::int64_t>(expected, kMagnitudes - 1)),
                 value);
  const std::uint64_t size =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const auto width = static_cast<std::int64_t>(std::bit_width(size));
  const std::int64_t magnitude =
      16 * (width < 2 ? width : 2 * width - 2 + static_cast<std::int64_t>(size >> (width - 2) & 1U));
  for (auto [memory, known] : {std::pair{&first, all_known}, std::pair{&second, roughly_known}})
    memory->value = known ? (3 * memory->value + magnitude) / 4 : magnitude;
  return value;
}

bool AdaptiveCoder::flag(std::uint32_t field, std::uint64_t circumstances, bool value) {
  return bit(flags_[mixed(circumstances, field) >> (64U - kFlagBits)], value);
}

// Bit by bit, each by what followed the last one to six bytes and by what the match expects, mixed with weights that adapt. The models of
// half a byte stand in one line of the cache.
unsigned char AdaptiveCoder::literal(unsigned char value) {
  static const MixingTables kTables;
  constexpr std::array<std::size_t, 5> kOrders{1, 2, 3, 4, 6};
  const std::string_view history = text_.history;
  std::array<std::uint64_t, 5> before{};
  for (std::size_t o = 0; o < kOrders.size(); ++o)
    before[o] = mixed(hash_of(history.substr(history.size() - kOrders[o])), o);
  const unsigned expected = text_.match == 0 ? 0 : 256U + static_cast<unsigned char>(history[text_.match]);
  const std::uint32_t length = text_.match == 0 ? 0 : std::min<std::uint32_t>(text_.matched + 1, 15);
  std::array<std::int32_t, 6>& weights = text_.weights[length];
  std::array<BitModel*, 6> lines{}, models{};
  std::array<std::int32_t, 6> said{};
  std::uint32_t read = 1;
  for (unsigned i = 8; i-- > 0;) {
    if (i == 7 || i == 3) {
      for (std::size_t o = 0; o < before.size(); ++o)
        lines[o] = &text_.literals[((before[o] + read) * 0x9e3779b97f4a7c15U) >> (68U - kLiteralBits) << 4U];
    }
    const std::uint32_t node = i > 3 ? read : (read & ((1U << (3U - i)) - 1)) | 1U << (3U - i);
    for (std::size_t o = 0; o < before.size(); ++o) models[o] = lines[o] + node;
    // Once a bit is not as expected, nothing is.
    const bool is_match = expected >> (i + 1) == read;
    models[5] = &text_.matches[is_match ? 2 * length + ((expected >> i) & 1U) : 0];
    std::int64_t sum = 0;
    for (std::size_t o = 0; o < models.size(); ++o) {
      said[o] = models[o]->seen == 0 ? 0 : kTables.stretched[models[o]->one >> 4U];
      sum += std::int64_t{weights[o]} * said[o];
    }
    const std::uint32_t one =
        kTables.squashed[static_cast<std::size_t>(std::clamp<std::int64_t>(sum >> 16U, -2047, 2047) + 2047)];
    const bool is_set = decide(one, ((value >> i) & 1U) != 0);
    const std::int32_t miss = (is_set ? 65535 : 0) - static_cast<std::int32_t>(one);
    for (std::size_t o = 0; o < models.size(); ++o) {
      weights[o] += (said[o] * (miss >> 2U)) >> 14U;
      if (o < before.size() || is_match) learn(*models[o], is_set);
    }
    read = 2 * read + (is_set ? 1 : 0);
  }
  return static_cast<unsigned char>(read);
}

unsigned char AdaptiveCoder::byte(unsigned char value) {
  std::string& history = text_.history;
  // What followed where the last match goes on, else what followed the last bytes elsewhere.
  constexpr std::array<std::size_t, 2> kOrders{6, 3};
  const std::array<std::vector<std::uint32_t>*, 2> tables{&text_.after_six, &text_.after_three};
  for (std::size_t k = 0; k < kOrders.size(); ++k) {
    const std::uint32_t at =
        hash_of(std::string_view{history}.substr(history.size() - kOrders[k])) >> (32U - kMatchBits);
    if (text_.match == 0) text_.match = (*tables[k])[at];
    (*tables[k])[at] = static_cast<std::uint32_t>(history.size());
  }
  const auto expected = static_cast<unsigned char>(history[text_.match]);
  bool found = false;
  if (text_.match != 0 && text_.matched >= kLongMatch) {
    found = bit(text_.as_expected[mixed(std::min<std::uint32_t>(text_.matched, 31), expected) >>
                                  (64U - kExpectedBits)],
                value == expected);
    value = found ? expected : value;
    if (!found) text_.match = text_.matched = 0;
  }
  if (!found) {
    value = literal(value);
    found = text_.match != 0 && value == expected;
  }
  text_.matched = found ? text_.matched + 1 : 0;
  text_.match = found ? text_.match + 1 : 0;
  history += static_cast<char>(value);
  return value;
}

std::string AdaptiveCoder::text(std::uint32_t kind, std::string_view value) {
  // What sort of text it is stands before it in the history alone.
  text_.history.append(6, static_cast<char>('0' + kind));
  std::string read;
  for (std::size_t i = 0;; ++i) {
    const bool ends = i >= value.size();
    const char next = ends ? kEnd : value[i];
    if (!ends && (next == kEnd || next == kMeant)) byte(static_cast<unsigned char>(kMeant));
    const auto told = static_cast<char>(byte(static_cast<unsigned char>(next)));
    if (failed_) return {};
    if (!reading_) {
      if (ends) break;
      continue;
    }
    if (told == kEnd) break;
    read += told == kMeant ? static_cast<char>(byte(0)) : told;
  }
  return reading_ ? read : std::string{value};
}

}  // namespace stepcast::detail
