// The format of a file, as far as its first bytes show.
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/base/result.h"

namespace stepcast::detail {

// Formats that are distinguished.
enum class LeadingBytes : std::uint8_t {
  json,  // or at least an opening bracket
  empty,
  lfs_pointer,   // text of a git-LFS pointer instead of the data
  apple_double,  // "._name": metadata that macOS adds to archives
  chakra_protobuf,
  xplane,  // of an XLA program
  tar,
  zip,
  zstd,
  gzip,  // gzip inside of gzip
  unknown,
};

// Recognises a format from the first 512 bytes of the decompressed content, or fewer if the file is shorter.
[[nodiscard]] LeadingBytes recognise_leading_bytes(std::string_view start);

// The error for a file that is not a trace in JSON: what was found, what was expected, what to do. Do not
// call it for `json`.
[[nodiscard]] Error not_json_error(LeadingBytes what, std::string_view start, std::string file);

}  // namespace stepcast::detail
