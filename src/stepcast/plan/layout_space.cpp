#include "stepcast/plan/layout_space.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/number.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/network.h"

namespace stepcast {
namespace {

using List = std::vector<std::int32_t>;

// Limits of the usual lists. Nodes of 72 GPUs (racks) exist, but tensor parallelism over more than 16 GPUs is not used.
constexpr std::int64_t kMostTensor = 16;
constexpr std::int64_t kMostContext = 64, kFewestTokensPerRank = 1024;
constexpr std::int64_t kMostExpert = 256, kMostMicroBatch = 16;
constexpr std::int64_t kMostMicroBatchOfNetwork = 1024;  // images, or pairs of texts
// Uneven chunks are considered only if no number of chunks up to this divides evenly.
constexpr std::int64_t kMostEvenChunks = 16;
constexpr std::int64_t kMostDegree = 1'000'000;

// All divisors of `n` up to `most`, ascending.
List divisors(std::int64_t n, std::int64_t most) {
  List list;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) list.push_back(static_cast<std::int32_t>(d));
  return list;
}

// 1, 2, 4, ... up to `most`.
List powers_of_two(std::int64_t most) {
  List list;
  for (std::int64_t d = 1; d <= most; d *= 2) list.push_back(static_cast<std::int32_t>(d));
  return list;
}

// The given values, sorted and without duplicates. Error: a value outside the limits, or none at all.
Result<List> checked(std::string_view flag, const std::vector<std::int64_t>& given,
                     std::int64_t smallest = 1) {
  List list;
  for (const std::int64_t value : given) {
    if (value < smallest || value > kMostDegree) {
      return Error::at("", std::string{flag})
          .found(fmt::format("{}", value))
          .expected(fmt::format("whole numbers from {} to {}, such as 1,2,4", smallest, kMostDegree));
    }
    list.push_back(static_cast<std::int32_t>(value));
  }
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (list.empty()) return Error::at("", std::string{flag}, "an empty list");
  return list;
}

// Sets `list` to the given values if there are any, else to the usual ones.
Status fill(List& list, std::string_view flag, const std::optional<std::vector<std::int64_t>>& given,
            List usual, std::int64_t smallest = 1) {
  if (!given) {
    list = std::move(usual);
    return Ok{};
  }
  STEPCAST_ASSIGN(list, checked(flag, *given, smallest));
  return Ok{};
}

// Error: no degree of the list divides the number of GPUs.
Status check_divides(std::string_view flag, const List& list, std::int64_t n_gpus) {
  if (std::ranges::any_of(list, [&](std::int32_t d) { return n_gpus % d == 0; })) return Ok{};
  return Error::at("", std::string{flag})
      .found(fmt::format("{}", fmt::join(list, ",")))
      .expected(fmt::format("at least one degree that divides {} GPUs", n_gpus))
      .advice("change the list or the number of GPUs");
}

// Error: hybrid sharding over at least as many nodes as the job has.
Status check_nodes(const std::vector<DataSharding>& shardings, const SpaceOf& of) {
  const std::int64_t nodes = (of.n_gpus + of.gpus_per_node - 1) / of.gpus_per_node;
  const auto has_nodes = [&](const DataSharding& s) { return s.nodes < std::max<std::int64_t>(2, nodes); };
  if (shardings.empty() || std::ranges::any_of(shardings, has_nodes)) return Ok{};
  return Error::at("", "--sharding")
      .found(fmt::format("`{}`, but {} GPUs are {} node{}", to_string(shardings.front()), of.n_gpus, nodes,
                         nodes == 1 ? "" : "s"))
      .expected("hybrid:N with fewer nodes than the job has")
      .advice("--sharding zero3 shards over all ranks");
}

// Numbers of chunks per stage for which the layers of some pipeline can be divided; see divides_into_chunks().
List usual_virtual_stages(const Transformer& model, const List& pipelines) {
  List list;
  for (std::int32_t v = 2; 2 * v <= model.n_layers; ++v) {
    const bool any = std::ranges::any_of(
        pipelines, [&](std::int32_t p) { return p > 1 && divides_into_chunks(model.n_layers, p, v); });
    if (any) list.push_back(v);
  }
  return list;
}

// The kinds of sharding that the rule of the framework lists for a search.
std::vector<DataSharding> usual_shardings(const SpaceOf& of) {
  std::vector<DataSharding> all;
  for (const SearchedSharding& s : *rule_of(of.framework).sharding.searched)
    if (!s.inside_node || of.n_gpus <= of.gpus_per_node) all.push_back({s.kind, s.nodes});
  return all;
}

// Frameworks with recomputation in their default configuration: that kind, and full recomputation to save more memory. Other
// kinds are tried only with --recompute.
std::vector<Recompute> usual_recomputations(Framework framework) {
  const Recompute usual = rule_of(framework).layers.recompute;
  if (usual == Recompute::none) return {Recompute::none, Recompute::selective, Recompute::full};
  if (usual == Recompute::full) return {Recompute::full};
  return {usual, Recompute::full};
}

std::string words(const List& list) { return fmt::format("{}", fmt::join(list, ", ")); }

// Largest ratio of the longest uneven chunk to the mean. Assumed.
constexpr double kMostUneven = 1.05;

}  // namespace

