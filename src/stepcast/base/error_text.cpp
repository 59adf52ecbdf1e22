#include "stepcast/base/error_text.h"

namespace stepcast {

std::string message_without_file(const Error& error) {
  std::string message = error.message();
  const std::string prefix = error.file() + ": ";
  if (!error.file().empty() && message.starts_with(prefix)) message.erase(0, prefix.size());
  return message;
}

}  // namespace stepcast
