#include "stepcast/describe/automodel.h"

#include "stepcast/base/text.h"

namespace stepcast {

bool is_automodel(std::string_view framework) {
  return lower(framework).find("automodel") != std::string::npos;
}

void set_automodel_defaults(JobSettings& settings) {
  JobSettings& s = settings;
  if (!s.sharding && !s.distributed_optimizer && !s.fully_sharded && !s.zero_stage) {
    s.fully_sharded = true;
    s.sharding = Sharding::zero3;
  }
  if (!s.master_dtype) s.master_dtype = DType::bf16;
  if (!s.moments_dtype) s.moments_dtype = DType::bf16;
  if (s.expert.value_or(1) > 1 && !s.dispatcher && !s.flex_dispatcher)
    s.dispatcher = s.flex_dispatcher = TokenDispatcher::deepep;
}

}  // namespace stepcast
