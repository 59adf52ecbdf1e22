// Errors told where their file is named already.
#pragma once

#include <string>

#include "stepcast/base/result.h"

namespace stepcast {

// What is wrong, without the file: equal for files with the same trouble.
[[nodiscard]] std::string message_without_file(const Error& error);

}  // namespace stepcast
