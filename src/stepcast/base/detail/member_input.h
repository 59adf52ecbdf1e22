// Opens a member of an archive as a ByteInput.
#pragma once

#include <filesystem>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/result.h"

namespace stepcast::detail {

// Errors: `archive` is not an archive or has no such member.
[[nodiscard]] Result<ByteInput> open_member(const std::filesystem::path& archive,
                                            const std::filesystem::path& member);

}  // namespace stepcast::detail
