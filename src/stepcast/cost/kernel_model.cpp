#include "stepcast/cost/kernel_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "stepcast/cost/detail/kernel_records.h"
#include "stepcast/cost/expert_exchange.h"
#include "stepcast/cost/expert_kernels.h"
#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/cost/generic_kernel.h"
#include "stepcast/cost/learned_lookup.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/cost/related_systems.h"
#include "stepcast/cost/step_factors.h"
#include "stepcast/cost/sustained_clock.h"
#include "stepcast/platform/changed_figures.h"
#include "stepcast/platform/host_spread_kind.h"

// Choice of the model for an operation. A record of exactly the operation answers first. Missing records are
// derived from related ones (other dtype, forward for backward, other GEMM layouts) by measured or analytic
// ratios. Every derivation widens the band.

namespace stepcast {
namespace {

constexpr std::size_t kNoRecord = detail::KernelRecords::kNone;

// Time of the gradients of a GEMM relative to the forward kernel in the layout of the gradient: medians over
// the 61 shapes of simumax_a100_pcie_efficiency.csv, efficiency of TN over NN (0.738 / 0.739), and over NT
// with accumulation into fp32 (0.738 / 0.704).
constexpr double kInputGradientFactor = 1.0;
constexpr double kWeightGradientFactor = 1.05;

// Widening of the band, each side, in ln, of answers that are derived from another record: assumed.
constexpr double kOtherDType = 0.05;    // fp16 for bf16
constexpr double kFromForward = 0.08;   // gradients, or one GEMM layout, from another one
constexpr double kFromAnalytic = 0.15;  // scaled by a ratio of the analytic model

// Work below the smallest measured work, by its distance in ln: from half of that work on, the answer is
// blended into the analytic model; at an eighth it is fully analytic. A quarter of the correction is added
// to the band. Assumed.
constexpr double kHandOverFrom = 0.7, kHandOverTo = 2.1, kHandOverWidening = 0.25;

// A record floor longer than this many kernel floors is a host gap of the benchmark: optimizers of the A100
// and GH200 files have 2,200 and 1,400, all other records at most 170 (convolutions of the P4).
constexpr double kKernelsOfHostGap = 500;

// Share of the correction from a sibling's time to this device's that widens the band, each side: assumed, as
// above.
constexpr double kSiblingWidening = 0.25;

// Indices of the extents of a GEMM among the features of the set "matrix_1".
constexpr std::size_t kLogM = 0, kLogN = 1, kLogK = 2;

// The 16-bit type with the same units and sizes; `unknown` for all other types.
DType alike(DType dtype) {
  if (dtype == DType::fp16) return DType::bf16;
  if (dtype == DType::bf16) return DType::fp16;
  return DType::unknown;
}

Operation with(const Operation& operation, DType dtype) {
  Operation out = operation;
  out.dtype = dtype;
  return out;
}
Operation with(const Operation& operation, Direction direction) {
  Operation out = operation;
  out.direction = direction;
  return out;
}

// An estimate under construction, with the band in ln relative to `us`.
struct Answer {
  double us = 0;
  double log_low = 0, log_high = 0;
  EstimateSource source = EstimateSource::fitted;
  std::size_t record = kNoRecord;
  bool extrapolated = false;
  bool of_another_value = false;  // as in FittedTime
  bool layout_measured = false;   // as in ExplainedEstimate
  bool sustained = false;         // as in ExplainedEstimate

  // Time multiplied by `factor`, band widened by `wider` on each side.
  [[nodiscard]] Answer scaled(double factor, double wider) const {
    Answer out = *this;
    out.us *= factor;
    out.log_low -= wider;
    out.log_high += wider;
    return out;
  }
};

// Two times one after the other; their errors are assumed fully correlated.
Answer sum(const Answer& a, const Answer& b) {
  Answer out = a;
  out.us = a.us + b.us;
  out.log_low = (a.us * a.log_low + b.us * b.log_low) / out.us;
  out.log_high = (a.us * a.log_high + b.us * b.log_high) / out.us;
  out.source = weaker(a.source, b.source);
  out.extrapolated = a.extrapolated || b.extrapolated;
  out.of_another_value = a.of_another_value || b.of_another_value;
  out.layout_measured = a.layout_measured && b.layout_measured;
  out.sustained = a.sustained && b.sustained;
  return out;
}

// Thread-safe cache of answers, since layouts repeat the same operations. Sharded by hash; a full shard is
// cleared.
class Memo {
 public:
  [[nodiscard]] std::optional<ExplainedEstimate> find(const Operation& operation, std::size_t hash) {
    Shard& shard = shards_[hash % kShards];
    const std::lock_guard lock{shard.mutex};
    const auto found = shard.answers.find(operation);
    if (found == shard.answers.end()) return std::nullopt;
    return found->second;
  }
  void store(const Operation& operation, std::size_t hash, const ExplainedEstimate& estimate) {
    Shard& shard = shards_[hash % kShards];
    const std::lock_guard lock{shard.mutex};
    if (shard.answers.size() >= kMostPerShard) shard.answers.clear();
    shard.answers.emplace(operation, estimate);
  }

