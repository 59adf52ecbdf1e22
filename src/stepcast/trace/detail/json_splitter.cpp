// Splits a JSON document into members and elements while reading it in blocks. Only the ends of values are
// searched here (bracket_scan.h); the values are parsed by others. Positions: bytes before keep_ can be
// dropped, pos_ is the next byte to examine, end_ is the end of the data in the buffer.
#include "stepcast/trace/detail/json_splitter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "stepcast/trace/detail/bracket_scan.h"
#include "stepcast/trace/detail/leading_bytes.h"
#include "stepcast/trace/detail/quote.h"

namespace stepcast::detail {
namespace {

// Bytes needed to recognise the format.
constexpr std::size_t kLeadingBytes = 512;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

JsonSplitter::JsonSplitter(ByteSource& source, std::vector<std::string_view> list_keys, Options options)
    : source_(source),
      list_keys_(std::move(list_keys)),
      options_(options),
      capacity_(std::max<std::size_t>(options.block_bytes, 1)) {
  buffer_ = std::make_unique<char[]>(capacity_ + kPadding);
}

JsonSplitter::Step JsonSplitter::stopped() { return error_ ? Step::error : Step::end; }

std::string JsonSplitter::here() const { return "byte " + std::to_string(base_ + pos_); }

// Records an error at the current position and ends the iteration.
JsonSplitter::Step JsonSplitter::fail(std::string problem, std::string found, std::string expected,
                                      std::string advice) {
  error_ = Error::at(source_.name(), here(), std::move(problem))
               .found(std::move(found))
               .expected(std::move(expected))
               .advice(std::move(advice));
  where_ = Where::done;
  return Step::error;
}

JsonSplitter::Step JsonSplitter::fail_here(std::string expected) {
  return fail("", quote_for_message({buffer_.get() + pos_, 1}), std::move(expected));
}

// The error for a document that ends early.
JsonSplitter::Step JsonSplitter::fail_end(const std::string& what) {
  pos_ = end_;
  return fail("the JSON document ends early", "the end of the file inside " + what, "the remainder",
              "the file is incomplete: copy it again, or let the profiler finish writing");
}

// Reads more data into the buffer. Bytes from keep_ on are kept; the buffer is doubled if they fill it. False
// at the end of the document or on an error.
bool JsonSplitter::refill() {
  if (source_ended_) return false;
  if (keep_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + keep_, end_ - keep_);
    base_ += keep_;
    pos_ -= keep_;
    end_ -= keep_;
    keep_ = 0;
  }
  if (end_ == capacity_) {
    const std::size_t larger = capacity_ * 2;
    auto grown = std::make_unique<char[]>(larger + kPadding);
    std::memcpy(grown.get(), buffer_.get(), end_);
    buffer_ = std::move(grown);
    capacity_ = larger;
  }
  auto got = source_.read(buffer_.get() + end_, capacity_ - end_);
  if (!got) {
    error_ = std::move(got).error();
    where_ = Where::done;
    source_ended_ = true;
    return false;
  }
  if (*got == 0) source_ended_ = true;
  end_ += *got;
  return *got > 0;
}

bool JsonSplitter::skip_space() {
  for (;;) {
    while (pos_ < end_ && is_space(buffer_[pos_])) ++pos_;
    if (pos_ < end_) return true;
    keep_ = pos_;
    if (!refill()) return false;
  }
}

// Finds the end of the object or list that starts at keep_. pos_ is then after the closing bracket.
bool JsonSplitter::find_bracket_end() {
  BracketScan scan(options_.max_depth);
  std::size_t done = 0;  // bytes of the value examined so far
  for (;;) {
    const std::size_t have = end_ - keep_ - done;
    if (have < 64 && !source_ended_) {
      if (!refill() && error_) return false;
      continue;
    }
    if (have == 0) {
      fail_end("a value that begins at byte " + std::to_string(base_ + keep_));
      return false;
    }
    const unsigned at =
        scan.step(buffer_.get() + keep_ + done, static_cast<unsigned>(std::min<std::size_t>(have, 64)));
    if (at < BracketScan::kNotYet) {
      pos_ = keep_ + done + at + 1;
      return true;
    }
    if (at == BracketScan::kTooDeep) {
      pos_ = keep_ + done;
      fail("the JSON document is nested too deeply",
           "more than " + std::to_string(options_.max_depth) + " levels", "at most that many");
      return false;
    }
    done += std::min<std::size_t>(have, 64);
    if (done > options_.max_piece_bytes) {
      pos_ = keep_;
      fail("", "a value of more than " + std::to_string(options_.max_piece_bytes) + " bytes",
           "at most that many", "the file is damaged or not a trace");
      return false;
    }
  }
}

// Finds the end of the string that starts at keep_. pos_ is then after the closing quote.
bool JsonSplitter::find_string_end() {
  std::size_t done = 1;
  for (bool escaped = false;; ++done) {
    while (keep_ + done >= end_) {
      if (refill()) continue;
      if (!error_) fail_end("a text that begins at byte " + std::to_string(base_ + keep_));
      return false;
    }
    if (done > options_.max_piece_bytes) {
      pos_ = keep_;
      fail("", "a text of more than " + std::to_string(options_.max_piece_bytes) + " bytes",
           "at most that many", "the file is damaged or not a trace");
      return false;
    }
    const char c = buffer_[keep_ + done];
    if (escaped) {
      escaped = false;
    } else if (c == '\\') {
      escaped = true;
    } else if (c == '"') {
      pos_ = keep_ + done + 1;
      return true;
    }
  }
}

// Finds the end of a number, true, false or null at keep_: the next separator.
bool JsonSplitter::find_scalar_end() {
  std::size_t done = 0;
  for (;; ++done) {
    while (keep_ + done >= end_) {
      if (refill()) continue;
      if (error_) return false;
      pos_ = end_;
      return true;  // the enclosing list or object will report the error
    }
    const char c = buffer_[keep_ + done];
    if (c == ',' || c == ']' || c == '}' || is_space(c)) break;
    if (c == '"' || c == '{' || c == '[' || c == ':' || done >= 64) {
      pos_ = keep_;
      fail("", quote_for_message({buffer_.get() + keep_, done + 1}), "a JSON value");
      return false;
    }
  }
  pos_ = keep_ + done;
  if (done == 0) {
    fail_here("a JSON value");
    return false;
  }
  return true;
}

// Finds the end of the value at pos_ and sets the piece.
bool JsonSplitter::find_piece_end() {
  keep_ = pos_;
  const char c = buffer_[pos_];
  const bool found = c == '{' || c == '[' ? find_bracket_end()
                     : c == '"'           ? find_string_end()
                                          : find_scalar_end();
  if (!found) return false;
  piece_begin_ = keep_;
  piece_end_ = pos_;
  return true;
}

// Reads a key and the colon after it.
bool JsonSplitter::read_key() {
  if (buffer_[pos_] != '"') {
    fail_here("a key in quotes");
    return false;
  }
  keep_ = pos_;
  if (!find_string_end()) return false;
  if (pos_ - keep_ > 4096) {
    pos_ = keep_;
    fail("", "a key of more than 4096 bytes", "a key of a trace");
    return false;
  }
  key_.assign(buffer_.get() + keep_ + 1, pos_ - keep_ - 2);
  if (!skip_space()) {
    if (!error_) fail_end("an object");
    return false;
  }
  if (buffer_[pos_] != ':') {
    fail_here("':'");
    return false;
  }
  ++pos_;
  if (!skip_space()) {
    if (!error_) fail_end("an object");
    return false;
  }
  return true;
}

// Checks the format and enters the top-level object or list.
JsonSplitter::Step JsonSplitter::start_document() {
  while (end_ < kLeadingBytes && refill()) {
  }
  if (error_) return Step::error;
  const std::string_view leading{buffer_.get(), std::min(end_, kLeadingBytes)};
  if (const LeadingBytes what = recognise_leading_bytes(leading); what != LeadingBytes::json) {
    error_ = not_json_error(what, leading, source_.name());
    where_ = Where::done;
    return Step::error;
  }
  if (leading.starts_with("\xef\xbb\xbf")) pos_ = 3;  // a byte order mark
  if (!skip_space()) return stopped();
  const char c = buffer_[pos_];
  ++pos_;
  seen_ = Seen::nothing;
  if (c == '{') {
    where_ = Where::object;
    return next_member();
  }
  where_ = Where::list;
  index_ = 0;
  key_.clear();
  return Step::list;
}

// Moves to the next member of the top-level object.
JsonSplitter::Step JsonSplitter::next_member() {
  if (!skip_space()) return error_ ? Step::error : fail_end("an object");
  if (buffer_[pos_] == '}') {
    ++pos_;
    return finish();
  }
  if (seen_ == Seen::piece) {
    if (buffer_[pos_] != ',') return fail_here("',' or '}'");
    ++pos_;
    if (!skip_space()) return error_ ? Step::error : fail_end("an object");
  }
  seen_ = Seen::piece;
  if (!read_key()) return stopped();
  if (buffer_[pos_] == '[' && std::ranges::find(list_keys_, key_) != list_keys_.end()) {
    ++pos_;
    where_ = Where::list;
    list_in_object_ = true;
    seen_ = Seen::nothing;
    index_ = 0;
    return Step::list;
  }
  return find_piece_end() ? Step::member : stopped();
}

// Moves to the next element of the split list, or past its end.
JsonSplitter::Step JsonSplitter::next_element() {
  if (!skip_space()) return error_ ? Step::error : fail_end("a list");
  if (buffer_[pos_] == ']') {
    ++pos_;
    if (!list_in_object_) return finish();
    where_ = Where::object;
    seen_ = Seen::piece;
    return next_member();
  }
  if (seen_ == Seen::piece) {
    if (buffer_[pos_] != ',') return fail_here("',' or ']'");
    ++pos_;
    if (!skip_space()) return error_ ? Step::error : fail_end("a list");
    ++index_;
  }
  seen_ = Seen::piece;
  return find_piece_end() ? Step::element : stopped();
}

// The end of the document; an error if other data follow.
JsonSplitter::Step JsonSplitter::finish() {
  where_ = Where::done;
  if (skip_space())
    return fail("", quote_for_message({buffer_.get() + pos_, 1}),
                "the end of the file after the JSON document");
  return stopped();
}

JsonSplitter::Step JsonSplitter::next() {
  switch (where_) {
    case Where::start: return start_document();
    case Where::object: return next_member();
    case Where::list: return next_element();
    case Where::done: break;
  }
  return stopped();
}

}  // namespace stepcast::detail
