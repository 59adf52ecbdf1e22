// Recognises file formats by their first bytes, and explains to users what a file is instead of a trace.
#include "stepcast/trace/detail/leading_bytes.h"

#include <string>
#include <utility>

#include "stepcast/trace/detail/protobuf.h"
#include "stepcast/trace/detail/quote.h"

namespace stepcast::detail {
namespace {

using namespace std::string_view_literals;

// True for Chakra traces: messages preceded by their length. The first one is the global metadata (field 1:
// text with the version), or in old files a node (field 1: number; 0 is omitted, then field 2: name).
bool looks_like_chakra(std::string_view bytes) {
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 35U;
  const auto length = take_varint(bytes);
  if (!length || *length < 2 || *length >= kLongest || bytes.empty()) return false;
  const char tag = bytes.front();
  bytes.remove_prefix(1);
  if (tag != '\x0a' && tag != '\x08' && tag != '\x12') return false;
  const auto value = take_varint(bytes);
  return value && (tag == '\x08' || *value < *length);
}

// True for XLA profiles: a plane (field 1), with an id (field 1) or without, and with a name such as
// "/host:CPU" (field 2). In a Chakra trace the name would be the length of a message and what follows it.
bool looks_like_xplane(std::string_view bytes) {
  if (!bytes.starts_with('\x0a')) return false;
  bytes.remove_prefix(1);
  if (!take_varint(bytes)) return false;
  if (bytes.starts_with('\x08')) {
    bytes.remove_prefix(1);
    if (!take_varint(bytes)) return false;
  }
  if (!bytes.starts_with('\x12')) return false;
  bytes.remove_prefix(1);
  if (!take_varint(bytes)) return false;
  return bytes.starts_with("/host:"sv) || bytes.starts_with("/device:"sv) ||
         bytes.starts_with("Task Environment"sv);
}

}  // namespace

// JSON is recognised after an optional byte order mark and white space. Binary formats are recognised by
// their magic numbers; XLA profiles and Chakra traces have none and come last.
LeadingBytes recognise_leading_bytes(std::string_view start) {
  std::string_view text = start;
  if (text.starts_with("\xef\xbb\xbf"sv)) text.remove_prefix(3);
  while (!text.empty() && " \n\r\t"sv.find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  if (text.empty() && start.size() < 512) return LeadingBytes::empty;
  // Before JSON: the length of its first plane may be that of a bracket.
  if (looks_like_xplane(start)) return LeadingBytes::xplane;
  if (!text.empty() && (text.front() == '{' || text.front() == '[')) return LeadingBytes::json;
  if (text.starts_with("version https://git-lfs.github.com/spec/"sv)) return LeadingBytes::lfs_pointer;
  if (start.starts_with("\x00\x05\x16\x07"sv)) return LeadingBytes::apple_double;
  if (start.starts_with("PK\x03\x04"sv)) return LeadingBytes::zip;
  if (start.starts_with("\x28\xb5\x2f\xfd"sv)) return LeadingBytes::zstd;
  if (start.starts_with("\x1f\x8b"sv)) return LeadingBytes::gzip;
  if (start.size() >= 262 && start.substr(257, 5) == "ustar"sv) return LeadingBytes::tar;
  if (looks_like_chakra(start)) return LeadingBytes::chakra_protobuf;
  return LeadingBytes::unknown;
}

Error not_json_error(LeadingBytes what, std::string_view start, std::string file) {
  struct Words {
    const char* found;
    const char* advice;
  };
  const Words words = [&]() -> Words {
    switch (what) {
      case LeadingBytes::empty: return {"an empty file", "the trace was not written, or not copied"};
      case LeadingBytes::lfs_pointer:
        return {"a git-LFS pointer instead of the data", "run `git lfs pull` where the file comes from"};
      case LeadingBytes::apple_double:
        return {"macOS metadata (AppleDouble)", "take the file of the same name without the leading \"._\""};
      case LeadingBytes::chakra_protobuf:
        return {"a Chakra execution trace (protobuf)", "`stepcast inspect` shows its contents"};
      case LeadingBytes::xplane:
        return {"an XLA profile (*.xplane.pb)", "`stepcast inspect` shows its contents"};
      case LeadingBytes::tar: return {"a tar archive", "name the archive itself, or unpack it"};
      case LeadingBytes::zip: return {"a zip archive", "name the archive itself, or unpack it"};
      case LeadingBytes::zstd: return {"zstd data", "decompress it first"};
      case LeadingBytes::gzip: return {"gzip data inside gzip data", "decompress it once first"};
      case LeadingBytes::json:
      case LeadingBytes::unknown: break;
    }
    return {nullptr, ""};
  }();
  const std::string found = words.found != nullptr
                                ? std::string(words.found)
                                : "a file that begins with " + quote_for_message(start.substr(0, 16));
  return Error::at(std::move(file), "").found(found).expected("a trace in JSON").advice(words.advice);
}

}  // namespace stepcast::detail
