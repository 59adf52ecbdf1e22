// Keys that no reader asked for. Newer files of a family have some: most say nothing of a shape.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/words.h"
#include "stepcast/describe/detail/huggingface_readers.h"

namespace stepcast::detail {
namespace {

bool has_any(std::string_view key, std::string_view parts) {
  return any_word(parts, [&](std::string_view part) { return key.find(part) != std::string_view::npos; });
}

// What is on under such a name is a way to compute the same.
constexpr std::string_view kWays = "fused kernel backend impl flash compile cache determin iteration";
// A text is no size; under such a name it says what layers are.
constexpr std::string_view kOfLayers = "pattern layer block mixer attention_type attn_type arch kind";
// A fraction under such a name is one of a size.
constexpr std::string_view kOfSizes = "ratio expan mult frac width";

// What a key that may shape the model speaks of.
struct Part {
  std::string_view names, part;
};
constexpr Part kParts[] = {{"mtp nextn predict", "layers that predict further tokens"},
                           {"expert moe router", "experts"},
                           {"hc_ hyper stream", "several residual streams"},
                           {"ngram engram ple_ per_layer", "vectors that layers look up"},
                           {"index topk sparse", "sparse attention with an indexer"},
                           {"lora_rank latent mla", "latent vectors"},
                           {"mamba ssm state conv linear delta kda", "recurrent layers"},
                           {"window sliding swa chunk", "windows of attention"},
                           {"vision image audio video", "a tower for pictures or sound"},
                           {"kv_ head attn attention sink", "attention"},
                           {"loop recur shared_layer", "layers that run more than once"},
                           {"norm", "norms"},
                           {"gate ffn mlp intermediate", "feed-forward parts"}};

bool is_off(const JsonValue& value) {
  if (value.is_bool()) return !value.truth();
  if (value.is_number()) return value.number() == 0;
  if (value.is_text()) return value.text().empty() || value.text() == "none";
  if (value.is_array()) return value.items().empty();
  return value.is_object() && value.members().empty();
}

bool shapes_nothing(std::string_view key, const JsonValue& value) {
  if (is_off(value)) return true;
  if (value.is_text()) return !has_any(key, kOfLayers);
  if (value.is_bool()) return has_any(key, kWays);
  return value.is_number() && value.number() != std::floor(value.number()) && !has_any(key, kOfSizes);
}

}  // namespace

Status finish_with_unknown_keys(ObjectReader& keys, std::vector<std::string>& notes) {
  std::string passed;
  for (const std::string& key : keys.left()) {
    if (has_any(key, huggingface_keys("never_shapes")) || key.starts_with("rope_")) {
      keys.ignore(key);
      continue;
    }
    const JsonValue& value = *keys.take(key);
    if (shapes_nothing(key, value)) {
      passed +=
          fmt::format("{}`{}` ({})", passed.empty() ? "" : ", ", key.substr(0, 60), describe_value(value));
      continue;
    }
    const auto* said = std::ranges::find_if(kParts, [&](const Part& p) { return has_any(key, p.names); });
    return keys
        .error(key, said == std::end(kParts) ? std::string{"unknown key"}
                                             : fmt::format("unknown key, by its name of {}", said->part))
        .found(describe_value(value))
        .advice(
            "it may change the shape of the model, so it is not passed over; --ignore-key NAME says that it "
            "does not");
  }
  if (!passed.empty())
    notes.push_back(
        fmt::format("keys that are not known here and by their values shape nothing: {}", passed));
  return Ok{};
}

}  // namespace stepcast::detail
