// docs/models.md says what the code knows: every preset with its figures, every architecture, every flag.
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/describe/huggingface.h"
#include "stepcast/describe/megatron.h"
#include "stepcast/describe/presets.h"

#include "tests/support/paths.h"

namespace stepcast {
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

std::string row_of(const Preset& preset) {
  const Transformer& m = preset.model;
  std::string names = fmt::format("`{}`", m.name);
  for (const std::string& alias : preset.aliases) names += fmt::format(", `{}`", alias);
  std::string experts = "-";
  if (m.moe) experts = fmt::format("{} of {}", m.moe->experts_per_token, m.moe->n_experts);
  return fmt::format("| {} | {} | {} | {} | {} / {} | {} | {} | {:.4g} B | {} |", names, m.n_layers,
                     m.hidden_size, m.moe ? m.moe->expert_ffn_hidden_size : m.ffn_hidden_size, m.n_heads,
                     m.kv_heads(), experts, m.vocab_size,
                     static_cast<double>(parameter_count(m).total()) / 1e9, preset.published_parameters);
}

TEST(ModelsDocument, ShowsEveryPreset) {
  const std::string table = section(document(), "### Presets");
  std::string expected;
  for (const Preset& preset : presets()) expected += row_of(preset) + "\n";
  EXPECT_THAT(table, HasSubstr(expected));
}

TEST(ModelsDocument, NamesEveryArchitecture) {
  const std::string text = section(document(), "### config.json");
  for (const std::string& type : huggingface_model_types()) EXPECT_THAT(text, HasSubstr("`" + type + "`"));
}

// Words in backquotes that begin with "--".
std::set<std::string> flags_in(const std::string& text) {
  std::set<std::string> flags;
  for (auto at = text.find("`--"); at != std::string::npos; at = text.find("`--", at + 1)) {
    flags.insert(text.substr(at + 1, text.find('`', at + 1) - at - 1));
  }
  return flags;
}

TEST(ModelsDocument, ListsEveryFlagOfMegatron) {
  const std::string text = document();
  const std::pair<MegatronFlagUse, std::string> sections[] = {
      {MegatronFlagUse::understood, "#### Understood"},
      {MegatronFlagUse::not_modelled, "#### Listed as not modelled"},
      {MegatronFlagUse::passed_over, "#### Passed over"}};
  for (const auto& [use, heading] : sections) {
    std::set<std::string> known;
    for (const MegatronFlag& flag : megatron_flags()) {
      if (flag.use == use) known.insert(std::string{flag.name});
    }
    EXPECT_EQ(flags_in(section(text, heading)), known) << heading;
  }
}

}  // namespace
}  // namespace stepcast
