#include "stepcast/predict/changed_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/cost/device_time.h"
#include "stepcast/operation/shape_traits.h"
#include "stepcast/predict/price_program.h"

namespace stepcast {
namespace {

// A model's growth from one size to another on one GPU is off by up to this share of its logarithm: assumed.
constexpr double kGrowthBand = 0.15;
// Below this share of the recorded GPU time what is a multiple of a batch is one by chance: assumed.
constexpr double kLeastScaled = 0.05;
// Copies and forward all-reduces below that are counters, losses and flags, whatever they are a multiple of.
constexpr std::int64_t kSmallBytes = 4096;

struct TaskContext {
  bool backward = false, optimizer = false;
};

TaskContext context_of(const Program& program, StackId stack) {
  TaskContext context;
  for (; stack.valid(); stack = program.stacks.parent(stack)) {
    const std::string_view name = program.names.text(program.stacks.name(stack));
    const auto holds = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
    context.optimizer |=
        holds("Optimizer") || holds("_foreach_") || holds("AccumulateGrad") || holds("_fused_");
    context.backward |= holds("autograd::engine") || holds("Backward") || holds("_backward");
  }
  return context;
}

class BatchScaling {
 public:
  BatchScaling(const RecordedProgram& recorded, std::int64_t from, std::int64_t to) : from_(from), to_(to) {
    const Program& program = recorded.program;
    for (const Block& block : program.blocks()) {
      for (const TaskInfo& task : block.tasks()) {
        const Operation* operation = program.works.operation(task.work);
        const auto* gemm = operation == nullptr ? nullptr : std::get_if<GemmShape>(&operation->shape);
        if (gemm == nullptr || gemm->batch > 1 || context_of(program, task.stack).backward) continue;
        if (!is_multiple(gemm->m)) continue;
        forward_.insert({gemm->m, std::minmax(gemm->n, gemm->k)});
        if (gemm->k > 0 && gemm->n <= std::numeric_limits<std::int64_t>::max() / gemm->k) {
          weights_.insert(gemm->n * gemm->k);
        }
      }
    }
  }

  // False: nothing of it scales.
  bool scale(Operation& operation, const TaskContext& context) const {
    if (context.optimizer) return false;
    return std::visit(
        [&](auto& s) { return TraitsOf<decltype(s)>::grow(s, *this, operation.direction, context.backward); },
        operation.shape);
  }
  bool scale(CollectiveWork& work, const TaskContext& context) const {
    const bool activations = work.op == CollectiveOp::all_to_all || work.op == CollectiveOp::send ||
                             work.op == CollectiveOp::receive || work.op == CollectiveOp::send_receive ||
                             (work.op == CollectiveOp::all_reduce && !context.backward && !context.optimizer);
    constexpr double kMostBytes = 1e18;
    if (!activations || !(work.message.value() >= static_cast<double>(kSmallBytes)) ||
        work.message.value() > kMostBytes || !is_multiple(static_cast<std::int64_t>(work.message.value()))) {
      return false;
    }
    work.message = Bytes{work.message.value() * static_cast<double>(to_) / static_cast<double>(from_)};
    return true;
  }

  // What the shapes ask (operation/shape_traits.h); false: it does not count samples.
  [[nodiscard]] double ratio() const { return static_cast<double>(to_) / static_cast<double>(from_); }
  bool grow(std::int64_t& extent) const {
    if (!is_multiple(extent)) return false;
    const std::int64_t samples = extent / from_;
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;
    extent = samples > kMost / to_ ? kMost : samples * to_;
    return true;
  }
  // Not if they are as many as a weight has.
  bool grow_elements(std::int64_t& elements) const { return !weights_.contains(elements) && grow(elements); }
  bool grow_product(GemmShape& s, Direction direction, bool backward) const {
    if (s.batch > 1) return grow(s.batch);
    if (direction != Direction::forward || !backward) return grow(s.m) || grow(s.n);
    if (forward_.contains({s.m, std::minmax(s.n, s.k)})) return grow(s.m);
    if (forward_.contains({s.k, std::minmax(s.m, s.n)})) return grow(s.k);
    if (forward_.contains({s.n, std::minmax(s.m, s.k)})) return grow(s.n);
    for (std::int64_t* extent : {&s.k, &s.m, &s.n}) {
      if (*extent == from_) return grow(*extent);
    }
    return grow(s.m) || grow(s.k) || grow(s.n);
  }
  bool grow_transfer(TransferShape& s) const {
    return s.bytes >= kSmallBytes && !weights_.contains(s.bytes / 4) && grow(s.bytes);
  }

