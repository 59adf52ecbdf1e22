// Splits a JSON document into pieces that can be parsed one by one, while reading it block by block.
//
// The document is an object with one long list in it, or a list. The splitter returns the members of the
// object as a whole, and the elements of the list one at a time. It examines only quotes, backslashes and
// brackets, 64 bytes at a time. The pieces therefore have balanced brackets but are not checked further.
// Memory is bounded by one block plus the largest piece.
//
//   JsonSplitter splitter(source, {"traceEvents"});
//   for (;;) {
//     switch (splitter.next()) {
//       case JsonSplitter::Step::member: ...splitter.key(), splitter.text()...
//       case JsonSplitter::Step::list: ...splitter.key(), empty for a document that is a list...
//       case JsonSplitter::Step::element: ...splitter.index(), splitter.text()...
//       case JsonSplitter::Step::end: return ...;
//       case JsonSplitter::Step::error: return splitter.take_error();
//     }
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/result.h"

namespace stepcast::detail {

// Reads one document from `source`.
class JsonSplitter {
 public:
  // member: a member of the top-level object. list: a list that is split begins. element: an element of it.
  enum class Step : std::uint8_t { member, list, element, end, error };

  // Limits, and the size of a block.
  struct Options {
    // Fits the second-level cache together with the tables of the inflater.
    std::size_t block_bytes = std::size_t{1} << 18;
    std::size_t max_piece_bytes = std::size_t{1} << 26;  // of one member or element
    std::uint32_t max_depth = 256;                       // brackets inside one piece
  };
  // This number of bytes after text() may be read; their content is undefined.
  static constexpr std::size_t kPadding = 64;

  // `source` must outlive the splitter. Lists under one of `list_keys` are split into elements; other lists
  // are members.
  JsonSplitter(ByteSource& source, std::vector<std::string_view> list_keys)
      : JsonSplitter(source, std::move(list_keys), Options{}) {}
  JsonSplitter(ByteSource& source, std::vector<std::string_view> list_keys, Options options);

  // Moves to the next piece. After `end` or `error` the result stays the same.
  Step next();

  // The key of the member or list as written, without resolving escapes. Valid until the next call.
  [[nodiscard]] std::string_view key() const { return key_; }
  // The value of the member, or the element. Valid until the next call.
  [[nodiscard]] std::string_view text() const {
    return {buffer_.get() + piece_begin_, piece_end_ - piece_begin_};
  }
  // Position of text() in the decompressed document, in bytes.
  [[nodiscard]] std::uint64_t offset() const { return base_ + piece_begin_; }
  // Number of the element in its list, from 0.
  [[nodiscard]] std::uint64_t index() const { return index_; }
  // The error. Call once after Step::error.
  [[nodiscard]] Error take_error() { return std::move(*error_); }

 private:
  // Part of the document in which the splitter is.
  enum class Where : std::uint8_t { start, object, list, done };
  // Position in the list or object: directly after the opening bracket, or after a piece.
  enum class Seen : std::uint8_t { nothing, piece };

  // Reads more of the document; false at its end or on an error.
  bool refill();
  bool skip_space();  // false at the end or on error (error_ is set)
  // Find the end of the value at pos_, by kind of value. False on an error.
  bool find_piece_end();
  bool find_bracket_end();
  bool find_string_end();
  bool find_scalar_end();
  bool read_key();
  // The states of the iteration.
  Step start_document();
  Step next_member();
  Step next_element();
  Step finish();
  // Record an error at the current position and end the iteration. Return Step::error.
  Step fail(std::string problem, std::string found, std::string expected, std::string advice = {});
  Step fail_here(std::string expected);
  Step fail_end(const std::string& what);
  // "byte 123" in the decompressed document, for errors.
  [[nodiscard]] std::string here() const;
  // The final step: error if there was one, else end.
  [[nodiscard]] Step stopped();

  ByteSource& source_;
  std::vector<std::string_view> list_keys_;
  Options options_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_;
  std::size_t keep_ = 0;    // bytes before this one are no longer needed
  std::size_t pos_ = 0;     // next byte to examine
  std::size_t end_ = 0;     // end of the data in the buffer
  std::uint64_t base_ = 0;  // position of buffer_[0] in the document
  bool source_ended_ = false;
  std::size_t piece_begin_ = 0;
  std::size_t piece_end_ = 0;
  std::string key_;
  std::uint64_t index_ = 0;
  Where where_ = Where::start;
  Seen seen_ = Seen::nothing;
  bool list_in_object_ = false;
  std::optional<Error> error_;
};

}  // namespace stepcast::detail