bool divides_into_chunks(std::int64_t n_layers, std::int64_t stages, std::int64_t virtual_stages) {
  // Even chunks, or even with embedding and output counted as one layer each.
  const auto divides = [&](std::int64_t v) {
    const std::int64_t chunks = stages * v;
    return chunks <= n_layers && (n_layers % chunks == 0 || (n_layers + 2) % chunks == 0);
  };
  if (divides(virtual_stages)) return true;
  const std::int64_t chunks = stages * virtual_stages, units = n_layers + 2;
  // Uneven chunks: the longest one has one layer more than the shortest.
  const std::int64_t longest = (units + chunks - 1) / chunks;
  if (chunks > n_layers || as_double(longest * chunks) > kMostUneven * as_double(units)) return false;
  for (std::int64_t v = 2; v <= kMostEvenChunks; ++v)
    if (divides(v)) return false;
  return true;
}

std::uint64_t LayoutSpace::n_degrees() const {
  std::uint64_t product = dtypes.size();
  for (const List* list : {&tensor, &pipeline, &context, &expert, &expert_tensor}) product *= list->size();
  return product;
}

std::uint64_t LayoutSpace::below_degrees() const {
  return std::uint64_t{micro_batch.size()} * forms.size() * shardings.size() * recomputations.size() *
         sequence_parallel.size();
}

std::vector<std::pair<std::string, std::string>> LayoutSpace::lines() const {
  std::vector<std::pair<std::string, std::string>> all;
  all.emplace_back("tensor parallel", words(tensor));
  all.emplace_back("pipeline parallel", words(pipeline));
  std::string text;
  for (const PipelineForm& form : forms) {
    text += text.empty() ? "" : ", ";
    text += form.schedule == PipelineSchedule::interleaved
                ? fmt::format("interleaved x{}", form.virtual_stages)
            : form.schedule == PipelineSchedule::one_f_one_b ? "1F1B"
                                                             : std::string{to_string(form.schedule)};
  }
  all.emplace_back("schedule", text);
  all.emplace_back("context parallel", words(context));
  if (expert.size() > 1 || expert.front() > 1) all.emplace_back("expert parallel", words(expert));
  if (expert_tensor.size() > 1 || expert_tensor.front() > 0) {
    text.clear();
    for (const std::int32_t degree : expert_tensor)
      text += (text.empty() ? "" : ", ") + (degree == 0 ? "as tensor" : std::to_string(degree));
    all.emplace_back("expert tensor", text);
  }
  all.emplace_back("data parallel", fmt::format("what {} GPUs leave", n_gpus));
  all.emplace_back("micro-batch", words(micro_batch));
  text.clear();
  for (const DataSharding& sharding : shardings) text += (text.empty() ? "" : ", ") + to_string(sharding);
  all.emplace_back("sharding", text);
  text.clear();
  for (const Recompute recompute : recomputations)
    text += (text.empty() ? "" : ", ") + std::string{to_string(recompute)};
  all.emplace_back("recomputation", text);
  text.clear();
  for (const bool on : sequence_parallel) text += std::string{text.empty() ? "" : ", "} + (on ? "on" : "off");
  all.emplace_back("sequence parallel", text);
  text.clear();
  for (const DType dtype : dtypes) text += (text.empty() ? "" : ", ") + std::string{to_string(dtype)};
  all.emplace_back("products in", text);
  return all;
}

namespace {

// Networks without uniform layers support no pipeline and no recomputation (layout_check.h), so these lists shrink to one value.
LayoutRestrictions of_network(const Transformer& model, const Device& device, LayoutRestrictions said) {
  if (!model.network) return said;
  const auto only = [](auto& list, auto value) {
    if (!list) list.emplace({value});
  };
  if (takes_images(model.network.get())) {
    only(said.tensor, std::int64_t{1});
    // Bytes per parameter for weights, gradients and Adam states in mixed precision. Models below this share of the memory are
    // replicated, as by DistributedDataParallel.
    constexpr double kBytesOfParameter = 16, kSmall = 0.25;
    const bool is_small =
        kBytesOfParameter * as_double(parameter_count(model).total()) < kSmall * device.memory_size.value();
    if (is_small && !said.shardings) said.shardings = {DataSharding{}};
  }
  only(said.pipeline, std::int64_t{1});
  only(said.context, std::int64_t{1});
  only(said.recomputations, Recompute::none);
  only(said.sequence_parallel, false);
  return said;
}

}  // namespace

