// Error texts that several readers share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"

namespace stepcast {

// The message without the file name, so that equal problems in several files give equal texts.
[[nodiscard]] std::string message_without_file(const Error& error);

// The error "PLACE: found `FOUND`, expected EXPECTED", without a file. `found` is cut to 60 characters.
[[nodiscard]] Error bad_value(std::string_view place, std::string_view found, std::string_view expected);
[[nodiscard]] Error bad_value(std::string_view place, std::int64_t found, std::string_view expected);

}  // namespace stepcast
