#include "stepcast/plan/layout_point.h"

#include <algorithm>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/network.h"
#include "stepcast/workload/pipeline_schedule.h"

namespace stepcast {
namespace {

// Frameworks with Megatron-LM's flags for overlapped communication; other frameworks overlap by default.
bool asks_for_overlap(Framework framework) { return !rule_of(framework).overlap.gradient_reduction; }

// The settings of one choice of type, sharding, recomputation and sequence parallelism, with the overlaps it needs.
JobSettings choices(const JobSettings& said, Framework framework, DType dtype, const DataSharding& sharding,
                    Recompute recompute, bool sequence_parallel) {
  JobSettings s;
  // fp8 and fp4 apply to GEMMs; the model keeps its 16-bit type.
  if (dtype == DType::fp8 || dtype == DType::fp4) {
    (dtype == DType::fp8 ? s.fp8 : s.fp4) = true;
    s.dtype = said.dtype.value_or(DType::bf16);
  } else {
    s.dtype = dtype;
  }
  if (sharding.kind != Sharding::none) set_sharding(sharding.kind, s);
  if (recompute != rule_of(framework).layers.recompute) s.recompute = recompute;
  if (recompute == Recompute::full && asks_for_overlap(framework)) {
    s.recompute_by_block = false;  // Megatron-LM requires a method
    s.recompute_layers = 1;
  }
  if (sequence_parallel) s.sequence_parallel = true;
  if (asks_for_overlap(framework)) {
    if (!said.overlap_gradient_reduce &&
        (sharding.kind == Sharding::none || sharding.kind == Sharding::zero1))
      s.overlap_gradient_reduce = true;
    if (!said.overlap_parameter_gather && sharding.kind == Sharding::zero1) s.overlap_parameter_gather = true;
  }
  return s;
}

// The settings of the user without those that a search chooses.
JobSettings without_choices(JobSettings said) {
  const auto leave_out = [&](auto member) { (said.*member).reset(); };
  setting_groups::kSearched.each(leave_out);
  setting_groups::kOfDegrees.each(leave_out);
  return said;
}

}  // namespace

std::string to_string(const DataSharding& sharding) {
  if (sharding.nodes > 0) return fmt::format("hybrid:{}", sharding.nodes);
  return std::string{to_string(sharding.kind)};
}

std::string to_string(const LayoutPoint& p) {
  std::string text;
  const auto add = [&](std::string_view word) { text += (text.empty() ? "" : " ") + std::string{word}; };
  if (p.tensor > 1) add(fmt::format("tp{}", p.tensor));
  if (p.pipeline > 1) {
    add(fmt::format("pp{}{}", p.pipeline,
                    p.virtual_stages > 1 ? fmt::format("x{}", p.virtual_stages) : std::string{}));
  }
  if (p.schedule != PipelineSchedule::one_f_one_b && p.schedule != PipelineSchedule::interleaved)
    add(to_string(p.schedule));
  if (p.context > 1) add(fmt::format("cp{}", p.context));
  if (p.expert > 1) add(fmt::format("ep{}", p.expert));
  if (p.expert_tensor > 0 && p.expert_tensor != p.tensor) add(fmt::format("etp{}", p.expert_tensor));
  add(fmt::format("dp{}", p.data));
  add(fmt::format("mbs{}", p.micro_batch));
  if (p.sharding.kind != Sharding::none) add(to_string(p.sharding));
  if (p.recompute != Recompute::none) add(fmt::format("recompute-{}", to_string(p.recompute)));
  if (p.sequence_parallel) add("sp");
  if (p.dtype == DType::fp8 || p.dtype == DType::fp4) add(to_string(p.dtype));
  return text;
}

namespace {

// Calls say(name, from, to) for every difference.
template <class Say>
void for_differences(const LayoutPoint& a, const LayoutPoint& b, Say say) {
  const auto number = [&](std::string_view name, std::int32_t x, std::int32_t y) {
    if (x != y) say(name, std::to_string(x), std::to_string(y));
  };
  const auto word = [&](std::string_view name, const auto& x, const auto& y) {
    if (x != y) say(name, std::string{to_string(x)}, std::string{to_string(y)});
  };
  const auto etp = [](const LayoutPoint& p) { return p.expert_tensor == 0 ? p.tensor : p.expert_tensor; };
  number("tensor", a.tensor, b.tensor);
  number("pipeline", a.pipeline, b.pipeline);
  number("virtual stages", a.virtual_stages, b.virtual_stages);
  if (a.virtual_stages == b.virtual_stages) word("schedule", a.schedule, b.schedule);
  number("context", a.context, b.context);
  number("expert", a.expert, b.expert);
  if ((a.expert_tensor == 0) != (b.expert_tensor == 0)) number("expert tensor", etp(a), etp(b));
  number("micro-batch", a.micro_batch, b.micro_batch);
  word("sharding", a.sharding, b.sharding);
  word("recomputation", a.recompute, b.recompute);
  if (a.sequence_parallel != b.sequence_parallel)
    say("sequence parallel", a.sequence_parallel ? "on" : "off", b.sequence_parallel ? "on" : "off");
  word("products in", a.dtype, b.dtype);
}

}  // namespace

std::string difference(const LayoutPoint& from, const LayoutPoint& to) {
  std::string text;
  for_differences(from, to, [&](std::string_view name, const std::string& before, const std::string& after) {
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", name, before, after);
  });
  return text;
}

// Counts through the same function as difference(), so both agree.
int n_changes(const LayoutPoint& from, const LayoutPoint& to) {
  int n = 0;
  for_differences(from, to, [&](auto&&...) { ++n; });
  return n;
}

void set_sharding(Sharding kind, JobSettings& settings) {
  if (kind == Sharding::zero1) {
    settings.distributed_optimizer = true;
    return;
  }
  if (kind != Sharding::none) settings.fully_sharded = true;
  settings.sharding = kind;  // `none` must be explicit for frameworks that shard by default
}

Result<DataSharding> parse_data_sharding(const std::string& word) {
  for (const Sharding kind : {Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::zero3})
    if (word == to_string(kind)) return DataSharding{kind, 0};
  if (word == "fsdp") return DataSharding{Sharding::zero3, 0};
  if (word == "hybrid" || word == "hsdp") return DataSharding{Sharding::zero3, 1};
  constexpr std::string_view kHybrid = "hybrid:";
  if (word.starts_with(kHybrid)) {
    const auto nodes = scan<std::int32_t>(std::string_view{word}.substr(kHybrid.size())).value_or(0);
    if (nodes > 0 && nodes < 1'000'000) return DataSharding{Sharding::zero3, nodes};
  }
  return Error::at("", "--sharding")
      .found(fmt::format("`{}`", word.substr(0, 40)))
      .expected("none, zero1, zero2, zero3 (fsdp) or hybrid:N, sharded over the ranks of N nodes");
}

Result<LayoutPrototypes> LayoutPrototypes::of(const Job& job, const Lists& lists,
                                              std::int64_t gpus_per_node) {
  LayoutPrototypes result;
  result.gpus_per_node_ = gpus_per_node;
  result.said_ = without_choices(job.settings);
  Job asked = job;
  asked.settings = result.said_;
  asked.n_gpus = 1;
  const Framework framework = job.framework.value_or(Framework::megatron);
  for (const DType dtype : lists.dtypes) {
    for (const DataSharding& sharding : lists.shardings) {
      for (const Recompute recompute : lists.recomputations) {
        for (const bool sequence_parallel : lists.sequence_parallel) {
          Job one = asked;
          one.settings = over(asked.settings, choices(asked.settings, framework, dtype, sharding, recompute,
                                                      sequence_parallel));
          one.settings.micro_batch_sequences = 1;
          if (sharding.kind == Sharding::none) set_sharding(Sharding::none, one.settings);
          STEPCAST_ASSIGN(ResolvedJob resolved, resolve(one));
          if (result.prototypes_.empty()) {
            result.model_ = resolved.model;
            result.notes_ = resolved.notes;
            result.routine_ = resolved.routine;
          }
          result.prototypes_.push_back(
              {dtype, sharding, recompute, sequence_parallel, std::move(resolved.layout)});
        }
      }
    }
  }
  if (result.prototypes_.empty()) return Error{"a space without a layout: a list is empty"};
  return result;
}

const LayoutPrototypes::Prototype& LayoutPrototypes::like(const LayoutPoint& point) const {
  const Prototype* best = &prototypes_.front();
  int most = -1;
  for (const Prototype& p : prototypes_) {
    // Weights make the type more important than the sharding, and so on.
    const int same = 8 * (p.dtype == point.dtype) + 4 * (p.sharding.kind == point.sharding.kind) +
                     2 * (p.recompute == point.recompute) + (p.sequence_parallel == point.sequence_parallel);
    if (same <= most) continue;
    most = same;
    best = &p;
  }
  return *best;
}

std::int64_t LayoutPrototypes::shard_group(const LayoutPoint& point) const {
  if (point.sharding.nodes == 0) return 0;
  const std::int64_t ranks = std::int64_t{point.data} * point.context;
  // Ranks of a group of nodes, divided by tensor parallelism: only data- and context-parallel ranks share weights.
  const std::int64_t in_nodes = point.sharding.nodes * gpus_per_node_;
  if (in_nodes % point.tensor != 0) return -1;
  const std::int64_t group = in_nodes / point.tensor;
  if (group <= 1 || group >= ranks || ranks % group != 0) return -1;
  // Context-parallel ranks are contiguous within data-parallel ones, so a group contains all of them or an even part.
  if (group % point.context != 0 && point.context % group != 0) return -1;
  return group;
}

void LayoutPrototypes::layout(const LayoutPoint& point, Layout& into) const {
  const Prototype& prototype = like(point);
  into = prototype.layout;
  into.degrees = {.tensor = point.tensor,
                  .pipeline = point.pipeline,
                  .context = point.context,
                  .data = point.data,
                  .expert = point.expert,
                  .expert_tensor = point.expert_tensor,
                  .virtual_stages = point.virtual_stages};
  into.batch.micro_batch_sequences = point.micro_batch;
  set_schedule(point.schedule, into);
  if (!said_.overlap_p2p && point.virtual_stages > 1 && rule_of(into).overlap.interleaved_sends)
    into.pipeline.overlap = true;
  into.layer.recompute.kind = point.recompute;
  into.sharding.kind = point.sharding.kind;
  into.sharding.shard_group_size = std::max<std::int64_t>(0, shard_group(point));
  const std::int64_t chunks = into.degrees.pipeline * into.degrees.virtual_stages;
  into.pipeline.layers_per_stage.clear();
  // Uneven numbers of layers count embedding and output as one layer each.
  if (chunks > 1 && model_.n_layers % chunks != 0)
    into.pipeline.layers_per_stage = layers_counting_embedding_and_output(model_.n_layers, chunks);
}

Layout LayoutPrototypes::layout(const LayoutPoint& point) const {
  Layout result;
  layout(point, result);
  return result;
}

JobSettings LayoutPrototypes::settings(const LayoutPoint& point) const {
  JobSettings s =
      choices(said_, framework(), point.dtype, point.sharding, point.recompute, point.sequence_parallel);
  const auto set = [](std::optional<std::int64_t>& field, std::int64_t degree) {
    if (degree > 1) field = degree;
  };
  set(s.tensor, point.tensor);
  set(s.pipeline, point.pipeline);
  set(s.context, point.context);
  set(s.expert, point.expert);
  if (point.expert_tensor > 0 && point.expert_tensor != point.tensor) s.expert_tensor = point.expert_tensor;
  if (const std::int64_t group = shard_group(point); group > 0)
    s.weight_copies = std::int64_t{point.data} * point.context / group;
  set(s.virtual_stages, point.virtual_stages);
  s.micro_batch_sequences = point.micro_batch;
  s.global_batch_sequences = global_batch();
  if (!model_.network) {
    s.seq_len_tokens = seq_len();
  } else if (model_.network->input_tokens > 0) {  // what is said of a pair of texts
    s.seq_len_tokens = model_.network->input_tokens;
    s.decoder_tokens = said_.decoder_tokens;
  }
  return s;
}

}  // namespace stepcast