 private:
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kMostPerShard = 8192;
  struct Hash {
    std::size_t operator()(const Operation& operation) const { return hash_of(operation); }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Operation, ExplainedEstimate, Hash> answers;
  };
  std::array<Shard, kShards> shards_;
};

}  // namespace

struct KernelModel::Impl {
  explicit Impl(const Device& device) : analytic{device}, generic{device}, fitted{analytic.device()} {}

  AnalyticModel analytic;
  GenericKernels generic;
  detail::KernelRecords fitted;
  std::vector<std::string> skipped;  // problems that are known before any record is used
  Memo memo;
  // The device as it was measured, where a platform file changed its figures; null elsewhere.
  std::unique_ptr<Impl> as_measured;
  std::vector<bool> is_changed;  // [record] measured with other figures

  void add(const ModelRecord& record);
  // Whether the record was fitted on operations that differ from this one only in sizes.
  [[nodiscard]] bool covers(std::size_t record, const Operation& operation) const;

  [[nodiscard]] Answer answer(const Operation& operation) const;
  // From records and figures alone, without correction for changed figures.
  [[nodiscard]] Answer plain_answer(const Operation& operation) const;
  // Each of these returns none where the records that it needs are missing. From the record of the operation
  // itself:
  [[nodiscard]] std::optional<Answer> from_record(const Operation& operation) const;
  // From the other 16-bit type:
  [[nodiscard]] std::optional<Answer> from_other_dtype(const Operation& operation) const;
  // Backward directions, from forward times:
  [[nodiscard]] std::optional<Answer> from_forward(const Operation& operation) const;
  // A GEMM gradient, from forward GEMMs in the layouts of the gradients:
  [[nodiscard]] std::optional<Answer> gradient_of_product(const Operation& operation) const;
  // A single GEMM in an unmeasured layout, from batched GEMMs in that layout:
  [[nodiscard]] std::optional<Answer> from_batched_product(const Operation& operation) const;
  // A forward GEMM in an unmeasured layout, from measured gradients:
  [[nodiscard]] std::optional<Answer> from_measured_gradient(const Operation& operation) const;
  [[nodiscard]] Answer from_figures(const Operation& operation) const;
  // A record in this dtype or the other 16-bit one.
  [[nodiscard]] std::optional<Answer> measured(const Operation& operation) const {
    if (auto a = from_record(operation)) return a;
    return from_other_dtype(operation);
  }

