// docs/models.md names every architecture that is read.
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/huggingface.h"

#include "tests/support/paths.h"

namespace stepcast::models_doc_test {
namespace {

using ::testing::HasSubstr;

std::string document() {
  std::ifstream file{test::source_dir() / "docs" / "models.md"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// From the line of a heading to the next heading.
std::string section(const std::string& text, const std::string& heading) {
  const auto begin = text.find("\n" + heading + "\n");
  if (begin == std::string::npos) return {};
  const auto end = text.find("\n#", begin + heading.size() + 1);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

TEST(ModelsDocument, NamesEveryArchitecture) {
  const std::string text = section(document(), "### config.json");
  for (const std::string& type : huggingface_model_types()) EXPECT_THAT(text, HasSubstr("`" + type + "`"));
}

}  // namespace
}  // namespace stepcast::models_doc_test
