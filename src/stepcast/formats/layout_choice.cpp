// Chooses a usual layout by trying candidates in a fixed order with the memory forecast. This is not the
// search of `plan`, which compares times.
#include "stepcast/formats/layout_choice.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/formats/resolve_job.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {
namespace {

using S = JobSettings;

// Limits of the search, and micro-batches per pipeline stage if no batch is given.
constexpr std::int64_t kMostPipeline = 64, kMostGpus = 16384;
constexpr std::int64_t kMicroBatchesPerStage = 4;

// When the framework of the job shards weights: on request, as a first measure, or always.
WeightSharding weight_sharding(const Job& job) {
  return job.framework ? *rule_of(*job.framework).sharding.weights : WeightSharding::asked_for;
}
bool shards_weights_first(const Job& job) { return weight_sharding(job) != WeightSharding::asked_for; }

// The settings as flags of `stepcast predict`.
std::string flags_of(const JobSettings& s) {
  std::string text;
  const auto add = [&](const std::string& flag) { text += (text.empty() ? "" : " ") + flag; };
  if (s.tensor) add(fmt::format("--tp {}", *s.tensor));
  if (s.pipeline) add(fmt::format("--pp {}", *s.pipeline));
  if (s.expert) add(fmt::format("--ep {}", *s.expert));
  if (s.global_batch_sequences) add(fmt::format("--gbs {}", *s.global_batch_sequences));
  if (s.sequence_parallel.value_or(false)) add("--sequence-parallel");
  if (s.distributed_optimizer.value_or(false)) add("--use-distributed-optimizer");
  if (s.zero_stage) add(fmt::format("--zero-stage {}", *s.zero_stage));
  if (s.recompute == Recompute::full) add("--recompute-granularity full");
  return text;
}

// Removes from `settings` what `said` gives already. False: they contradict it.
bool keep_said(const JobSettings& said, JobSettings& settings) {
  bool same = true;
  const auto keep = [&](std::optional<std::int64_t> S::*degree) {
    if (!(said.*degree)) return;
    same = same && (settings.*degree).value_or(1) == *(said.*degree);
    (settings.*degree).reset();
  };
  keep(&S::tensor);
  keep(&S::pipeline);
  keep(&S::expert);
  if (said.sequence_parallel) settings.sequence_parallel.reset();
  if (said.recompute || said.recompute_attention || said.checkpoint_layers) settings.recompute.reset();
  if (said.sharding || said.distributed_optimizer || said.fully_sharded || said.zero_stage) {
    settings.distributed_optimizer.reset();
    settings.zero_stage.reset();
  }
  return same;
}

// Kinds of sharding to try, the smallest change first.
std::vector<JobSettings> ways_to_shard(const Job& job) {
  const JobSettings none{};
  const JobSettings states{.distributed_optimizer = true}, weights{.zero_stage = 3};
  const WeightSharding sharding = weight_sharding(job);
  if (sharding == WeightSharding::first) return {none, {.zero_stage = 1}, {.zero_stage = 2}, weights};
  if (sharding == WeightSharding::always) return {none};  // resolve() adds the sharding
  return {none, states};
}

}  // namespace

bool leaves_layout_open(const Job& job) {
  if (job.command_line || job.torchtitan || job.deepspeed || job.config) return false;
  const auto said = [&](const auto... fields) { return ((job.settings.*fields).has_value() || ...); };
  return !said(&S::tensor, &S::pipeline, &S::context, &S::data, &S::expert, &S::expert_tensor,
               &S::virtual_stages, &S::layers_per_virtual_stage, &S::first_stage_layers,
               &S::last_stage_layers, &S::sharding, &S::distributed_optimizer, &S::fully_sharded,
               &S::zero_stage, &S::recompute, &S::recompute_attention, &S::checkpoint_layers,
               &S::optimizer_offload);
}

