#include "stepcast/describe/job.h"

#include <cstdint>
#include <string>
#include <utility>

#include "stepcast/base/file.h"
#include "stepcast/describe/setting_groups.h"

namespace stepcast {

JobSettings over(const JobSettings& lower, const JobSettings& upper) {
  JobSettings result = lower;
  // If `upper` sets any of these fields, the values of `lower` are dropped for all of them. The fields of a
  // group express one choice in several ways, and a mix would contradict itself.
  const auto replace_together = [&](const auto... fields) {
    if (!((upper.*fields).has_value() || ...)) return;
    ((result.*fields).reset(), ...);
  };
  using S = JobSettings;
  // --checkpoint-activations existed only in releases with the legacy models.
  if (lower.checkpoint_layers.value_or(false)) result.legacy_models = true;
  replace_together(&S::recompute, &S::recompute_attention, &S::checkpoint_layers);
  replace_together(&S::sharding, &S::distributed_optimizer, &S::fully_sharded, &S::zero_stage);
  replace_together(&S::virtual_stages, &S::layers_per_virtual_stage);
  replace_together(&S::first_stage_layers, &S::last_stage_layers, &S::count_embedding_as_layer,
                   &S::count_output_as_layer, &S::pipeline_layout);
  replace_together(&S::cuda_graph_implementation, &S::cuda_graph_scope, &S::cuda_graph_layers);
  replace_together(&S::attention, &S::flash_attention, &S::legacy_models, &S::transformer_implementation);
  replace_together(&S::position, &S::rotary_positions);
  replace_together(&S::swiglu, &S::squared_relu);
  replace_together(&S::vocab_size, &S::padded_vocab_size, &S::tokenizer, &S::tokenizer_model);
  setting_groups::kAll.each([&](auto field) {
    if (upper.*field) result.*field = upper.*field;
  });
  return result;
}

Result<ConfigText> read_config_text(const std::filesystem::path& file) {
  // 1 MiB; usual config files are a few kilobytes.
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  STEPCAST_ASSIGN(std::string text, read_file(file, kMostBytes));
  return ConfigText{std::move(text), file.string()};
}

}  // namespace stepcast
