#include "stepcast/base/error_text.h"

#include <fmt/format.h>

namespace stepcast {

std::string message_without_file(const Error& error) {
  std::string message = error.message();
  const std::string prefix = error.file() + ": ";
  if (!error.file().empty() && message.starts_with(prefix)) message.erase(0, prefix.size());
  return message;
}

Error bad_value(std::string_view place, std::string_view found, std::string_view expected) {
  constexpr std::size_t kShown = 60;
  return Error::at("", std::string{place})
      .found(fmt::format("`{}`", found.substr(0, kShown)))
      .expected(std::string{expected});
}

Error bad_value(std::string_view place, std::int64_t found, std::string_view expected) {
  return Error::at("", std::string{place}).found(fmt::format("{}", found)).expected(std::string{expected});
}

}  // namespace stepcast
