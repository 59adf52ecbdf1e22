#include "stepcast/retrace/changed_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/cost/device_time.h"
#include "stepcast/operation/shape_changes.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/retrace/detail/recorded_tasks.h"
#include "stepcast/retrace/detail/task_context.h"
#include "stepcast/retrace/other_shapes.h"

namespace stepcast {
namespace {

// Half-width of the band of a model's growth between two sizes on one GPU, as a share of the logarithm of the factor. Assumed.
constexpr double kGrowthBand = 0.15;
// If less of the recorded GPU time scales, dimensions are multiples of the batch by coincidence. Assumed.
constexpr double kLeastScaled = 0.05;
// Smaller copies and forward all-reduces are counters, losses and flags; they never scale.
constexpr std::int64_t kSmallBytes = 4096;

using detail::all_ranks_of;
using detail::context_of;
using detail::TaskContext;

// Scales shapes from batch `from` to batch `to`. Collects the forward GEMMs first: their shapes identify which dimension of a
// backward GEMM is the batch, and which tensors have the size of a weight.
class BatchScaling final : public BatchGrowth {
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

  // Scales the operation. Returns false if it is unchanged.
  bool scale(Operation& operation, const TaskContext& context) const {
    if (context.optimizer) return false;
    return stepcast::grow(operation, *this, context.backward);
  }
  // Scales messages of activations: all-to-all, point-to-point and forward all-reduce, but not gradients.
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

