// The wire format of Protocol Buffers for messages without groups. Fields are read in place, without copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stepcast::detail {

// Takes a varint from the front of `bytes`; empty if it is incomplete or longer than 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  std::size_t n = 0;
  for (unsigned shift = 0; shift < 64; shift += 7, ++n) {
    if (n == bytes.size()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes[n]);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) {
      bytes.remove_prefix(n + 1);
      return value;
    }
  }
  return std::nullopt;
}

// Iterates over the fields of a message:
//   for (ProtobufFields f{text}; f.next();) if (f.number() == 1) id = f.value();
// f.damaged() then tells whether the text ended inside of a field.
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view message) : rest_(message) {}

  // Moves to the next field. False at the end or if the message is damaged.
  bool next() {
    if (damaged_ || rest_.empty()) return false;
    damaged_ = !read();
    return !damaged_;
  }
  // The message ends inside of a field or has an invalid tag.
  [[nodiscard]] bool damaged() const { return damaged_; }
  // Number of the current field.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // The content of a field: `value` for varints and fields of 4 and 8 bytes, `bytes` for texts, messages and
  // packed lists.
  [[nodiscard]] bool is_bytes() const { return is_bytes_; }
  [[nodiscard]] std::uint64_t value() const { return value_; }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  // Reads the tag and content of a field.
  bool read() {
    const auto tag = take_varint(rest_);
    if (!tag || (*tag >> 3) == 0) return false;
    number_ = *tag >> 3;
    is_bytes_ = false;
    switch (*tag & 7) {
      case 0: {
        const auto value = take_varint(rest_);
        if (!value) return false;
        value_ = *value;
        return true;
      }
      case 1: return fixed(8);
      case 5: return fixed(4);
      case 2: {
        const auto length = take_varint(rest_);
        if (!length || *length > rest_.size()) return false;
        is_bytes_ = true;
        bytes_ = rest_.substr(0, static_cast<std::size_t>(*length));
        rest_.remove_prefix(bytes_.size());
        return true;
      }
      default: return false;
    }
  }
  // Takes a little-endian number of n bytes.
  bool fixed(unsigned n) {
    if (rest_.size() < n) return false;
    value_ = 0;
    for (unsigned i = 0; i < n; ++i) value_ |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    rest_.remove_prefix(n);
    return true;
  }

  std::string_view rest_, bytes_;
  std::uint64_t number_ = 0, value_ = 0;
  bool is_bytes_ = false, damaged_ = false;
};

}  // namespace stepcast::detail
