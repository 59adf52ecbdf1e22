#include "stepcast/run/run_job.h"

#include <algorithm>
#include <iterator>

#include "stepcast/base/number.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/workload/optimizer_work.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {
namespace {

// Host link of platforms without a value: 25 GB/s of the 32 GB/s of PCIe 4.0 x16.
constexpr double kHostLinkBytesPerS = 25e9;

// Bytes of one copy of the trained state, summed over all ranks of one replica.
double checkpoint_bytes_of(const Transformer& model, const Layout& layout, const StepWork& work) {
  Layout unsharded = layout;
  unsharded.sharding.kind = Sharding::none;
  TrainedParameters dense, expert;
  for (const ChunkWork& chunk : work.chunks) {
    dense.dense += chunk.trained_dense_parameters;
    expert.expert += chunk.trained_expert_parameters;
    add_weight_matrices(model, layout, work, chunk, dense);
  }
  const auto is_expert = [](const WeightMatrices& m) { return m.of_experts; };
  std::ranges::copy_if(dense.matrices, std::back_inserter(expert.matrices), is_expert);
  std::erase_if(dense.matrices, is_expert);
  // The last stage may have a copy of the word embedding for its head; only one copy is written.
  if (embeds_on_last_stage(model) && layout.degrees.pipeline > 1 && !is_v_shaped(layout.pipeline.schedule) &&
      !layout.layer.frozen_base)
    dense.dense -= as_double(padded_vocab_size(model, layout) * model.hidden_size / layout.degrees.tensor);
  const Precision& precision = layout.layer.precision;
  const bool narrow = precision.compute != DType::fp32 && precision.compute != DType::tf32;
  const double master = narrow && precision.master_weights ? element_size(precision.master).value() : 0;
  const double weight = layout.sharding.kind == Sharding::zero3 && master > 0 ? 0 : narrow ? 2 : 4;
  const double dense_ranks = as_double(layout.degrees.tensor);
  const double expert_ranks = as_double(layout.degrees.expert * layout.expert_tensor_degree());
  return (dense.dense * (weight + master) + optimizer_state_bytes(unsharded, dense)) * dense_ranks +
         (expert.expert * (weight + master) + optimizer_state_bytes(unsharded, expert)) * expert_ranks;
}

}  // namespace

Result<RunJob> run_job_of(const Transformer& model, const Layout& layout, const Platform& platform,
                          double step_s) {
  STEPCAST_ASSIGN(const StepWork work, step_work(model, layout));
  RunJob job;
  job.n_gpus = as_double(layout.world_size());
  job.gpus_per_node = std::min(job.n_gpus, static_cast<double>(platform.node.gpus_per_node));
  job.replicas = as_double(layout.degrees.data);
  job.step_s = step_s;
  job.checkpoint_bytes = checkpoint_bytes_of(model, layout, work);
  job.writers = layout.sharding.kind == Sharding::none ? job.n_gpus / job.replicas : job.n_gpus;
  job.host_bytes_per_s =
      platform.device.host_link_bandwidth ? platform.device.host_link_bandwidth->value() : kHostLinkBytesPerS;
  job.network_bytes_per_s = platform.node.network ? platform.node.network->bandwidth_per_node().value() /
                                                        platform.node.gpus_per_node
                                                  : job.host_bytes_per_s;
  return job;
}

}  // namespace stepcast