  [[nodiscard]] Answer to_answer(std::size_t record, const FittedTime& time,
                                 const Operation& operation) const;
  // Share of the analytic model in an answer: 0 within the measured work, 1 far below it.
  [[nodiscard]] double share_of_analytic(std::size_t record, const FittedTime& time) const;
  // The final estimate: at least the lower bound, band capped at a factor of e^5.
  [[nodiscard]] Estimate to_estimate(const Operation& operation, const Answer& answer) const {
    const double bound = analytic.lower_bound(operation).value();
    const double time = std::max(answer.us, bound);
    const double low = std::clamp(time * std::exp(answer.log_low), std::min(bound, time), time);
    const double high = std::max(time * std::exp(std::min(answer.log_high, 5.0)), time);
    return {Microseconds{time}, Microseconds{low}, Microseconds{high}, answer.source};
  }
};

void KernelModel::Impl::add(const ModelRecord& record) {
  // Records of these kinds are read elsewhere.
  for (const std::string_view other :
       {kStepFactorsKind, kSustainedClockKind, kHostLaunchesKind, kHostSpreadKind,
        RelatedSystems::kRecordKind, ExpertKernels::kRecordKind, ExpertExchange::kRecordKind,
        LearnedLookup::kRecordKind, kKernelSiblingKind, kNodePowerKind}) {
    if (record.kind == other) return;
  }
  Status added = record.kind == kGenericRecordKind ? generic.add(record)
                 : record.kind == kKernelRecordKind
                     ? fitted.add(record)
                     : Status{Error{fmt::format("kind `{}` is not known", record.kind)}};
  is_changed.resize(fitted.size(), !record.measured_with.empty());
  if (!added) skipped.push_back(fmt::format("model {}: {}", record.name, added.error().message()));
}

bool KernelModel::Impl::covers(std::size_t record, const Operation& operation) const {
  const FittedKernel& kernel = fitted.kernel(record);
  if (kernel_feature_set_of(operation) != kernel.features) return false;
  const auto* attention = std::get_if<AttentionShape>(&operation.shape);
  if (attention == nullptr || attention->kernel == AttentionKernel::any || kernel.attention_kernels.empty())
    return true;
  return std::ranges::find(kernel.attention_kernels, attention->kernel) != kernel.attention_kernels.end();
}

double KernelModel::Impl::share_of_analytic(std::size_t record, const FittedTime& time) const {
  // The floor of a record is the launch of its benchmark, including host gaps. Far below the measured work
  // only the floor remains, and the figures of the device are more accurate. If the floor is a host gap, they
  // are more accurate for everything unmeasured, since a gap has the same length for other amounts or kinds
  // of work.
  const double kernel_floor_us = analytic.device().kernel_floor.value_or(Microseconds{0}).value();
  const bool host_gap =
      kernel_floor_us > 0 && fitted.kernel(record).reference.floor_us > kKernelsOfHostGap * kernel_floor_us;
  if (host_gap && (time.of_another_value || (time.distance > 0 && time.below > 0))) return 1;
  return std::clamp((time.below - kHandOverFrom) / (kHandOverTo - kHandOverFrom), 0.0, 1.0);
}

Answer KernelModel::Impl::to_answer(std::size_t record, const FittedTime& time,
                                    const Operation& operation) const {
  const double of_sibling = fitted.log_of_sibling(record, operation, std::exp(time.log_us));
  const double wider = fitted.widening(record) + kSiblingWidening * std::abs(of_sibling);
  Answer answer{std::exp(time.log_us + of_sibling),
                time.log_low - wider,
                time.log_high + wider,
                EstimateSource::fitted,
                record,
                time.distance > 0};
  answer.sustained = fitted.kernel(record).sustained;
  const auto* product = std::get_if<GemmShape>(&operation.shape);
  answer.layout_measured = product != nullptr && product->layout != GemmLayout::any &&
                           !time.of_another_value && !fitted.kernel(record).measured_values.values().empty();
  if (time.of_another_value) {
    answer = answer.scaled(1, kFromForward);
    answer.of_another_value = true;
  }
  const double share = share_of_analytic(record, time);
  if (share <= 0) return answer;
  const double shift = share * std::log(std::max(analytic.time(operation).value(), 1e-9) / answer.us);
  answer.us *= std::exp(shift);
  answer.log_low -= kHandOverWidening * std::abs(shift);
  answer.log_high += kHandOverWidening * std::abs(shift);
  if (share > 0.5) answer.source = EstimateSource::analytic;
  return answer;
}

std::optional<Answer> KernelModel::Impl::from_record(const Operation& operation) const {
  const std::size_t record = fitted.find(operation);
  if (record == kNoRecord || kernel_feature_set_of(operation) != fitted.kernel(record).features)
    return std::nullopt;
  FittedTime time;
  const Operation* pointer = &operation;
  fitted.kernel(record).estimate({&pointer, 1}, {&time, 1});
  if (time.of_another_value) {
    if (auto gradient = from_measured_gradient(operation)) return gradient;
    if (auto batched = from_batched_product(operation)) return batched;
  }
  const Answer answer = to_answer(record, time, operation);
  if (covers(record, operation)) return answer;
  // Another attention kernel than the measured ones: scaled by the ratio of the analytic model.
  Operation measured_one = operation;
  std::get<AttentionShape>(measured_one.shape).kernel = fitted.kernel(record).attention_kernels.front();
  const double factor = analytic.time(operation) / analytic.time(measured_one);
  return answer.scaled(factor, kFromAnalytic);
}

// A forward GEMM in the layout of a gradient, with only gradients measured in it: priced as that gradient.
// The inverse of gradient_of_product().
std::optional<Answer> KernelModel::Impl::from_measured_gradient(const Operation& operation) const {
  const auto* product = std::get_if<GemmShape>(&operation.shape);
  if (product == nullptr || product->batch != 1 || operation.direction != Direction::forward)
    return std::nullopt;
  const bool of_input = product->layout == GemmLayout::nn;
  if (!of_input && product->layout != GemmLayout::nt) return std::nullopt;
  GemmShape layer{.m = product->m, .n = product->k, .k = product->n};
  if (!of_input) layer = {.m = product->k, .n = product->m, .k = product->n};
  const Operation gradient{layer, operation.dtype,
                           of_input ? Direction::input_gradient : Direction::weight_gradient};
  if (fitted.find(gradient) == kNoRecord) return std::nullopt;
  auto answer = from_record(gradient);
  if (answer) answer->layout_measured = true;
  return answer;
}

// A GEMM in a layout that its record did not measure, from batched GEMMs in that layout: split into as many
// measured sizes as make up its extents. (The record for single GEMMs would predict up to the peak for sizes
// far beyond the measured ones.) Weight gradients (nt) use the layout of input gradients (nn): both read an
// operand along its rows, and on P4 and P100 large GEMMs that do not (tn) take up to three times as long.
// Only in fp32: the layout does not matter on matrix units (kInputGradientFactor).
std::optional<Answer> KernelModel::Impl::from_batched_product(const Operation& operation) const {
  const auto* product = std::get_if<GemmShape>(&operation.shape);
  if (product == nullptr || product->batch != 1 || operation.dtype != DType::fp32 ||
      operation.direction != Direction::forward ||
      (product->layout != GemmLayout::nn && product->layout != GemmLayout::nt))
    return std::nullopt;
  const std::size_t record = fitted.find("batched_gemm", operation.dtype, Direction::forward);
  if (record == kNoRecord || fitted.kernel(record).measured_values.values().empty()) return std::nullopt;
  const FittedKernel& kernel = fitted.kernel(record);
  GemmShape parts{.batch = 1, .m = product->m, .n = product->n, .k = product->k, .layout = GemmLayout::nn};
  const auto split = [&](std::int64_t& extent, std::size_t feature, std::int64_t least) {
    const double most = std::max(std::exp(static_cast<double>(kernel.high[feature])), 1.0);
    const auto needed = static_cast<std::int64_t>(std::ceil(static_cast<double>(extent) / most));
    const std::int64_t n = std::clamp<std::int64_t>(needed, least, std::max<std::int64_t>(extent, 1));
    extent = (extent + n - 1) / n;
    parts.batch *= n;
  };
  split(parts.n, kLogN, 1);
  split(parts.k, kLogK, 1);
  split(parts.m, kLogM, parts.batch == 1 ? 2 : 1);  // a batch has at least two GEMMs
  const Operation batch{parts, operation.dtype, Direction::forward};
  FittedTime time;
  const Operation* pointer = &batch;
  kernel.estimate({&pointer, 1}, {&time, 1});
  if (time.of_another_value) return std::nullopt;
  Answer answer = to_answer(record, time, batch).scaled(1, kFromForward);
  answer.of_another_value = true;
  answer.layout_measured = product->layout == GemmLayout::nn;
  return answer;
}

std::optional<Answer> KernelModel::Impl::from_other_dtype(const Operation& operation) const {
  const DType other = alike(operation.dtype);
  if (other == DType::unknown) return std::nullopt;
  const auto answer = from_record(with(operation, other));
  if (!answer) return std::nullopt;
  return answer->scaled(1, kOtherDType);
}

std::optional<Answer> KernelModel::Impl::gradient_of_product(const Operation& operation) const {
  const auto& s = std::get<GemmShape>(operation.shape);
  const auto forward_of = [&](std::int64_t m, std::int64_t n, std::int64_t k, GemmLayout layout,
                              double factor) -> std::optional<Answer> {
    const GemmShape shape{.batch = s.batch, .m = m, .n = n, .k = k, .layout = layout};
    const auto answer = measured({shape, operation.dtype, Direction::forward});
    if (!answer) return std::nullopt;
    // The layout itself was measured; derived answers already have a wider band.
    if (answer->layout_measured) return answer;
    return answer->scaled(factor, answer->of_another_value ? 0 : kFromForward);
  };
  // dA[m, k] = dC[m, n] B^T[n, k]; dB[k, n] = A^T[k, m] dC[m, n], written as its transpose. Batched GEMMs do
  // not accumulate: both gradients are like the forward.
  const bool batched = s.batch > 1;
  const auto input =
      forward_of(s.m, s.k, s.n, batched ? GemmLayout::any : GemmLayout::nn, kInputGradientFactor);
  const auto weight = forward_of(s.n, s.k, s.m, batched ? GemmLayout::any : GemmLayout::nt,
                                 batched ? 1 : kWeightGradientFactor);
  if (!input || !weight) return std::nullopt;
  if (operation.direction == Direction::backward) {
    Answer both = sum(*input, *weight);
    if (s.bias) {
      const Operation reduction{ReductionShape{.rows = s.n, .cols = s.m}, operation.dtype,
                                Direction::forward};
      both = sum(both, from_figures(reduction));
    }
    return both;
  }
  const Answer& wanted = operation.direction == Direction::input_gradient ? *input : *weight;
  // Where backward was measured, its total is more accurate: split in proportion.
  const auto backward = measured(with(operation, Direction::backward));
  if (!backward) return wanted;
  Answer part = *backward;
  part.us *= wanted.us / (input->us + weight->us);
  part.log_low = std::min(part.log_low, wanted.log_low);
  part.log_high = std::max(part.log_high, wanted.log_high);
  return part;
}

std::optional<Answer> KernelModel::Impl::from_forward(const Operation& operation) const {
  if (operation.direction == Direction::forward) return std::nullopt;
  if (std::holds_alternative<GemmShape>(operation.shape)) return gradient_of_product(operation);
  const Operation forward_operation = with(operation, Direction::forward);
  auto forward = from_record(forward_operation);
  // Ratio of backward to forward: from the other dtype if both directions were measured there.
  const DType other = alike(operation.dtype);
  if (other != DType::unknown && forward) {
    const auto other_backward = from_record(with(operation, other));
    const auto other_forward = from_record(with(forward_operation, other));
    if (other_backward && other_forward)
      return forward->scaled(other_backward->us / other_forward->us, kFromForward);
  }
  if (!forward) forward = from_other_dtype(forward_operation);
  if (!forward) return std::nullopt;
  return forward->scaled(analytic.time(operation) / analytic.time(forward_operation), kFromAnalytic);
}

Answer KernelModel::Impl::from_figures(const Operation& operation) const {
  std::optional<Estimate> known = generic.estimate(operation, analytic);
  if (!known) known = analytic.estimate(operation);
  const Estimate& e = *known;
  const double us = std::max(e.time.value(), 1e-9);
  return {us,
          std::log(std::max(e.p10.value(), 1e-12) / us),
          std::log(std::max(e.p90.value(), us) / us),
          e.source,
          kNoRecord,
          false};
}

// With changed figures, a measured time is scaled by the ratio of the analytic model between the new and the
// old figures.
Answer KernelModel::Impl::answer(const Operation& operation) const {
  if (as_measured == nullptr) return plain_answer(operation);
  const Answer then = as_measured->plain_answer(operation);
  if (then.record == kNoRecord || !is_changed[then.record]) return plain_answer(operation);
  return then.scaled(analytic.time(operation) / as_measured->analytic.time(operation), 0);
}

Answer KernelModel::Impl::plain_answer(const Operation& operation) const {
  if (fitted.empty()) return from_figures(operation);
  // The requested attention kernel in the other 16-bit type is closer than another kernel in this type.
  const auto* wanted = std::get_if<AttentionShape>(&operation.shape);
  if (wanted != nullptr && wanted->kernel != AttentionKernel::any) {
    const std::size_t own = fitted.find(operation);
    const DType other = alike(operation.dtype);
    if (other != DType::unknown && (own == kNoRecord || !covers(own, operation))) {
      const Operation alike_operation = with(operation, other);
      const std::size_t record = fitted.find(alike_operation);
      if (record != kNoRecord && covers(record, alike_operation)) {
        if (auto a = from_other_dtype(operation)) return *a;
      }
    }
  }
  if (auto a = from_record(operation)) return *a;
  // Attention kernels of two dtypes are often of two generations, so the forward of this dtype has priority
  // over the other dtype.
  const bool attention = std::holds_alternative<AttentionShape>(operation.shape);
  if (attention) {
    if (fitted.find(with(operation, Direction::forward)) != kNoRecord) {
      if (auto a = from_forward(operation)) return *a;
    }
  }
  if (auto a = from_other_dtype(operation)) return *a;
  if (auto a = from_forward(operation)) return *a;
  return from_figures(operation);
}

KernelModel::KernelModel(const Platform& platform) : KernelModel(platform.device, platform.models) {}

KernelModel::KernelModel(const Device& device, std::span<const ModelRecord> records)
    : impl_(std::make_unique<Impl>(device)) {
  NamedNumbers before;
  for (const ModelRecord& record : records)
    before.insert(record.measured_with.begin(), record.measured_with.end());
  if (!before.empty()) impl_->as_measured = std::make_unique<Impl>(with_figures(device, before));
  const auto sibling = std::ranges::find(records, kKernelSiblingKind, &ModelRecord::kind);
  if (sibling != records.end()) {
    if (auto read = KernelSibling::read(sibling->parameters)) {
      if (impl_->as_measured) impl_->as_measured->fitted.set_sibling(*read);
      impl_->fitted.set_sibling(*std::move(read));
    } else {
      impl_->skipped.push_back(fmt::format("model {}: {}", sibling->name, read.error().message()));
    }
  }
  for (const ModelRecord& record : records) {
    impl_->add(record);
    if (impl_->as_measured) impl_->as_measured->add(record);
  }
}

KernelModel::KernelModel(KernelModel&&) noexcept = default;
KernelModel& KernelModel::operator=(KernelModel&&) noexcept = default;
KernelModel::~KernelModel() = default;

ExplainedEstimate KernelModel::explain(const Operation& operation) const {
  const std::size_t hash = hash_of(operation);
  if (const auto known = impl_->memo.find(operation, hash)) return *known;
  const Answer answer = impl_->answer(operation);
  const std::string_view record = answer.record == kNoRecord ? impl_->generic.record_of(operation)
                                  : answer.of_another_value
                                      ? std::string_view{impl_->fitted.name_of_another_value(answer.record)}
                                      : std::string_view{impl_->fitted.name(answer.record)};
  const ExplainedEstimate explained{impl_->to_estimate(operation, answer), record, answer.extrapolated,
                                    answer.layout_measured, answer.sustained};
  impl_->memo.store(operation, hash, explained);
  return explained;
}

void KernelModel::estimate(std::span<const Operation> operations, std::span<Estimate> out) const {
  const Impl& impl = *impl_;
  // Operations of one record are evaluated together in blocks, which amortises the evaluation of the trees.
  constexpr std::size_t kBlock = 64;
  // Operations waiting for one record, with their index in the output.
  struct Waiting {
    std::size_t n = 0;
    std::array<const Operation*, kBlock> operations{};
    std::array<std::size_t, kBlock> index{};
  };
  std::vector<Waiting> waiting(impl.fitted.size());
  std::array<FittedTime, kBlock> times{};
  const auto flush = [&](std::size_t record) {
    Waiting& w = waiting[record];
    impl.fitted.kernel(record).estimate({w.operations.data(), w.n}, {times.data(), w.n});
    for (std::size_t i = 0; i < w.n; ++i) {
      const Operation& operation = *w.operations[i];
      const Answer answer =
          times[i].of_another_value ? impl.answer(operation) : impl.to_answer(record, times[i], operation);
      out[w.index[i]] = impl.to_estimate(operation, answer);
    }
    w.n = 0;
  };
  const std::size_t n = std::min(operations.size(), out.size());
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t record = impl.fitted.find(operations[i]);
    if (record == kNoRecord || impl.as_measured || !impl.covers(record, operations[i])) {
      out[i] = impl.to_estimate(operations[i], impl.answer(operations[i]));
      continue;
    }
    Waiting& w = waiting[record];
    w.operations[w.n] = &operations[i];
    w.index[w.n] = i;
    if (++w.n == kBlock) flush(record);
  }
  for (std::size_t record = 0; record < waiting.size(); ++record)
    if (waiting[record].n > 0) flush(record);
}

const AnalyticModel& KernelModel::analytic() const { return impl_->analytic; }
bool KernelModel::has_measured_products() const {
  for (std::size_t i = 0; i < kDTypeCount; ++i)
    if (impl_->fitted.has("gemm", static_cast<DType>(i), Direction::forward)) return true;
  return false;
}
std::vector<std::string> KernelModel::skipped(bool also_shipped) const {
  std::vector<std::string> out = impl_->skipped;
  for (auto& unreadable : {impl_->generic.unreadable(also_shipped), impl_->fitted.unreadable(also_shipped)})
    out.insert(out.end(), unreadable.begin(), unreadable.end());
  return out;
}

}  // namespace stepcast
