// What a file is, as far as its first bytes tell.
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/base/result.h"

namespace stepcast::detail {

enum class LeadingBytes : std::uint8_t {
  json,  // or at least an opening bracket
  empty,
  lfs_pointer,   // git-LFS pointer text in place of the data
  apple_double,  // "._name": metadata that macOS puts into archives
  chakra_protobuf,
  tar,
  zip,
  zstd,
  gzip,  // inside gzip
  unknown,
};

// `start` holds the first 512 bytes of the (decompressed) content, or all of it.
[[nodiscard]] LeadingBytes recognise_leading_bytes(std::string_view start);

// Why the file cannot be read as a trace in JSON: what was found, what was expected, what to do. Not for
// `json`.
[[nodiscard]] Error not_json_error(LeadingBytes what, std::string_view start, std::string file);

}  // namespace stepcast::detail
