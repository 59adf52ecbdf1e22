#include "stepcast/cost/kernel_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/cost/generic_kernel.h"

namespace stepcast {
namespace {

constexpr std::size_t kNoRecord = std::numeric_limits<std::size_t>::max();

// Gradients of a matrix product from its forward kernel in the layout of the gradient: medians over the 61
// shapes of simumax_a100_pcie_efficiency.csv, efficiency of TN over that of NN (0.738 / 0.739), and over that
// of NT with accumulation into fp32 (0.738 / 0.704).
constexpr double kInputGradientFactor = 1.0;
constexpr double kWeightGradientFactor = 1.05;

// What an answer borrowed from another record loses in certainty, each side, in ln: assumed.
constexpr double kOtherDType = 0.05;    // fp16 for bf16
constexpr double kFromForward = 0.08;   // gradients from forward kernels
constexpr double kOfSibling = 0.05;     // fitted on another device of the architecture
constexpr double kFromAnalytic = 0.15;  // scaled by a ratio of the analytic model

// Work below the least that was measured, in ln: from half of it on the answer moves to the analytic model,
// at an eighth it has arrived; a quarter of the way that it moved is added to the band. Assumed.
constexpr double kHandOverFrom = 0.7, kHandOverTo = 2.1, kHandOverWidening = 0.25;

// fp16 and bf16 run on the same units and move the same bytes.
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

// The figures of this device in a reference that was fitted on another one; the fitted constants stay.
void use_figures(ReferenceParameters& reference, DType dtype, const Device& device) {
  if (device.memory_bandwidth.value() > 0) reference.bandwidth_GBps = device.memory_bandwidth.value() / 1e9;
  if (const auto peak = device.peak(dtype); peak && peak->value() > 0)
    reference.peak_TFLOPs = peak->value() / 1e12;
  if (device.sm_count && *device.sm_count > 0) reference.sm_count = static_cast<double>(*device.sm_count);
}

// A time in the making.
struct Answer {
  double us = 0;
  double log_low = 0, log_high = 0;
  EstimateSource source = EstimateSource::fitted;
  std::size_t record = kNoRecord;
  bool extrapolated = false;

  [[nodiscard]] Answer scaled(double factor, double wider) const {
    Answer out = *this;
    out.us *= factor;
    out.log_low -= wider;
    out.log_high += wider;
    return out;
  }
};

// One after the other; their errors go the same way.
Answer sum(const Answer& a, const Answer& b) {
  Answer out = a;
  out.us = a.us + b.us;
  out.log_low = (a.us * a.log_low + b.us * b.log_low) / out.us;
  out.log_high = (a.us * a.log_high + b.us * b.log_high) / out.us;
  out.source = weaker(a.source, b.source);
  out.extrapolated = a.extrapolated || b.extrapolated;
  return out;
}

// Answers to single questions; layouts are asked for again and again.
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
  explicit Impl(const Device& device) : analytic{device}, generic{device} {}

  AnalyticModel analytic;
  GenericKernels generic;
  std::vector<FittedKernel> kernels;
  std::vector<std::string> names;  // of the records, one per kernel
  std::vector<double> widening;    // of the band, in ln, likewise
  std::vector<std::string> skipped;
  Memo memo;

  static constexpr std::size_t kDirections = 4;
  // Per family: index into `kernels` by dtype and direction, or kNoRecord.
  using Slots = std::array<std::array<std::size_t, kDirections>, kDTypeCount>;
  struct Family {
    std::string name;
    Slots slots;
  };
  std::vector<Family> families;

  void add(const ModelRecord& record);
  [[nodiscard]] const Slots* slots_of(std::string_view family) const {
    for (const Family& f : families) {
      if (f.name == family) return &f.slots;
    }
    return nullptr;
  }
  [[nodiscard]] std::size_t find(const Operation& operation) const {
    const Slots* slots = slots_of(family_of(operation));
    if (slots == nullptr) return kNoRecord;
    return (*slots)[static_cast<std::size_t>(operation.dtype)][static_cast<std::size_t>(operation.direction)];
  }
  // True if the record was fitted on operations that differ from this one in their sizes only.
  [[nodiscard]] bool covers(std::size_t record, const Operation& operation) const;

  [[nodiscard]] Answer answer(const Operation& operation) const;
  [[nodiscard]] std::optional<Answer> from_record(const Operation& operation) const;
  [[nodiscard]] std::optional<Answer> from_other_dtype(const Operation& operation) const;
  [[nodiscard]] std::optional<Answer> from_forward(const Operation& operation) const;
  [[nodiscard]] std::optional<Answer> gradient_of_product(const Operation& operation) const;
  [[nodiscard]] Answer from_figures(const Operation& operation) const;
  // A record in this dtype or one like it.
  [[nodiscard]] std::optional<Answer> measured(const Operation& operation) const {
    if (auto a = from_record(operation)) return a;
    return from_other_dtype(operation);
  }

