// EXPECT_THAT(read_platform("x"), FailsWith("no such file")): a Result or Status that is an Error, for the reason
// that the test is about.
#pragma once

#include <string>

#include <gmock/gmock.h>

namespace stepcast::test {

MATCHER_P(FailsWith, words, "fails with a message that holds \"" + std::string{words} + "\"") {
  if (arg.ok()) {
    *result_listener << "which succeeded";
    return false;
  }
  const std::string message = arg.error().message();
  *result_listener << "which fails with \"" << message << "\"";
  return message.find(words) != std::string::npos;
}

}  // namespace stepcast::test
