#include "stepcast/formats/presets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/formats/huggingface.h"
#include "stepcast/workload/network.h"

#include "tests/support/data.h"

namespace stepcast::presets_test {
namespace {

using ::testing::HasSubstr;

// A published count: 8,030,261,248 is exact; 18.4B holds to half of its last digit; ~350M is a name and only
// has to be near.
struct Published {
  double value = 0;
  double tolerance = 0;
};

Published read_published(std::string text) {
  if (text.find(',') != std::string::npos) {
    text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    return {std::strtod(text.c_str(), nullptr), 0};
  }
  const bool is_name = text.front() == '~';
  if (is_name) text.erase(0, 1);
  const double unit = text.back() == 'T' ? 1e12 : text.back() == 'B' ? 1e9 : text.back() == 'M' ? 1e6 : 0;
  text.pop_back();
  const auto point = text.find('.');
  const auto decimals = point == std::string::npos ? 0.0 : static_cast<double>(text.size() - point - 1);
  const double value = std::strtod(text.c_str(), nullptr) * unit;
  return {value, is_name ? 0.08 * value : 0.5 * unit * std::pow(10.0, -decimals)};
}

TEST(Presets, HaveThePublishedParameters) {
  for (const Preset& preset : presets()) {
    ASSERT_TRUE(check(preset.model).ok())
        << preset.model.name << ": " << check(preset.model).error().message();
    const auto counted = static_cast<double>(parameter_count(preset.model).total());
    const Published published = read_published(preset.published_parameters);
    ASSERT_GT(published.value, 1e8) << preset.model.name;
    EXPECT_NEAR(counted, published.value, published.tolerance) << preset.model.name;
  }
}

TEST(Presets, HaveThePublishedParts) {
  const auto preset = [](std::string_view name) { return find_preset(name).value(); };
  // Nemotron-4 15B: 12.5 billion without embedding and output; 340B: 9.4 and 331.6 billion.
  const ParameterCount small = parameter_count(preset("nemotron-4-15b"));
  EXPECT_NEAR(static_cast<double>(small.total() - small.word_embedding - small.head), 12.5e9, 0.05e9);
  const ParameterCount large = parameter_count(preset("nemotron-4-340b"));
  EXPECT_NEAR(static_cast<double>(large.word_embedding + large.head), 9.4e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(large.total() - large.word_embedding - large.head), 331.6e9, 0.05e9);
  // Parameters that a token meets.
  EXPECT_NEAR(static_cast<double>(active_parameter_count(preset("mixtral-8x7b"))), 12.9e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(preset("mixtral-8x22b"))), 39e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(preset("qwen3-30b-a3b"))), 3.3e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(preset("qwen3-235b-a22b"))), 22e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(preset("qwen1.5-moe-a2.7b"))), 2.7e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(preset("deepseek-v2"))), 21e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(preset("deepseek-v3"))), 37e9, 1e9);
  // GPT-OSS counts the output matrix as active and the embedding (201,088 x 2,880) not.
  const auto active = [&](std::string_view name) {
    return static_cast<double>(active_parameter_count(preset(name)));
  };
  EXPECT_NEAR(active("gpt-oss-120b"), 5.13e9 + 0.58e9, 0.6e9);
  EXPECT_NEAR(active("gpt-oss-20b"), 3.61e9 + 0.58e9, 0.6e9);
  EXPECT_NEAR(active("kimi-k2"), 32e9, 1e9);
  // GLM counts neither embedding nor output matrix, 151,552 rows each.
  EXPECT_NEAR(active("glm-4.5") - 2 * 151552.0 * 5120, 32e9, 0.5e9);
  EXPECT_NEAR(active("glm-4.5-air") - 2 * 151552.0 * 4096, 12e9, 0.5e9);
  EXPECT_NEAR(active("llama-4-scout"), 17e9, 0.5e9);
  EXPECT_NEAR(active("llama-4-maverick"), 17e9, 0.5e9);
  // DeepSeek-V3 without and with what predicts further tokens: 11.5 billion of its own.
  EXPECT_NEAR(static_cast<double>(multi_token_prediction_parameters(preset("deepseek-v3"))), 11.5e9, 0.15e9);
}

