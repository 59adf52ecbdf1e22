// DeepSpeed configs (JSON) -> layout. Such a file says how one replica's ranks train; model and model
// parallelism come from the base.
//
//   STEPCAST_ASSIGN(DescribedJob job, read_deepspeed_config("ds_config.json", {.model = model, .layout =
//   layout,
//                                                                              .n_gpus = 64}));
//
// Values "auto", which integrations fill in, count as not there. Keys that change time or memory and are not
// modelled are listed; unknown ones are errors.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/described_job.h"

namespace stepcast {

// `base`: model, degrees, sequence length, and what else the file does not say; base.n_gpus, if given, sets
// the data-parallel degree. `name` stands for the text in errors.
[[nodiscard]] Result<DescribedJob> parse_deepspeed_config(std::string_view text, const std::string& name,
                                                          const DescribedJob& base);
[[nodiscard]] Result<DescribedJob> read_deepspeed_config(const std::filesystem::path& file,
                                                         const DescribedJob& base);

}  // namespace stepcast