Result<LayoutSpace> layout_space(const Transformer& model, const Device& device, const SpaceOf& of,
                                 const LayoutRestrictions& restrictions) {
  // Networks without uniform layers get single-value lists for unsupported choices.
  const LayoutRestrictions allowed = of_network(model, device, restrictions);
  const std::int64_t most_of_micro_batch = model.network ? kMostMicroBatchOfNetwork : kMostMicroBatch;
  LayoutSpace space;
  space.n_gpus = of.n_gpus;
  STEPCAST_TRY(fill(space.tensor, "--tp", allowed.tensor,
                    divisors(of.n_gpus, std::min(of.gpus_per_node, kMostTensor))));
  STEPCAST_TRY(fill(space.pipeline, "--pp", allowed.pipeline, divisors(of.n_gpus, model.n_layers)));
  // Context parallelism: powers of two that leave kFewestTokensPerRank tokens per rank and divide the GPUs.
  List contexts = powers_of_two(std::clamp<std::int64_t>(of.seq_len / kFewestTokensPerRank, 1, kMostContext));
  std::erase_if(contexts, [&](std::int32_t c) { return of.n_gpus % c != 0; });
  STEPCAST_TRY(fill(space.context, "--cp", allowed.context, std::move(contexts)));
  List experts{1};
  if (model.moe) {
    // Expert parallelism: divisors of the number of experts that divide the GPUs.
    experts = divisors(model.moe->n_experts, kMostExpert);
    std::erase_if(experts, [&](std::int32_t e) { return of.n_gpus % e != 0; });
  }
  for (const auto& [flag, given] :
       {std::pair{"--ep", &allowed.expert}, std::pair{"--etp", &allowed.expert_tensor}}) {
    const bool asks =
        !model.moe && *given && std::any_of((*given)->begin(), (*given)->end(), [](auto d) { return d > 1; });
    if (asks)
      return Error::at("", flag, fmt::format("a model without experts: {}", model.name))
          .advice("leave it out");
  }
  STEPCAST_TRY(fill(space.expert, "--ep", allowed.expert, std::move(experts)));
  STEPCAST_TRY(
      fill(space.expert_tensor, "--etp", allowed.expert_tensor, model.moe ? List{0, 1} : List{0}, 0));
  STEPCAST_TRY(fill(space.micro_batch, "--mbs", allowed.micro_batch,
                    of.adds_up_gradients ? powers_of_two(std::min(most_of_micro_batch, of.global_batch))
                                         : divisors(of.global_batch, most_of_micro_batch)));
  for (const auto& [flag, list] : {std::pair{"--tp", &space.tensor}, std::pair{"--pp", &space.pipeline},
                                   std::pair{"--cp", &space.context}}) {
    STEPCAST_TRY(check_divides(flag, *list, of.n_gpus));
  }

  // One form per schedule and number of chunks. V-shaped schedules have two chunks per stage, most others one.
  List virtual_stages;
  STEPCAST_TRY(
      fill(virtual_stages, "--vp", allowed.virtual_stages, usual_virtual_stages(model, space.pipeline)));
  const std::vector<PipelineSchedule> schedules =
      allowed.schedules.value_or(std::vector{PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved});
  for (const PipelineSchedule schedule : schedules) {
    if (is_v_shaped(schedule)) {
      space.forms.push_back({schedule, 2});
      continue;
    }
    if (schedule != PipelineSchedule::interleaved) {
      const bool is_out =
          allowed.virtual_stages && std::ranges::find(virtual_stages, 1) == virtual_stages.end();
      if (!is_out) space.forms.push_back({schedule, 1});
      continue;
    }
    for (const std::int32_t v : virtual_stages)
      if (v > 1) space.forms.push_back({schedule, v});
  }
  if (space.forms.empty()) {
    return Error::at("", "--schedules", "no schedule is left")
        .advice("1f1b needs one chunk of layers per stage (--vp 1), interleaved two or more");
  }

  space.shardings = allowed.shardings.value_or(usual_shardings(of));
  STEPCAST_TRY(check_nodes(space.shardings, of));
  space.recomputations = allowed.recomputations.value_or(usual_recomputations(of.framework));
  space.sequence_parallel = allowed.sequence_parallel.value_or(std::vector{true, false});
  if (allowed.dtypes) {
    space.dtypes = *allowed.dtypes;
  } else {
    // fp8 is added only on request and if the device has fp8 units.
    space.dtypes = {of.dtype};
    if (of.tries_fp8 && !model.network && of.dtype == DType::bf16 && device.peak(DType::fp8))
      space.dtypes.push_back(DType::fp8);
  }
  return space;
}

}  // namespace stepcast