bool leaves_part_open(const Job& job) {
  if (job.command_line || job.torchtitan || job.deepspeed || job.config) return false;
  const S& s = job.settings;
  return !s.data && !s.weight_copies && !s.pipeline_layout && !s.layers_per_virtual_stage &&
         !s.first_stage_layers && !s.last_stage_layers;
}

bool says_whole_layout(const JobSettings& s) {
  return s.tensor && s.pipeline && s.micro_batch_sequences && s.global_batch_sequences;
}

// The layout that results from these settings in addition to the job. Nothing if it cannot run.
std::optional<LayoutChoice> LayoutSearch::tried(const JobSettings& settings) const {
  Job job = job_;
  job.settings = over(job.settings, settings);
  Result<ResolvedJob> resolved = resolve(job);
  if (!resolved) return std::nullopt;
  Result<MemoryForecast> memory = memory_forecast(resolved->model, resolved->layout, bounds_.memory);
  if (!memory) return std::nullopt;
  return LayoutChoice{settings, flags_of(settings), std::move(*resolved), std::move(*memory)};
}

// All candidates, in order of preference.
std::vector<JobSettings> LayoutSearch::usual_settings() const {
  const std::int64_t n_gpus = std::min<std::int64_t>(job_.n_gpus.value_or(1), 1'000'000'000);
  std::int64_t n_experts = job_.settings.n_experts.value_or(0);
  // The number of experts limits the expert degree. It may come from a named model.
  if (const std::optional<LayoutChoice> plain = tried({}); plain && plain->job.model.moe) {
    n_experts = plain->job.model.moe->n_experts;
  }
  // Larger values are rejected by resolve() anyway; the limit keeps the batches below from overflowing.
  constexpr std::int64_t kMostMicroBatch = 1'000'000;
  const std::int64_t micro_batch =
      std::clamp<std::int64_t>(job_.settings.micro_batch_sequences.value_or(1), 1, kMostMicroBatch);
  std::vector<JobSettings> all;
  const auto offer = [&](JobSettings settings) {
    if (keep_said(job_.settings, settings) && std::ranges::find(all, settings) == all.end())
      all.push_back(std::move(settings));
  };
  if (n_gpus == 1) {  // there are no other GPUs to share with
    offer({});
    offer({.recompute = Recompute::full});
    return all;
  }
  // Adds layouts with growing pipeline, tensor and expert degrees, all powers of two.
  const auto add_spread = [&](const JobSettings& sharding, bool recomputes) {
    JobSettings base = sharding;
    if (recomputes) base.recompute = Recompute::full;
    // Sequence parallelism is only added where weights are not sharded.
    const bool shards_all = base.zero_stage == 3 || (shards_weights_first(job_) && !base.zero_stage);
    for (std::int64_t pipeline = 1; pipeline <= std::min(kMostPipeline, n_gpus); pipeline *= 2) {
      if (pipeline > 1 && shards_weights_first(job_)) break;
      for (std::int64_t tensor = 1; tensor <= std::min(bounds_.gpus_per_node, n_gpus / pipeline);
           tensor *= 2) {
        // Dense models combine a pipeline only with the largest tensor degree of a node, unless the job gives
        // another one.
        if (pipeline > 1 && !job_.settings.tensor && 2 * tensor <= bounds_.gpus_per_node && n_experts == 0)
          continue;
        for (std::int64_t expert = 1;
             expert <= std::min(std::max<std::int64_t>(1, n_experts), n_gpus / pipeline); expert *= 2) {
          JobSettings s = base;
          if (tensor > 1) s.tensor = tensor;
          if (tensor > 1 && !shards_all) s.sequence_parallel = true;
          if (expert > 1) s.expert = expert;
          if (pipeline > 1) {
            s.pipeline = pipeline;
            if (!job_.settings.global_batch_sequences) {
              s.global_batch_sequences =
                  n_gpus / (pipeline * tensor) * micro_batch * kMicroBatchesPerStage * pipeline;
            }
          }
          offer(std::move(s));
        }
      }
    }
  };
  const std::vector<JobSettings> ways = ways_to_shard(job_);
  offer(ways.front());
  // Frameworks that shard weights use recomputation before tensor parallelism.
  if (shards_weights_first(job_)) {
    for (const bool recomputes : {false, true}) {
      for (JobSettings s : ways) {
        if (recomputes) s.recompute = Recompute::full;
        offer(std::move(s));
      }
    }
  }
  for (const bool recomputes : {false, true}) add_spread(ways.back(), recomputes);
  if (!shards_weights_first(job_)) {
    offer({.zero_stage = 3});
    offer({.recompute = Recompute::full, .zero_stage = 3});
  }
  return all;
}

// The first layout with headroom, else the first one that fits at all.
std::optional<LayoutChoice> LayoutSearch::usual() const {
  std::optional<LayoutChoice> tight;
  for (const JobSettings& settings : usual_settings()) {
    std::optional<LayoutChoice> choice = tried(settings);
    if (!choice || choice->memory.verdict == MemoryVerdict::does_not_fit) continue;
    if (choice->memory.verdict == MemoryVerdict::fits) return choice;
    if (!tight) tight = std::move(choice);
  }
  return tight;
}

std::optional<LayoutChoice> LayoutSearch::smallest() const {
  std::optional<LayoutChoice> best;
  for (const JobSettings& settings : usual_settings()) {
    std::optional<LayoutChoice> choice = tried(settings);
    if (choice && (!best || choice->memory.peak() < best->memory.peak())) best = std::move(choice);
  }
  return best;
}

std::optional<LayoutChoice> LayoutSearch::on_more_gpus() const {
  LayoutSearch larger = *this;
  for (std::int64_t n = 2 * job_.n_gpus.value_or(1); n <= kMostGpus; n *= 2) {
    larger.job_.n_gpus = n;
    std::optional<LayoutChoice> choice = larger.usual();
    if (!choice) continue;
    choice->flags = fmt::format("--gpus {}{}{}", n, choice->flags.empty() ? "" : " ", choice->flags);
    return choice;
  }
  return std::nullopt;
}

// `add_ways`: the same degrees with sharded optimizer states, recomputation, sharded weights, and both.
std::vector<LayoutChoice> LayoutSearch::nearest(std::size_t most) const {
  std::vector<LayoutChoice> found;
  const std::optional<LayoutChoice> base = tried({});
  if (!base) return found;
  const Layout& layout = base->job.layout;
  const bool has_shards = layout.sharding.kind != Sharding::none;
  const auto add = [&](const JobSettings& settings) {
    if (found.size() >= most) return;
    std::optional<LayoutChoice> choice = tried(settings);
    if (choice && choice->memory.verdict != MemoryVerdict::does_not_fit) found.push_back(std::move(*choice));
  };
  const auto add_ways = [&](const JobSettings& degrees) {
    JobSettings states = degrees, recomputed = degrees, weights = degrees;
    if (!has_shards) states.distributed_optimizer = true;
    add(states);
    recomputed = states;
    recomputed.recompute = Recompute::full;
    add(recomputed);
    if (layout.sharding.kind == Sharding::zero3) return;
    weights.zero_stage = 3;
    add(weights);
    weights.recompute = Recompute::full;
    add(weights);
  };
  add_ways({});
  for (const std::int64_t more : {2, 4, 8, 16}) {
    for (const bool tensor : {true, false}) {
      // A larger degree takes its GPUs from data parallelism.
      if (layout.degrees.data % more != 0) continue;
      JobSettings degrees;
      if (tensor) {
        degrees.tensor = layout.degrees.tensor * more;
        if (*degrees.tensor > bounds_.gpus_per_node) continue;
        if (!layout.layer.sequence_parallel && layout.sharding.kind != Sharding::zero3) {
          degrees.sequence_parallel = true;
        }
      } else {
        degrees.pipeline = layout.degrees.pipeline * more;
      }
      add(degrees);
      add_ways(degrees);
    }
  }
  return found;
}

}  // namespace stepcast