  [[nodiscard]] double ratio() const override {
    return static_cast<double>(to_) / static_cast<double>(from_);
  }
  // Scales a dimension if it is a multiple of the recorded batch; saturates instead of overflowing.
  bool grow(std::int64_t& extent) const override {
    if (!is_multiple(extent)) return false;
    const std::int64_t samples = extent / from_;
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;
    extent = samples > kMost / to_ ? kMost : samples * to_;
    return true;
  }
  bool grow_elements(std::int64_t& elements) const override {
    return !weights_.contains(elements) && grow(elements);
  }
  // Scales the batch dimension of a GEMM: rows in the forward pass. In the backward it is the dimension that matches a known
  // forward GEMM, else one equal to the batch, else the first multiple of the batch.
  bool grow_product(GemmShape& s, Direction direction, bool backward) const override {
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
  // bytes / 4: the elements of an fp32 tensor, to recognise copies of weights.
  bool grow_transfer(TransferShape& s) const override {
    return s.bytes >= kSmallBytes && !weights_.contains(s.bytes / 4) && grow(s.bytes);
  }

 private:
  [[nodiscard]] bool is_multiple(std::int64_t extent) const { return extent >= from_ && extent % from_ == 0; }

  std::int64_t from_, to_;
  // Rows, other dimensions.
  std::set<std::tuple<std::int64_t, std::pair<std::int64_t, std::int64_t>>> forward_;
  std::set<std::int64_t> weights_;  // element counts of weights
};

bool is_half(DType type) { return type == DType::bf16 || type == DType::fp16; }
bool is_single(DType type) { return type == DType::fp32 || type == DType::tf32; }

constexpr double kWidened = 2;  // bytes of fp32 over those of 16 bits

// Doubles the traffic that a shape gives in bytes instead of elements.
void widen_bytes(Operation& operation) {
  if (auto* optimizer = std::get_if<OptimizerShape>(&operation.shape)) {
    optimizer->bytes_read_per_parameter *= static_cast<float>(kWidened);
    optimizer->bytes_written_per_parameter *= static_cast<float>(kWidened);
  }
  if (auto* copy = std::get_if<TransferShape>(&operation.shape))
    copy->bytes = static_cast<std::int64_t>(kWidened * static_cast<double>(copy->bytes));
  if (auto* amount = std::get_if<AmountShape>(&operation.shape)) {
    amount->bytes_read *= kWidened;
    amount->bytes_written *= kWidened;
  }
}

// True for work on matrix units: GEMMs, convolutions and attention.
bool runs_on_units(const Operation& operation) {
  return std::holds_alternative<GemmShape>(operation.shape) ||
         std::holds_alternative<ConvolutionShape>(operation.shape) ||
         std::holds_alternative<AttentionShape>(operation.shape);
}

// True for operations to which tf32 applies: GEMMs and convolutions.
bool takes_tf32(const Operation& operation) {
  return std::holds_alternative<GemmShape>(operation.shape) ||
         std::holds_alternative<ConvolutionShape>(operation.shape);
}

// True for operations with the type of their inputs under automatic mixed precision, next to GEMMs and convolutions.
// Reductions, losses and norms over tokens keep fp32.
bool follows_inputs(const Operation& operation) {
  if (const auto* norm = std::get_if<NormShape>(&operation.shape)) return norm->kind == NormKind::batch_norm;
  return std::holds_alternative<AttentionShape>(operation.shape) ||
         std::holds_alternative<ElementwiseShape>(operation.shape) ||
         std::holds_alternative<MovementShape>(operation.shape);
}

// Casts between 16 bits and fp32 disappear if everything is fp32.
bool is_cast(const Operation& operation) {
  const auto* elements = std::get_if<ElementwiseShape>(&operation.shape);
  return elements != nullptr && elements->function == ElementwiseFunction::cast && is_half(operation.dtype);
}

// An operation of zero time.
Operation nothing() { return {AmountShape{}, DType::fp32}; }

// Changes an operation of a 16-bit training to fp32 or tf32. Only GEMMs and convolutions can use tf32; others become fp32.
// Returns false if the operation is unchanged.
bool widen(Operation& operation, DType to) {
  const DType type = to == DType::tf32 && !takes_tf32(operation) ? DType::fp32 : to;
  if (is_single(operation.dtype) && (!takes_tf32(operation) || operation.dtype == type)) return false;
  if (is_cast(operation)) {
    operation = nothing();
    return true;
  }
  if (is_half(operation.dtype)) widen_bytes(operation);
  if (auto* attention = std::get_if<AttentionShape>(&operation.shape))
    attention->kernel = AttentionKernel::efficient;  // FlashAttention and cuDNN take 16 bits alone
  operation.dtype = type;
  return true;
}

// Changes the element type. Returns false if the operation keeps its type.
bool change_type(Operation& operation, DType to, const TaskContext& context) {
  if (!is_half(operation.dtype) && !is_single(operation.dtype)) return false;
  if (is_single(to)) {
    if (!widen(operation, to)) return false;
  } else {
    const bool follows = follows_inputs(operation) && !context.optimizer;
    if (operation.dtype == to || (!takes_tf32(operation) && !follows)) return false;
    operation.dtype = to;
  }
  if (auto* gemm = std::get_if<GemmShape>(&operation.shape)) gemm->output = DType::unknown;
  return true;
}

// In fp32 trainings, 16-bit messages become fp32 and double in size. Returns false if the message is unchanged.
bool change_type(CollectiveWork& work, DType to) {
  if (!is_half(work.dtype) || !is_single(to)) return false;
  work.dtype = DType::fp32;
  work.message = Bytes{work.message.value() * kWidened};
  return true;
}

// Clamps a time ratio for a change of batch between 1 and the growth of the work (FLOPs or bytes).
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

// The placement of one group of `ranks` ranks that fills node after node.
GroupPlacement whole_nodes(std::int64_t ranks, std::int64_t gpus_per_node) {
  std::vector<std::uint32_t> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0U);
  const RankSpan group{members};
  return place_ranks(group, gpus_per_node, {&group, 1});
}

// True for recommendation models, recognised by operators and kernels of PyTorch and FBGEMM. Rows of their GEMMs are samples.
bool looks_up_bags(const Program& program) {
  for (std::size_t i = 0; i < program.names.size(); ++i) {
    const std::string_view name = program.names.text(NameId{i});
    for (const std::string_view word : {"embedding_bag", "embedding_codegen"})
      if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::optional<std::int64_t> batch_of(const RecordedProgram& recorded) {
  const Program& program = recorded.program;
  std::map<std::int64_t, std::size_t> of_operations, of_products;
  bool has_tokens = false;  // layer norms: the rows of GEMMs are tokens
  for (const Block& block : program.blocks()) {
    for (const TaskInfo& task : block.tasks()) {
      const Operation* operation = program.works.operation(task.work);
      if (operation == nullptr) continue;
      const TaskContext context = context_of(program, task.stack);
      if (context.backward || context.optimizer || operation->direction != Direction::forward) continue;
      if (const auto* s = std::get_if<ConvolutionShape>(&operation->shape)) ++of_operations[s->batch];
      if (const auto* s = std::get_if<AttentionShape>(&operation->shape)) ++of_operations[s->batch];
      if (const auto* s = std::get_if<NormShape>(&operation->shape))
        has_tokens |= s->kind == NormKind::layer_norm || s->kind == NormKind::rms_norm;
      if (const auto* s = std::get_if<GemmShape>(&operation->shape)) {
        if (s->batch == 1 && s->m > 1) ++of_products[s->m];
      }
    }
  }
  if (of_operations.empty() && has_tokens && !looks_up_bags(program)) return std::nullopt;
  const auto& found = of_operations.empty() ? of_products : of_operations;
  if (found.empty()) return std::nullopt;
  return std::max_element(found.begin(), found.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

namespace {

// GPU time of the examined tasks, in us, and the number of changed ones.
struct Tally {
  double gpu_us = 0, scaled_us = 0, unknown_us = 0;
  std::size_t retyped = 0, joined = 0;
};

// The recorded batch: as given, else derived from the shapes, which adds a note.
Result<std::int64_t> recorded_batch_of(const RecordedProgram& recorded, const BatchChange& batch,
                                       std::vector<std::string>& notes) {
  if (batch.recorded != 0) return batch.recorded;
  const std::optional<std::int64_t> found = batch_of(recorded);
  if (!found) {
    return Error{"the batch cannot be changed: no operation of the traces shows the recorded batch"}.advice(
        "give it with --recorded-batch, record with shapes (record_shapes=True), or give traces of two "
        "batches (--second-trace)");
  }
  notes.push_back(
      fmt::format("the recorded batch is {} per rank, according to the shapes of operations. Override it "
                  "with --recorded-batch",
                  *found));
  return *found;
}

// Computes the new work of tasks one by one and keeps the tally.
class WorkChanger {
 public:
  WorkChanger(const RecordedProgram& recorded, const WorkChange& change, std::int64_t recorded_batch)
      : program_(recorded.program), change_(change), all_ranks_(all_ranks_of(recorded)) {
    if (change.batch) batch_.emplace(recorded, recorded_batch, change.batch->wanted);
  }

  // The new work; monostate: as recorded. Sets `unknown` for kernels without an operation, which scale with the batch.
  TaskWork change(const TaskInfo& task, double us, bool& unknown) {
    const TaskContext context = context_of(program_, task.stack);
    tally_.gpu_us += us;
    if (const Operation* operation = program_.works.operation(task.work)) {
      Operation now = *operation;
      const bool grows = batch_ && batch_->scale(now, context);
      const bool other_type = change_.dtype != DType::unknown && change_type(now, change_.dtype, context);
      if (grows) tally_.scaled_us += us;
      tally_.retyped += other_type ? 1 : 0;
      return grows || other_type ? TaskWork{now} : TaskWork{};
    }
    if (const CollectiveWork* transfer = program_.works.collective(task.work)) {
      CollectiveWork now = *transfer;
      const bool grows = batch_ && batch_->scale(now, context);
      if (grows) tally_.scaled_us += us;
      const bool other_type = change_.dtype != DType::unknown && change_type(now, change_.dtype);
      const bool of_all = change_.data_parallel_ranks > 0 && joins_all(*transfer);
      tally_.joined += of_all ? 1 : 0;
      if (of_all) now.group = GroupId{};  // the grown one
      return grows || of_all || other_type ? TaskWork{now} : TaskWork{};
    }
    unknown = batch_ && task.kind == TaskKind::kernel && !context.optimizer;
    if (unknown) tally_.unknown_us += us;
    return {};
  }

  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] std::uint64_t all_ranks() const { return all_ranks_; }

 private:
  // True for collectives among all ranks of the job.
  [[nodiscard]] bool joins_all(const CollectiveWork& transfer) const {
    return transfer.group.valid() && all_ranks_ > 1 &&
           program_.groups()[transfer.group.index()].ranks.size() == all_ranks_;
  }

  const Program& program_;
  const WorkChange& change_;
  std::uint64_t all_ranks_;
  std::optional<BatchScaling> batch_;
  Tally tally_;
};

// Error if the requested change affects nothing or hardly anything; otherwise adds a note about its extent.
Status note_batch(const Tally& tally, std::int64_t wanted, std::int64_t recorded,
                  std::vector<std::string>& notes) {
  if (tally.scaled_us <= kLeastScaled * (tally.gpu_us - tally.unknown_us)) {
    return Error{
        "the batch cannot be changed: hardly any dimension of the recorded operations is a multiple of the "
        "recorded batch"}
        .found(fmt::format("a recorded batch of {} per rank", recorded))
        .advice("give the recorded one with --recorded-batch, or traces of two batches (--second-trace)");
  }
  notes.push_back(fmt::format(
      "batch {} instead of {} per rank: the work of {:.0f} % of the recorded GPU time grows with it", wanted,
      recorded, 100 * (tally.scaled_us + tally.unknown_us) / tally.gpu_us));
  return Ok{};
}

Status note_type(const Tally& tally, DType type, std::vector<std::string>& notes) {
  if (tally.retyped == 0) {
    return Error{
        fmt::format("no GEMM of the traces would run in {}: all do already, or no shapes were recorded",
                    to_string(type))};
  }
  notes.push_back(
      is_single(type)
          ? fmt::format("GEMMs in {}, everything else of 16 bits in fp32, without the casts between them",
                        to_string(type))
          : fmt::format("GEMMs, attention, batch norm and elementwise work in {}: gradients, optimizer, "
                        "other norms and "
                        "losses keep their types; casts are not added",
                        to_string(type)));
  return Ok{};
}

Status note_ranks(const Tally& tally, std::int64_t wanted, std::uint64_t all_ranks,
                  std::vector<std::string>& notes) {
  if (tally.joined == 0) {
    return Error{
        "the traces have no collective among all of their ranks that more data-parallel ranks could join"}
        .found(fmt::format("{} ranks", all_ranks))
        .advice("record a job with at least two ranks");
  }
  notes.push_back(
      fmt::format("{} data-parallel ranks instead of {}: the recorded ranks represent all, and their "
                  "collectives have that number of ranks",
                  wanted, all_ranks));
  return Ok{};
}

std::string shapes_note(const OtherShapes& shapes, const RecordedProgram& step,
                        const RecordedProgram& other) {
  const auto number = [](const RecordedProgram& of) {
    return of.facts.empty() ? -1 : of.facts.front().step_number;
  };
  if (shapes.changed_us <= 0 && shapes.unpaired_us <= 0 && shapes.extra == 0)
    return fmt::format("steps {} and {} have the same shapes", number(step), number(other));
  const double gpu_us = std::max(shapes.gpu_us, 1e-9);
  std::string note =
      fmt::format("step {} with the shapes of step {}: {:.0f} % of its GPU time is work of another shape",
                  number(step), number(other), 100 * shapes.changed_us / gpu_us);
  if (shapes.unpaired_us > 0 || shapes.extra > 0)
    note += fmt::format("; {:.1f} % has no counterpart there and is kept, {} GPU tasks there have none here",
                        100 * shapes.unpaired_us / gpu_us, shapes.extra);
  return note;
}

}  // namespace

Result<ChangedWork> changed_work(const RecordedProgram& recorded, const WorkChange& change) {
  ChangedWork out;
  if (change.shapes_of != nullptr) {
    STEPCAST_ASSIGN(OtherShapes other, other_shapes(recorded, *change.shapes_of));
    for (const std::vector<TaskWork>& of_block : other.of_task)
      out.unknown_.emplace_back(of_block.size(), false);
    out.notes_.push_back(shapes_note(other, recorded, *change.shapes_of));
    out.of_task_ = std::move(other.of_task);
    out.same_kernel_ = std::move(other.same_kernel);
    return out;
  }
  std::int64_t recorded_batch = 0;
  if (change.batch) {
    STEPCAST_ASSIGN(recorded_batch, recorded_batch_of(recorded, *change.batch, out.notes_));
    out.batch_ratio_ = static_cast<double>(change.batch->wanted) / static_cast<double>(recorded_batch);
  }
  out.data_parallel_ranks_ = change.data_parallel_ranks;
  out.dtype_ = change.dtype;
  WorkChanger changer{recorded, change, recorded_batch};
  for (const Block& block : recorded.program.blocks()) {
    std::vector<TaskWork>& of_task = out.of_task_.emplace_back(block.task_count());
    std::vector<bool>& unknown = out.unknown_.emplace_back(block.task_count(), false);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (!detail::is_gpu_work(block.tasks()[t].kind)) continue;
      bool is_unknown = false;
      of_task[t] = changer.change(block.tasks()[t], block.duration_us()[t], is_unknown);
      unknown[t] = is_unknown;
    }
  }
  const Tally& tally = changer.tally();
  if (change.batch) STEPCAST_TRY(note_batch(tally, change.batch->wanted, recorded_batch, out.notes_));
  if (change.dtype != DType::unknown) STEPCAST_TRY(note_type(tally, change.dtype, out.notes_));
  if (change.data_parallel_ranks > 0)
    STEPCAST_TRY(note_ranks(tally, change.data_parallel_ranks, changer.all_ranks(), out.notes_));
  return out;
}

namespace {

// The change of the time of a task and its source.
struct TimeChange {
  double factor = 1;
  EstimateSource source = EstimateSource::assumed;
  // Band edges over the new time; 0: use kGrowthBand.
  double low = 0, high = 0;
};

// Time of a kernel with next to no work, and least time of a kernel that fills the GPU. Assumed.
constexpr double kShortestUs = 5, kFillsGpuUs = 50;

// The same kernel with other work: its time above kShortestUs grows in proportion. Empty for kernels too short to fill the GPU.
std::optional<TimeChange> in_proportion(double us, const TaskWork& before, const TaskWork& after) {
  if (!std::holds_alternative<Operation>(before) || us < kFillsGpuUs) return std::nullopt;
  const double ratio = work_ratio(before, after);
  if (ratio <= 0) return std::nullopt;
  const double factor = (kShortestUs + (us - kShortestUs) * ratio) / us;
  if (us * factor < kFillsGpuUs) return std::nullopt;
  return TimeChange{.factor = factor, .source = EstimateSource::fitted};
}

// Predicts time ratios of new to recorded work with the models of one GPU and its links.
class GrowthModel {
 public:
  GrowthModel(const Program& program, StepPricer& prices, std::vector<GroupPlacement> places,
              GroupPlacement grown)
      : program_(program),
        prices_(prices),
        device_(prices.kernels().model(), prices.platform().device),
        places_(std::move(places)),
        grown_(grown) {}

  // `us`: the time of the task before the change.
  Result<TimeChange> change_of(const TaskInfo& task, const TaskWork& now, double us) {
    if (const auto* operation = std::get_if<Operation>(&now)) {
      const Operation& before = *program_.works.operation(task.work);
      if (before.dtype != operation->dtype && us > 0 && runs_on_units(*operation))
        return anew(*operation, task.work_times, us);
      return of_operation(before, *operation);
    }
    return of_transfer(*program_.works.collective(task.work), std::get<CollectiveWork>(now));
  }

 private:
  // Time by the model. Convolutions in fp32 do not use TF32 units unless their type is tf32.
  [[nodiscard]] Estimate time_of(const Operation& operation) {
    SeenKernels kernels;
    if (std::holds_alternative<ConvolutionShape>(operation.shape)) {
      const bool units = prices_.kernels().model().analytic().figures().has_matrix_units(operation.dtype);
      kernels = usual_kernels(operation, prices_.platform().device.vendor == "AMD", units);
      kernels.times = 1;
    }
    return device_.of(operation, prices_.kernels().price(operation), kernels);
  }
  // Attention with grouped heads in fp32 has no fused kernel in PyTorch ("No available kernel"). It is priced as two GEMMs, a
  // softmax and, in the forward pass, an added mask.
  [[nodiscard]] Estimate time_of_written_out(const AttentionShape& s, DType dtype, Direction direction) {
    const std::int64_t heads = s.batch * s.heads, rows = heads * s.query_length;
    const std::int64_t values = s.value_head_dim > 0 ? s.value_head_dim : s.head_dim;
    const Direction both = direction == Direction::forward ? Direction::forward : Direction::backward;
    Estimate sum =
        time_of(gemm({.batch = heads, .m = s.query_length, .n = s.key_length, .k = s.head_dim}, dtype, both));
    const auto add = [&](const Operation& operation) {
      const Estimate one = time_of(operation);
      sum = {Microseconds{sum.time.value() + one.time.value()},
             Microseconds{sum.p10.value() + one.p10.value()}, Microseconds{sum.p90.value() + one.p90.value()},
             weaker(sum.source, one.source)};
    };
    add({SoftmaxShape{SoftmaxKind::plain, rows, s.key_length}, dtype, both});
    add(gemm({.batch = heads, .m = s.query_length, .n = values, .k = s.key_length}, dtype, both));
    if (both == Direction::forward)
      add(elementwise({.function = ElementwiseFunction::add, .elements = rows * s.key_length, .reads = 1},
                      dtype));
    return sum;
  }
  // Another type of a GEMM runs another kernel on other units. The model error of one says nothing about the other, so the
  // model time replaces the recorded one.
  TimeChange anew(const Operation& operation, double times, double us) {
    const auto* attention = std::get_if<AttentionShape>(&operation.shape);
    const bool written_out = attention != nullptr && attention->key_value_heads > 0 &&
                             attention->key_value_heads < attention->heads && is_single(operation.dtype);
    const Estimate time = written_out ? time_of_written_out(*attention, operation.dtype, operation.direction)
                                      : time_of(operation);
    if (time.time.value() <= 0) return {};
    return {.factor = time.time.value() * times / us,
            .source = time.source,
            .low = time.p10.value() / time.time.value(),
            .high = time.p90.value() / time.time.value()};
  }
  // Ratio of the model times. With unchanged type the ratio is limited by the growth of the work.
  TimeChange of_operation(const Operation& before, const Operation& after) {
    if (after == nothing()) return {.factor = 0, .source = EstimateSource::analytic};
    const Estimate from = time_of(before), to = time_of(after);
    if (from.time.value() <= 0 || to.time.value() <= 0) return {};
    double factor = to.time.value() / from.time.value();
    if (before.dtype == after.dtype) factor = within_work(factor, before, after);
    return {.factor = factor, .source = weaker(from.source, to.source)};
  }
  // Ratio of the model times of the links. Unknown groups or messages keep their time.
  Result<TimeChange> of_transfer(const CollectiveWork& before, const CollectiveWork& after) {
    if (!before.group.valid() || before.message.value() <= 0) return TimeChange{};
    const GroupPlacement& place = places_[before.group.index()];
    if (place.n_ranks < 2) return TimeChange{};
    STEPCAST_ASSIGN(const Estimate from, prices_.price(before.op, before.message, place));
    if (!after.group.valid() && grown_.n_ranks < 2)
      // A group of one rank communicates nothing.
      return TimeChange{.factor = 0, .source = EstimateSource::analytic};
    STEPCAST_ASSIGN(const Estimate to,
                    prices_.price(after.op, after.message, after.group.valid() ? place : grown_));
    return TimeChange{.factor = to.time.value() / from.time.value(),
                      .source = weaker(from.source, to.source)};
  }

  const Program& program_;
  StepPricer& prices_;
  DeviceTime device_;
  std::vector<GroupPlacement> places_;  // [GroupId] of the recorded job
  GroupPlacement grown_;                // the requested data-parallel ranks
};

// Applies a change to one task, in all three Costs and in the coverage by source.
void change_time(const TimeChange& change, KernelClass kernel_class, BlockId b, std::uint32_t t,
                 std::uint64_t rank_count, RecordedPrices& priced) {
  const double spread = change.factor > 0 ? std::exp(kGrowthBand * std::abs(std::log(change.factor))) : 1.0;
  double& us = priced.costs.duration_us(b)[t];
  const double added = us * (change.factor - 1) / static_cast<double>(std::max<std::uint64_t>(1, rank_count));
  SourceTimes& of_class = priced.coverage.gpu_us[static_cast<std::size_t>(kernel_class)];
  // Added time comes from the source of the change. Removed time reduces all sources in proportion.
  if (added >= 0) {
    of_class[static_cast<std::size_t>(change.source)] += added;
  } else {
    const double all = std::accumulate(of_class.begin(), of_class.end(), 0.0);
    for (double& of_source : of_class) of_source *= all > 0 ? std::max(0.0, 1 + added / all) : 1;
  }
  us *= change.factor;
  if (change.low > 0) {
    priced.low.duration_us(b)[t] = us * change.low;
    priced.high.duration_us(b)[t] = us * change.high;
    return;
  }
  priced.low.duration_us(b)[t] *= change.factor / spread;
  priced.high.duration_us(b)[t] *= change.factor * spread;
}

}  // namespace

Status ChangedWork::apply(const RecordedProgram& recorded, StepPricer& prices, std::int64_t gpus_per_node,
                          std::int64_t recorded_gpus_per_node, RecordedPrices& priced) const {
  const Program& program = recorded.program;
  if (dtype_ != DType::unknown && !prices.platform().device.peak(dtype_)) {
    return Error{fmt::format("the platform file of {} has no rate for GEMMs in {}",
                             prices.platform().device.name, to_string(dtype_))}
        .advice("choose another type, or a platform that has it");
  }
  const auto all_ranks = static_cast<std::int64_t>(std::max<std::uint64_t>(1, program.rank_count()));
  const auto nodes = std::max<std::int64_t>(1, gpus_per_node);
  GrowthModel models{
      program, prices,
      place_recorded_groups(program, recorded_gpus_per_node > 0 ? recorded_gpus_per_node : all_ranks),
      data_parallel_ranks_ > 0 ? whole_nodes(data_parallel_ranks_, nodes) : GroupPlacement{}};
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const Block& block = program.blocks()[b];
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      TimeChange change{.factor = batch_ratio_};
      if (!unknown_[b][t]) {
        if (std::holds_alternative<std::monostate>(of_task_[b][t])) continue;
        std::optional<TimeChange> same;
        if (!same_kernel_.empty() && same_kernel_[b][t])
          same =
              in_proportion(block.duration_us()[t], program.works.of(block.tasks()[t].work), of_task_[b][t]);
        if (same) {
          change = *same;
        } else {
          STEPCAST_ASSIGN(change, models.change_of(block.tasks()[t], of_task_[b][t],
                                                   priced.costs.duration_us(BlockId{b})[t]));
        }
      }
      change_time(change, block.tasks()[t].kernel_class, BlockId{b}, t, program.rank_count(), priced);
    }
  }
  for (Costs* costs : {&priced.costs, &priced.low, &priced.high}) costs->rescale_shared_delays(program);
  return Ok{};
}

}  // namespace stepcast
