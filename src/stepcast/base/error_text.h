// Errors as many places need them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"

namespace stepcast {

// What is wrong, without the file: equal for files with the same trouble.
[[nodiscard]] std::string message_without_file(const Error& error);

// "PLACE: found `FOUND`, expected EXPECTED", of a file that others name; of a text its first 60 characters.
[[nodiscard]] Error bad_value(std::string_view place, std::string_view found, std::string_view expected);
[[nodiscard]] Error bad_value(std::string_view place, std::int64_t found, std::string_view expected);

}  // namespace stepcast
