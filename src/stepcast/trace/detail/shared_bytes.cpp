#include "stepcast/trace/detail/shared_bytes.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace stepcast::detail {
namespace {

constexpr std::size_t kLeastCopy = 12;  // bytes; shorter copies cost what they save

void put_number(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

std::optional<std::uint64_t> take_number(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// Where each run of kLeastCopy bytes stands last, by its hash.
class Places {
 public:
  explicit Places(std::string_view base) : base_(base), places_(std::bit_ceil(base.size() + 1), kNone) {
    for (std::size_t i = base.size(); i-- > 0;)
      if (i + kLeastCopy <= base.size()) place_of(base.substr(i)) = i;
  }
  // First `near`, where the base would go on.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view bytes, std::size_t near) {
    if (bytes.size() < kLeastCopy) return std::nullopt;
    for (const std::size_t at : {near, place_of(bytes)}) {
      if (at < base_.size() && base_.substr(at, kLeastCopy) == bytes.substr(0, kLeastCopy)) return at;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t& place_of(std::string_view bytes) {
    const std::size_t hash = std::hash<std::string_view>{}(bytes.substr(0, kLeastCopy));
    return places_[hash & (places_.size() - 1)];
  }
  std::string_view base_;
  std::vector<std::size_t> places_;
};

}  // namespace

std::string bytes_without(std::string_view base, std::string_view bytes) {
  Places places{base};
  std::string copies, own;
  std::uint64_t n_copies = 0, n_own = 0;
  std::size_t near = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::optional<std::size_t> from = places.find(bytes.substr(i), near);
    if (!from) {
      own += bytes[i++];
      ++n_own;
      ++near;
      continue;
    }
    std::size_t n = kLeastCopy;
    while (i + n < bytes.size() && *from + n < base.size() && bytes[i + n] == base[*from + n]) ++n;
    const bool back = *from < near;
    put_number(n_own, copies);
    put_number(n, copies);
    put_number((back ? near - *from : *from - near) << 1U | (back ? 1U : 0U), copies);
    ++n_copies;
    n_own = 0;
    i += n;
    near = *from + n;
  }
  std::string out;
  put_number(n_copies, out);
  return out + copies + own;
}

std::optional<std::string> bytes_with(std::string_view base, std::string_view own, std::size_t size) {
  const std::optional<std::uint64_t> n_copies = take_number(own);
  if (!n_copies || *n_copies > own.size()) return std::nullopt;
  struct Copy {
    std::uint64_t own = 0, n = 0, distance = 0;
  };
  std::vector<Copy> copies(static_cast<std::size_t>(*n_copies));
  for (Copy& copy : copies) {
    for (std::uint64_t* number : {&copy.own, &copy.n, &copy.distance}) {
      const std::optional<std::uint64_t> value = take_number(own);
      if (!value) return std::nullopt;
      *number = *value;
    }
  }
  std::string out;
  std::uint64_t near = 0;
  for (const Copy& copy : copies) {
    if (copy.own > own.size() || copy.n > size) return std::nullopt;
    out += own.substr(0, static_cast<std::size_t>(copy.own));
    own.remove_prefix(static_cast<std::size_t>(copy.own));
    near += copy.own;
    const std::uint64_t distance = copy.distance >> 1U;
    near = (copy.distance & 1U) != 0 ? near - distance : near + distance;
    if (near > base.size() || copy.n > base.size() - near || out.size() + copy.n > size) return std::nullopt;
    out += base.substr(static_cast<std::size_t>(near), static_cast<std::size_t>(copy.n));
    near += copy.n;
  }
  if (out.size() + own.size() != size) return std::nullopt;
  return out + std::string{own};
}

}  // namespace stepcast::detail