  [[nodiscard]] Answer to_answer(std::size_t record, const FittedTime& time,
                                 const Operation& operation) const;
  [[nodiscard]] Estimate to_estimate(const Operation& operation, const Answer& answer) const {
    const double bound = analytic.lower_bound(operation).value();
    const double time = std::max(answer.us, bound);
    const double low = std::clamp(time * std::exp(answer.log_low), std::min(bound, time), time);
    const double high = std::max(time * std::exp(std::min(answer.log_high, 5.0)), time);
    return {Microseconds{time}, Microseconds{low}, Microseconds{high}, answer.source};
  }
};

void KernelModel::Impl::add(const ModelRecord& record) {
  if (record.kind == kGenericRecordKind) {
    if (auto added = generic.add(record); !added)
      skipped.push_back(fmt::format("model {}: {}", record.name, added.error().message()));
    return;
  }
  if (!record.kind.starts_with("kernel_"))
    return;  // slow-down factors and the like have readers of their own
  if (record.kind != kKernelRecordKind) {
    skipped.push_back(fmt::format("model {}: kind `{}` is not known", record.name, record.kind));
    return;
  }
  // A platform file that takes the records of another device does so on purpose; they correct a reference
  // that is given this device's figures below, so they hold for devices with the same units.
  const bool of_sibling = !record.device.empty() && !analytic.device().is_called(record.device);
  const JsonValue* architecture = record.parameters.find("architecture");
  if (of_sibling &&
      (architecture == nullptr || !architecture->is_text() || analytic.device().architecture.empty() ||
       !same_name(architecture->text(), analytic.device().architecture))) {
    skipped.push_back(fmt::format("model {}: fitted on {}, this is {}", record.name, record.device,
                                  analytic.device().name));
    return;
  }
  Result<FittedKernel> kernel = FittedKernel::read(record.parameters);
  if (!kernel) {
    skipped.push_back(fmt::format("model {}: {}", record.name, kernel.error().message()));
    return;
  }
  if (of_sibling) use_figures(kernel->reference, kernel->dtype, analytic.device());
  auto family = std::find_if(families.begin(), families.end(),
                             [&](const Family& f) { return f.name == kernel->family; });
  if (family == families.end()) {
    Slots empty;
    for (auto& row : empty) row.fill(kNoRecord);
    families.push_back({kernel->family, empty});
    family = families.end() - 1;
  }
  family->slots[static_cast<std::size_t>(kernel->dtype)][static_cast<std::size_t>(kernel->direction)] =
      kernels.size();
  kernels.push_back(std::move(kernel).value());
  names.push_back(record.name);
  widening.push_back(of_sibling ? kOfSibling : 0);
}

bool KernelModel::Impl::covers(std::size_t record, const Operation& operation) const {
  const FittedKernel& kernel = kernels[record];
  if (kernel_feature_set_of(operation) != kernel.features) return false;
  const auto* attention = std::get_if<AttentionShape>(&operation.shape);
  if (attention == nullptr || attention->kernel == AttentionKernel::any || kernel.attention_kernels.empty())
    return true;
  return std::find(kernel.attention_kernels.begin(), kernel.attention_kernels.end(), attention->kernel) !=
         kernel.attention_kernels.end();
}

Answer KernelModel::Impl::to_answer(std::size_t record, const FittedTime& time,
                                    const Operation& operation) const {
  Answer answer{std::exp(time.log_us),
                time.log_low - widening[record],
                time.log_high + widening[record],
                EstimateSource::fitted,
                record,
                time.distance > 0};
  if (time.below <= kHandOverFrom) return answer;
  // The floor of a record is what its benchmark launched, gaps of the host included. Far below the measured
  // work nothing else is left of it, and the figures of the device say more.
  const double share = std::min((time.below - kHandOverFrom) / (kHandOverTo - kHandOverFrom), 1.0);
  const double shift = share * std::log(std::max(analytic.time(operation).value(), 1e-9) / answer.us);
  answer.us *= std::exp(shift);
  answer.log_low -= kHandOverWidening * std::abs(shift);
  answer.log_high += kHandOverWidening * std::abs(shift);
  if (share > 0.5) answer.source = EstimateSource::analytic;
  return answer;
}

std::optional<Answer> KernelModel::Impl::from_record(const Operation& operation) const {
  const std::size_t record = find(operation);
  if (record == kNoRecord || kernel_feature_set_of(operation) != kernels[record].features)
    return std::nullopt;
  FittedTime time;
  const Operation* pointer = &operation;
  kernels[record].estimate({&pointer, 1}, {&time, 1});
  const Answer answer = to_answer(record, time, operation);
  if (covers(record, operation)) return answer;
  // Another implementation of attention than the measured one: scaled as the analytic model says.
  Operation measured_one = operation;
  std::get<AttentionShape>(measured_one.shape).kernel = kernels[record].attention_kernels.front();
  const double factor = analytic.time(operation) / analytic.time(measured_one);
  return answer.scaled(factor, kFromAnalytic);
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
  const auto forward_of = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return measured(
        {GemmShape{.batch = s.batch, .m = m, .n = n, .k = k}, operation.dtype, Direction::forward});
  };
  auto input = forward_of(s.m, s.k, s.n);   // dA[m, k] = dC[m, n] B^T[n, k]
  auto weight = forward_of(s.n, s.k, s.m);  // dB[k, n] = A^T[k, m] dC[m, n], written as its transpose
  if (!input || !weight) return std::nullopt;
  // Batched products accumulate nothing: both gradients are like the forward.
  input = input->scaled(kInputGradientFactor, kFromForward);
  weight = weight->scaled(s.batch == 1 ? kWeightGradientFactor : 1, kFromForward);
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
  // Both together are known better where backward was measured.
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
  // How much longer backward takes: as in the other dtype, if both directions were measured there.
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

Answer KernelModel::Impl::answer(const Operation& operation) const {
  if (families.empty()) return from_figures(operation);
  // The kernel that is asked for, measured in the other 16-bit type, is closer than another kernel in this
  // one.
  const auto* wanted = std::get_if<AttentionShape>(&operation.shape);
  if (wanted != nullptr && wanted->kernel != AttentionKernel::any) {
    const std::size_t own = find(operation);
    const DType other = alike(operation.dtype);
    if (other != DType::unknown && (own == kNoRecord || !covers(own, operation))) {
      const Operation alike_operation = with(operation, other);
      const std::size_t record = find(alike_operation);
      if (record != kNoRecord && covers(record, alike_operation)) {
        if (auto a = from_other_dtype(operation)) return *a;
      }
    }
  }
  if (auto a = from_record(operation)) return *a;
  // Attention kernels of two dtypes are often of two generations: the forward of this dtype counts more.
  const bool attention = std::holds_alternative<AttentionShape>(operation.shape);
  if (attention) {
    if (find(with(operation, Direction::forward)) != kNoRecord) {
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
  for (const ModelRecord& record : records) impl_->add(record);
}

KernelModel::KernelModel(KernelModel&&) noexcept = default;
KernelModel& KernelModel::operator=(KernelModel&&) noexcept = default;
KernelModel::~KernelModel() = default;

ExplainedEstimate KernelModel::explain(const Operation& operation) const {
  const std::size_t hash = hash_of(operation);
  if (const auto known = impl_->memo.find(operation, hash)) return *known;
  const Answer answer = impl_->answer(operation);
  const std::string_view record = answer.record == kNoRecord ? impl_->generic.record_of(operation)
                                                             : std::string_view{impl_->names[answer.record]};
  const ExplainedEstimate explained{impl_->to_estimate(operation, answer), record, answer.extrapolated};
  impl_->memo.store(operation, hash, explained);
  return explained;
}

void KernelModel::estimate(std::span<const Operation> operations, std::span<Estimate> out) const {
  const Impl& impl = *impl_;
  // Operations of one record are evaluated together, a block at a time.
  constexpr std::size_t kBlock = 64;
  struct Waiting {
    std::size_t n = 0;
    std::array<const Operation*, kBlock> operations{};
    std::array<std::size_t, kBlock> index{};
  };
  std::vector<Waiting> waiting(impl.kernels.size());
  std::array<FittedTime, kBlock> times{};
  const auto flush = [&](std::size_t record) {
    Waiting& w = waiting[record];
    impl.kernels[record].estimate({w.operations.data(), w.n}, {times.data(), w.n});
    for (std::size_t i = 0; i < w.n; ++i)
      out[w.index[i]] =
          impl.to_estimate(*w.operations[i], impl.to_answer(record, times[i], *w.operations[i]));
    w.n = 0;
  };
  const std::size_t n = std::min(operations.size(), out.size());
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t record = impl.find(operations[i]);
    if (record == kNoRecord || !impl.covers(record, operations[i])) {
      out[i] = impl.to_estimate(operations[i], impl.answer(operations[i]));
      continue;
    }
    Waiting& w = waiting[record];
    w.operations[w.n] = &operations[i];
    w.index[w.n] = i;
    if (++w.n == kBlock) flush(record);
  }
  for (std::size_t record = 0; record < waiting.size(); ++record) {
    if (waiting[record].n > 0) flush(record);
  }
}

const AnalyticModel& KernelModel::analytic() const { return impl_->analytic; }
const std::vector<std::string>& KernelModel::skipped() const { return impl_->skipped; }

}  // namespace stepcast
