#include "stepcast/base/result.h"

namespace stepcast {

std::string Error::message() const {
  std::string text;
  const auto append = [&text](std::string_view separator, std::string_view prefix, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += separator;
    text += prefix;
    text += part;
  };
  append("", "", file_);
  append(": ", "", place_);
  append(": ", "", problem_);
  append(problem_.empty() ? ": " : ", ", "found ", found_);
  append(", ", "expected ", expected_);
  append("; ", "", advice_);
  // Quoted input may contain control characters, but a message is one line.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

}  // namespace stepcast
