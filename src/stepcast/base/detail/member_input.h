// The bytes of an archive's member, as ByteSource takes them.
#pragma once

#include <filesystem>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/result.h"

namespace stepcast::detail {

// Errors: no archive, or none with this member.
[[nodiscard]] Result<ByteInput> open_member(const std::filesystem::path& archive,
                                            const std::filesystem::path& member);

}  // namespace stepcast::detail