 private:
  [[nodiscard]] bool is_multiple(std::int64_t extent) const { return extent >= from_ && extent % from_ == 0; }

  std::int64_t from_, to_;
  std::set<std::tuple<std::int64_t, std::pair<std::int64_t, std::int64_t>>> forward_;  // rows, other extents
  std::set<std::int64_t> weights_;                                                     // elements
};

bool is_half(DType type) { return type == DType::bf16 || type == DType::fp16; }
bool is_single(DType type) { return type == DType::fp32 || type == DType::tf32; }

// False: keeps its type.
bool change_type(Operation& operation, DType to, const TaskContext& context) {
  if (!is_half(operation.dtype) && !is_single(operation.dtype)) return false;
  const bool products = std::holds_alternative<GemmShape>(operation.shape) ||
                        std::holds_alternative<ConvolutionShape>(operation.shape);
  const bool attention = std::holds_alternative<AttentionShape>(operation.shape);
  const bool follows = std::holds_alternative<ElementwiseShape>(operation.shape) ||
                       std::holds_alternative<MovementShape>(operation.shape);
  DType type = to;
  if (!products && to == DType::tf32) type = DType::fp32;  // no units of it but for products
  if (!products && !attention && (!follows || context.optimizer)) return false;
  if (type == operation.dtype || (follows && is_single(type) && is_single(operation.dtype))) return false;
  operation.dtype = type;
  if (auto* gemm = std::get_if<GemmShape>(&operation.shape)) gemm->output = DType::unknown;
  return true;
}

// New over recorded time, between no growth and that of the work for a change of batch.
double within_work(double factor, const Operation& from, const Operation& to) {
  const Work before = work_of(from), after = work_of(to);
  double least = 1, most = 1;
  const auto include = [&](double b, double a) {
    if (b <= 0) return;
    least = std::min(least, a / b);
    most = std::max(most, a / b);
  };
  include(before.flops.value(), after.flops.value());
  include(before.bytes().value(), after.bytes().value());
  return std::clamp(factor, least, most);
}

GroupPlacement whole_nodes(std::int64_t ranks, std::int64_t gpus_per_node) {
  std::vector<std::uint32_t> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0U);
  const RankSpan group{members};
  return place_ranks(group, gpus_per_node, {&group, 1});
}

}  // namespace