TEST(Presets, AreFoundByAnySpelling) {
  for (const char* name : {"llama-3.1-70b", "llama3.1-70b", "Llama 3.1 70B", "LLAMA_3.1_70b"}) {
    const auto model = find_preset(name);
    ASSERT_TRUE(model.ok()) << name;
    EXPECT_EQ(model->name, "llama-3.1-70b");
  }
  EXPECT_EQ(find_preset("nemotron4-15b").value().hidden_size, 6144);
  EXPECT_EQ(find_preset("gpt-1t").value().n_layers, 128);
  EXPECT_EQ(find_preset("gpt-530b").value().n_layers, 105);
  const auto unknown = find_preset("lama-3-8b");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message(), HasSubstr("did you mean `llama-3-8b`?"));
  EXPECT_FALSE(find_preset("").ok());
  // Another model is no slip of the keyboard.
  for (const char* other : {"mamba2-2.7b", "nemotron-3-ultra", "gemma-3n-e4b", "llama-3-9b", "gemma-2-26b",
                            "vgg-15", "deit-base", "mt5-base"}) {
    const auto model = find_preset(other);
    ASSERT_FALSE(model.ok()) << other;
    EXPECT_THAT(model.error().message(), HasSubstr("`stepcast models` lists the names")) << other;
  }
  EXPECT_THAT(find_preset("vit-large").error().message(), HasSubstr("vit-large-patch16"));
  EXPECT_THAT(
      find_preset("dlrm-nvidia").error().message(),
      HasSubstr("did you mean one of dlrm-nvidia-small, dlrm-nvidia-large, dlrm-nvidia-extra-large?"));
  // Many begin so, or none: those of the family with the same size.
  EXPECT_THAT(find_preset("gpt-3").error().message(), HasSubstr("more: `stepcast models gpt`)?"));
  const std::string of_size = find_preset("llama-70b").error().message();
  EXPECT_THAT(of_size, HasSubstr("llama-3-70b"));
  EXPECT_THAT(of_size, Not(HasSubstr("8b")));
}

// The file that each was made of.
TEST(Presets, OfConfigsAreWhatThePublishedFilesSay) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "field" / "model_configs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no published configs";
  std::size_t n = 0;
  for (const Preset& preset : presets()) {
    // Those that every parameter is published of were checked above.
    if (!preset.of_config || read_published(preset.published_parameters).tolerance == 0) continue;
    ++n;
    bool found = false;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      auto model = read_huggingface_config(entry.path());
      if (!model || parameter_count(*model) != parameter_count(preset.model)) continue;
      model->name = preset.model.name;
      model->tower = preset.model.tower;  // counted above, and compared by what it is and not by its address
      found = found || *model == preset.model;
    }
    EXPECT_TRUE(found) << preset.model.name;
  }
  EXPECT_GE(n, 19U);
  VisionSettings four;
  four.images = 4;
  EXPECT_EQ(find_preset("qwen3-vl-8b", four)->tower->images, 4);
}

TEST(Presets, NamesAreUnique) {
  std::set<std::string> names;
  std::size_t n_aliases = 0;
  for (const Preset& preset : presets()) {
    EXPECT_TRUE(names.insert(spelling_core(preset.model.name)).second) << preset.model.name;
    for (const std::string& alias : preset.aliases)
      EXPECT_TRUE(names.insert(spelling_core(alias)).second) << alias;
    n_aliases += preset.aliases.size();
  }
  EXPECT_EQ(n_aliases, 45u);  // every ALIAS names a PRESET that exists
}

}  // namespace
}  // namespace stepcast::presets_test
