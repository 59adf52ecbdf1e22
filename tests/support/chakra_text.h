// Protobuf messages of Chakra traces, written field by field: what the reader has to understand, from the wire format's
// own description.
//
//   chakra_file({metadata("0.0.4"), message().number(1, 7).text(2, "gemm").number(3, 4)})
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace stepcast::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
  return out;
}

class ProtobufMessage {
 public:
  ProtobufMessage& number(std::uint64_t field, std::uint64_t value) {
    text_ += varint(field << 3) + varint(value);
    return *this;
  }
  ProtobufMessage& text(std::uint64_t field, std::string_view value) {
    text_ += varint(field << 3 | 2) + varint(value.size()) + std::string{value};
    return *this;
  }
  ProtobufMessage& packed(std::uint64_t field, std::initializer_list<std::uint64_t> values) {
    std::string list;
    for (const std::uint64_t value : values) list += varint(value);
    return text(field, list);
  }
  // An AttributeProto with an int64, in field 10 of a node.
  ProtobufMessage& attribute(std::string_view name, std::int64_t value) {
    ProtobufMessage inner;
    inner.text(1, name).number(9, static_cast<std::uint64_t>(value));
    return text(10, inner.text_);
  }
  ProtobufMessage& attribute(std::string_view name, std::string_view value) {
    ProtobufMessage inner;
    inner.text(1, name).text(29, value);
    return text(10, inner.text_);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Node with id, name, type and duration (0: left out).
inline ProtobufMessage node(std::uint64_t id, std::string_view name, std::uint64_t type,
                            std::uint64_t duration_us) {
  ProtobufMessage m;
  if (id > 0) m.number(1, id);
  m.text(2, name);
  if (type > 0) m.number(3, type);
  if (duration_us > 0) m.number(7, duration_us);
  return m;
}

inline ProtobufMessage metadata(std::string_view version) {
  ProtobufMessage m;
  m.text(1, version);
  return m;
}

// Messages behind their lengths.
inline std::string chakra_file(std::initializer_list<ProtobufMessage> messages) {
  std::string out;
  for (const ProtobufMessage& m : messages) out += varint(m.text().size()) + m.text();
  return out;
}

}  // namespace stepcast::test