std::optional<std::int64_t> batch_of(const RecordedProgram& recorded) {
  const Program& program = recorded.program;
  std::map<std::int64_t, std::size_t> of_operations, of_products;
  for (const Block& block : program.blocks()) {
    for (const TaskInfo& task : block.tasks()) {
      const Operation* operation = program.works.operation(task.work);
      if (operation == nullptr) continue;
      const TaskContext context = context_of(program, task.stack);
      if (context.backward || context.optimizer || operation->direction != Direction::forward) continue;
      if (const auto* s = std::get_if<ConvolutionShape>(&operation->shape)) ++of_operations[s->batch];
      if (const auto* s = std::get_if<AttentionShape>(&operation->shape)) ++of_operations[s->batch];
      if (const auto* s = std::get_if<GemmShape>(&operation->shape)) {
        if (s->batch == 1 && s->m > 1) ++of_products[s->m];
      }
    }
  }
  const auto& found = of_operations.empty() ? of_products : of_operations;
  if (found.empty()) return std::nullopt;
  return std::max_element(found.begin(), found.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

Result<ChangedWork> changed_work(const RecordedProgram& recorded, const WorkChange& change) {
  const Program& program = recorded.program;
  ChangedWork out;
  std::optional<BatchScaling> batch;
  std::int64_t recorded_batch = 0;
  if (change.batch) {
    std::int64_t from = change.batch->recorded;
    if (from == 0) {
      const std::optional<std::int64_t> found = batch_of(recorded);
      if (!found) {
        return Error{"the batch cannot scale: no operation of the traces shows the recorded one"}.advice(
            "record with shapes (record_shapes=True), or give traces of two batches (--second-trace)");
      }
      from = *found;
      out.notes_.push_back(
          fmt::format("the recorded batch counts as {} per rank, as its operations show; say otherwise with "
                      "--recorded-batch",
                      *found));
    }
    out.batch_ratio_ = static_cast<double>(change.batch->wanted) / static_cast<double>(from);
    batch.emplace(recorded, from, change.batch->wanted);
    recorded_batch = from;
  }
  const auto world = recorded.files.empty() ? std::nullopt : recorded.files.front().world_size;
  const auto all_ranks = std::max<std::uint64_t>(program.rank_count(),
                                                 static_cast<std::uint64_t>(std::max(1, world.value_or(1))));
  out.data_parallel_ranks_ = change.data_parallel_ranks;
  out.dtype_ = change.dtype;
  double scaled_us = 0, unknown_us = 0, gpu_us = 0;
  std::size_t joined = 0, retyped = 0;
  for (const Block& block : program.blocks()) {
    std::vector<TaskWork>& of_task = out.of_task_.emplace_back(block.task_count());
    std::vector<bool>& unknown = out.unknown_.emplace_back(block.task_count(), false);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const TaskInfo& task = block.tasks()[t];
      const bool gpu = task.kind == TaskKind::kernel || task.kind == TaskKind::memcpy ||
                       task.kind == TaskKind::memset || task.kind == TaskKind::collective;
      if (!gpu) continue;
      const TaskContext context = context_of(program, task.stack);
      gpu_us += block.duration_us()[t];
      if (const Operation* operation = program.works.operation(task.work)) {
        Operation now = *operation;
        const bool grows = batch && batch->scale(now, context);
        const bool other_type = change.dtype != DType::unknown && change_type(now, change.dtype, context);
        if (grows) scaled_us += block.duration_us()[t];
        retyped += other_type ? 1 : 0;
        if (grows || other_type) of_task[t] = now;
      } else if (const CollectiveWork* transfer = program.works.collective(task.work)) {
        CollectiveWork now = *transfer;
        const bool grows = batch && batch->scale(now, context);
        if (grows) scaled_us += block.duration_us()[t];
        const bool of_all = change.data_parallel_ranks > 0 && transfer->group.valid() &&
                            program.groups()[transfer->group.index()].ranks.size() == all_ranks &&
                            all_ranks > 1;
        joined += of_all ? 1 : 0;
        if (of_all) now.group = GroupId{};  // the grown one
        if (grows || of_all) of_task[t] = now;
      } else if (batch && task.kind == TaskKind::kernel && !context.optimizer) {
        unknown[t] = true;
        unknown_us += block.duration_us()[t];
      }
    }
  }
  if (batch) {
    if (scaled_us <= kLeastScaled * (gpu_us - unknown_us)) {
      return Error{
          "the batch cannot scale: hardly any extent of the recorded operations is a multiple of the "
          "recorded one"}
          .found(fmt::format("a recorded batch of {} per rank", recorded_batch))
          .advice("give the recorded one with --recorded-batch, or traces of two batches (--second-trace)");
    }
    out.notes_.push_back(fmt::format(
        "batch {} instead of {} per rank: the work of {:.0f} % of the recorded GPU time grows with it",
        change.batch->wanted, recorded_batch, 100 * (scaled_us + unknown_us) / gpu_us));
  }
  if (change.dtype != DType::unknown) {
    if (retyped == 0) {
      return Error{
          fmt::format("no product of the traces would run in {}: all do already, or no shapes were recorded",
                      to_string(change.dtype))};
    }
    out.notes_.push_back(fmt::format(
        "products in {}: gradients, optimizer, norms and losses keep their types; casts are not added",
        to_string(change.dtype)));
  }
  if (change.data_parallel_ranks > 0) {
    if (joined == 0) {
      return Error{
          "the traces hold no transfer among all of their ranks that more data-parallel ranks could join"}
          .found(fmt::format("{} ranks", all_ranks))
          .advice("record a job of two ranks at least");
    }
    out.notes_.push_back(
        fmt::format("{} data-parallel ranks instead of {}: the recorded ranks represent all, and transfers "
                    "among all of them join that number",
                    change.data_parallel_ranks, all_ranks));
  }
  return out;
}

Status ChangedWork::apply(const RecordedProgram& recorded, StepPricer& prices, std::int64_t gpus_per_node,
                          std::int64_t recorded_gpus_per_node, RecordedPrices& priced) const {
  const Program& program = recorded.program;
  if (dtype_ != DType::unknown && !prices.platform().device.peak(dtype_)) {
    return Error{fmt::format("the platform file of {} states no rate for products in {}",
                             prices.platform().device.name, to_string(dtype_))}
        .advice("name another type, or a platform that has it");
  }
  DeviceTime device{prices.kernels().model(), prices.platform().device};
  const auto nodes = std::max<std::int64_t>(1, gpus_per_node);
  const std::vector<GroupPlacement> places = place_recorded_groups(
      program, recorded_gpus_per_node > 0
                   ? recorded_gpus_per_node
                   : static_cast<std::int64_t>(std::max<std::uint64_t>(1, program.rank_count())));
  const GroupPlacement grown =
      data_parallel_ranks_ > 0 ? whole_nodes(data_parallel_ranks_, nodes) : GroupPlacement{};
  const auto time_of = [&](const Operation& operation) {
    return device.of(operation, prices.kernels().price(operation));
  };
  struct Change {
    double factor = 1;
    EstimateSource source = EstimateSource::assumed;
  };
  const auto change_of = [&](const TaskInfo& task, const TaskWork& now) -> Result<Change> {
    if (const auto* operation = std::get_if<Operation>(&now)) {
      const Operation& before = *program.works.operation(task.work);
      const Estimate from = time_of(before), to = time_of(*operation);
      if (from.time.value() <= 0 || to.time.value() <= 0) return Change{};
      double factor = to.time.value() / from.time.value();
      if (before.dtype == operation->dtype) factor = within_work(factor, before, *operation);
      return Change{factor, weaker(from.source, to.source)};
    }
    const CollectiveWork& before = *program.works.collective(task.work);
    const auto& after = std::get<CollectiveWork>(now);
    if (!before.group.valid() || before.message.value() <= 0) return Change{};
    const GroupPlacement& place = places[before.group.index()];
    if (place.n_ranks < 2) return Change{};
    STEPCAST_ASSIGN(const Estimate from, prices.price(before.op, before.message, place));
    if (!after.group.valid() && grown.n_ranks < 2)
      return Change{0, EstimateSource::analytic};  // nobody to talk to
    STEPCAST_ASSIGN(const Estimate to,
                    prices.price(after.op, after.message, after.group.valid() ? place : grown));
    return Change{to.time.value() / from.time.value(), weaker(from.source, to.source)};
  };
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const Block& block = program.blocks()[b];
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      Change change;
      if (unknown_[b][t]) {
        change.factor = batch_ratio_;
      } else if (!std::holds_alternative<std::monostate>(of_task_[b][t])) {
        STEPCAST_ASSIGN(change, change_of(block.tasks()[t], of_task_[b][t]));
      } else {
        continue;
      }
      const double spread =
          change.factor > 0 ? std::exp(kGrowthBand * std::abs(std::log(change.factor))) : 1.0;
      double& us = priced.costs.duration_us(BlockId{b})[t];
      const double added =
          us * (change.factor - 1) / static_cast<double>(std::max<std::uint64_t>(1, program.rank_count()));
      SourceTimes& of_class = priced.coverage.gpu_us[static_cast<std::size_t>(block.tasks()[t].kernel_class)];
      // What grows rests on models; what shrinks takes from every ground alike.
      if (added >= 0) {
        of_class[static_cast<std::size_t>(change.source)] += added;
      } else {
        const double all = std::accumulate(of_class.begin(), of_class.end(), 0.0);
        for (double& of_source : of_class) of_source *= all > 0 ? std::max(0.0, 1 + added / all) : 1;
      }
      us *= change.factor;
      priced.low.duration_us(BlockId{b})[t] *= change.factor / spread;
      priced.high.duration_us(BlockId{b})[t] *= change.factor * spread;
    }
  }
  for (Costs* costs : {&priced.costs, &priced.low, &priced.high}) costs->rescale_shared_delays(program);
  return Ok{};
}

}  // namespace stepcast
