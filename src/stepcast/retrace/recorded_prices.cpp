#include "stepcast/retrace/recorded_prices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/device_time.h"
#include "stepcast/cost/shortest_kernel.h"
#include "stepcast/platform/device_siblings.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {
namespace {

// Kernels without a model scale with the memory bandwidth of the GPUs or the peak rate of their class. Their band is this
// factor to either side. Assumed.
constexpr double kGuessedSpread = 1.5;

// Half-widths of the band of kernels priced by models alone, in ln, p10 or p90, for long kernels and for the shortest ones.
// Three quarters of the kernel classes of the public traces are within.
constexpr double kLongSpread = 0.25, kShortSpread = 0.6;
// Kernels this many times longer than the shortest one get a band halfway between the two.
constexpr double kShortKernels = 4;

// A factor on a time, with its band.
struct Factor {
  double middle = 1, low = 1, high = 1;
  EstimateSource source = EstimateSource::measured;
};

// Share of the model error of a kernel (as a logarithm) that moves to a GPU of another vendor. Errors caused by the work and
// by framework code (odd dimensions, unfused passes, launches) recur on the other GPU; the libraries of another vendor have
// other algorithms and tiles. Value: the correlation of model errors by class of the two workloads recorded on an H100 and an
// MI300X, 0.5 without attention. Fused attention comes from another library, so its error does not move.
constexpr double kMovesToOtherVendor = 0.5;
// Correlation of the model errors on two GPUs, used for bands: the same figure.
constexpr double kSharedError = 0.5;

// Correlation of the errors of kernel classes priced by ratio within one step: 11 of the 13 classes of the two workloads err to
// the same side as their step. Assumed to be half.
constexpr double kClassesTogether = 0.5;

// Factor from the recorded time to the time on the target. `distance`: recorded time over the model of the origin. `moves`:
// the share of that distance (as a logarithm) that the target shares. `spread`: half-width of the band in ln if measured on
// pairs of GPUs; 0: derived from the bands of both models.
Factor over(const Estimate& target, const Estimate& origin, double distance, double moves, double spread) {
  const double ratio = target.time.value() / origin.time.value();
  // The same work on the same GPU keeps its recorded time exactly.
  if (moves == 1 && std::abs(ratio - 1) < 1e-9) return {};
  const double middle = distance > 0 ? ratio * std::pow(distance, moves - 1) : ratio;
  const EstimateSource source = weaker(target.source, origin.source);
  if (spread > 0) return {middle, middle * std::exp(-spread), middle * std::exp(spread), source};
  const auto from_middle = [](const Estimate& e, Microseconds edge) {
    return edge.value() > 0 && e.time.value() > 0 ? std::abs(std::log(edge.value() / e.time.value())) : 0.0;
  };
  // Errors of estimates from different sources are independent.
  const double shared = target.source == origin.source ? kSharedError : 0;
  const auto joint = [&](double of_target, double of_origin) {
    const double moved = moves * of_origin;
    return std::sqrt(of_target * of_target + moved * moved - 2 * shared * of_target * moved);
  };
  // The smallest ratio has a fast target and a slow origin.
  const double down = joint(from_middle(target, target.p10), from_middle(origin, origin.p90));
  const double up = joint(from_middle(target, target.p90), from_middle(origin, origin.p10));
  return {middle, middle * std::exp(-down), middle * std::exp(up), source};
}

// Prices all tasks of one recorded program. Every distinct work is priced once per GPU.
class Pricing {
 public:
  Pricing(const RecordedProgram& recorded, const RecordedPricing& how)
      : program_(recorded.program),
        how_(how),
        is_dry_run_(recorded.is_dry_run),
        channels_last_(recorded.channels_last) {
    const auto all = static_cast<std::int64_t>(std::max<std::uint64_t>(1, program_.rank_count()));
    const auto world = recorded.files.empty() ? std::nullopt : recorded.files.front().world_size;
    // The job may have more ranks than were recorded.
    const std::int64_t ranks = std::max<std::int64_t>(all, world.value_or(0));
    n_ranks_ = std::max<std::int64_t>(2, ranks);
    places_ = place_recorded_groups(program_, how.gpus_per_node > 0 ? how.gpus_per_node : ranks);
    origin_places_ =
        place_recorded_groups(program_, how.origin_gpus_per_node > 0 ? how.origin_gpus_per_node : ranks);
    works_.resize(program_.works.size());
    seen_.resize(program_.works.size());
    if (how.target != nullptr)
      target_time_.emplace(how.target->kernels().model(), how.target->platform().device);
    if (how.origin != nullptr)
      origin_time_.emplace(how.origin->kernels().model(), how.origin->platform().device);
    // GPUs of one architecture use the same kernels of a library.
    same_library_ = how.origin == nullptr || how.target == nullptr ||
                    how.origin->platform().device.architecture == how.target->platform().device.architecture;
    if (same_library_ && how.origin != nullptr && how.target != nullptr)
      sibling_ = sibling_of(how.origin->platform().device, how.target->platform().device);
    see_kernels();
  }

  RecordedPrices run() {
    RecordedPrices out{Costs{program_}, Costs{program_}, Costs{program_}, {}};
    for (std::size_t b = 0; b < program_.blocks().size(); ++b) price_block(BlockId{b}, out);
    const BandShares together = shares_together(bands_, how_.kernels);
    out.together_low = together.low;
    out.together_high = together.high;
    for (Costs* costs : {&out.costs, &out.low, &out.high}) costs->rescale_shared_delays(program_);
    finish_coverage(out.coverage);
    return out;
  }

 private:
  // Model times of one work, cached.
  struct PricedOnce {
    bool done = false;
    std::optional<Estimate> target, origin;  // empty: no model
    std::string why;                         // why there is no model
  };

  // Collects the kernel implementations that executed each work.
  void see_kernels() {
    implementations_.resize(program_.names.size());
    for (std::size_t b = 0; b < program_.blocks().size(); ++b) {
      const Block& block = program_.block(BlockId{b});
      for (std::uint32_t t = 0; t < block.task_count(); ++t) {
        const TaskInfo& task = block.tasks()[t];
        if (task.kind != TaskKind::kernel || program_.works.operation(task.work) == nullptr) continue;
        seen_[task.work.index()].add(implementation(task), block.duration_us()[t], task.work_times);
      }
    }
  }
  // The implementation that the kernel name shows, cached per name.
  KernelImplementation implementation(const TaskInfo& task) {
    if (!task.name.valid()) return KernelImplementation::other;
    std::optional<KernelImplementation>& known = implementations_[task.name.index()];
    if (!known) known = implementation_of(program_.names.text(task.name));
    return *known;
  }

  // Prices the GPU tasks of a block and adds them to the coverage and the bands of their classes. Host tasks are unchanged.
  void price_block(BlockId id, RecordedPrices& out) {
    const Block& block = program_.block(id);
    const double ranks = static_cast<double>(std::max<std::uint64_t>(1, program_.rank_count()));
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const TaskInfo& task = block.tasks()[t];
      double& time = out.costs.duration_us(id)[t];
      if (!detail::is_gpu_work(task.kind)) {
        if (task.kind != TaskKind::wait) {
          out.coverage.host_us[static_cast<std::size_t>(EstimateSource::measured)] += time / ranks;
        }
        continue;
      }
      const Times priced = times_of(task, time);
      time = priced.us;
      out.low.duration_us(id)[t] = priced.low_us;
      out.high.duration_us(id)[t] = priced.high_us;
      ClassBand& band = bands_[static_cast<std::size_t>(task.kernel_class)];
      band.us += priced.us;
      band.low_us += priced.low_us;
      band.high_us += priced.high_us;
      out.coverage
          .gpu_us[static_cast<std::size_t>(task.kernel_class)][static_cast<std::size_t>(priced.source)] +=
          time / ranks;
    }
  }

  struct Times {
    double us = 0, low_us = 0, high_us = 0;
    EstimateSource source = EstimateSource::measured;
  };
  static Times scaled(double us, const Factor& factor) {
    return {us * factor.middle, us * factor.low, us * factor.high, factor.source};
  }

  // The time of a GPU task by the requested source; falls back to without_model().
  Times times_of(const TaskInfo& task, double recorded_us) {
    const bool from_models = how_.price_unrecorded && recorded_us <= 0;
    if (how_.kernels == KernelTimeSource::recorded && !from_models) return scaled(recorded_us, what_if(task));
    if (!task.work.valid()) return without_model(task, recorded_us, "no operation is known");
    const PricedOnce& work = price(task.work);
    if (!work.target || work.target->time.value() <= 0) return without_model(task, recorded_us, work.why);
    if (how_.kernels == KernelTimeSource::ratio && !from_models) {
      if (work.origin && work.origin->time.value() > 0) {
        const double modelled_us = work.origin->time.value() * task.work_times;
        const double distance = modelled_us > 0 ? recorded_us / modelled_us : 0;
        const double spread = task.kind == TaskKind::kernel ? how_.ratio_spread : 0;
        Factor factor = over(*work.target, *work.origin, distance, shared_cause(task, modelled_us), spread);
        if (sibling_ && task.kernel_class == KernelClass::embedding)
          factor = of_random_rows(task, recorded_us, factor);
        return scaled(recorded_us, factor);
      }
      return without_model(task, recorded_us, work.why);
    }
    // Even a kernel with a share of an operation takes the time of the shortest kernel.
    const double least =
        task.kind == TaskKind::kernel
            ? shortest_kernel_us(program_.works.operation(task.work), implementation(task), figures())
            : 0;
    const auto timed = [&](Microseconds once) { return once.value() * task.work_times; };
    const double us = std::max(timed(work.target->time), least);
    const double among_short = kShortKernels * floor_us() / (kShortKernels * floor_us() + us);
    const double spread = std::exp(kLongSpread + (kShortSpread - kLongSpread) * among_short);
    return {us, std::min(timed(work.target->p10), us / spread),
            std::max(timed(work.target->p90), us * spread), work.target->source};
  }

  // The share of the distance between a kernel and its model that the target has too. 1 for transfers and GPUs of one vendor.
  // The time of the shortest kernel is specific to each GPU and excluded.
  double shared_cause(const TaskInfo& task, double modelled_us) const {
    const bool transfer = program_.works.collective(task.work) != nullptr;
    if (transfer || how_.origin->platform().device.vendor == how_.target->platform().device.vendor) return 1;
    if (task.kernel_class == KernelClass::attention) return 0;
    const double shortest_us =
        shortest_kernel_us(program_.works.operation(task.work), KernelImplementation::other,
                           how_.origin->kernels().model().analytic().figures());
    return kMovesToOtherVendor * (1 - shortest_us / std::max(modelled_us, shortest_us));
  }

  // Random row lookups on another device of the same architecture. The bytes over the bandwidth are the part of the recorded
  // time that scales with bandwidth; the rest is latency. The relative width of the band is kept.
  Factor of_random_rows(const TaskInfo& task, double recorded_us, const Factor& by_models) const {
    const AnalyticModel& origin = how_.origin->kernels().model().analytic();
    const double bytes = work_of(*program_.works.operation(task.work)).bytes().value() * task.work_times;
    const double streamed_us = bytes / origin.figures().memory.per_us;
    const double middle =
        sibling_->time_ratio(recorded_us, streamed_us, origin.figures().kernel_floor_us, false);
    const double moved = middle / by_models.middle;
    return {middle, by_models.low * moved, by_models.high * moved, by_models.source};
  }

  const DeviceFigures& figures() const { return how_.target->kernels().model().analytic().figures(); }
  double floor_us() const { return figures().kernel_floor_us; }

  // What-if factor on a recorded time, by kernel class and by the links of the group.
  Factor what_if(const TaskInfo& task) const {
    const StepAssumptions& assume = how_.assumptions;
    double factor = assume.memory_bound_factor;
    if (const CollectiveWork* transfer = program_.works.collective(task.work);
        transfer != nullptr || task.kernel_class == KernelClass::communication) {
      const bool across =
          transfer != nullptr && transfer->group.valid() && places_[transfer->group.index()].n_nodes > 1;
      factor = assume.communication_factor * (across ? assume.inter_node_factor : assume.intra_node_factor);
    } else if (task.kernel_class == KernelClass::gemm) {
      factor = assume.gemm_factor;
    } else if (task.kernel_class == KernelClass::attention) {
      factor = assume.attention_factor;
    }
    return {factor, factor, factor, EstimateSource::measured};
  }

  // The time of work without a model: recorded, or scaled by bounds on another GPU. It is listed as unmodelled with `why`.
  Times without_model(const TaskInfo& task, double recorded_us, std::string_view why) {
    Factor factor = what_if(task);
    const bool recorded = recorded_us > 0;
    if (!recorded) {
      // Recorded without a time: assume the time of the shortest kernel.
      recorded_us = floor_us();
      factor.source = EstimateSource::assumed;
      factor.low = factor.middle / kGuessedSpread;
      factor.high = factor.middle * kGuessedSpread;
    } else if (how_.origin != nullptr && how_.target != nullptr &&
               how_.origin->platform().device.name != how_.target->platform().device.name) {
      if (task.kernel_class == KernelClass::communication)
        factor.middle = link_ratio(recorded_us);  // the prices of the target include the what-if factors
      else
        factor.middle *= bound_ratio(task.kernel_class);
      factor.source = EstimateSource::assumed;
      factor.low = factor.middle / kGuessedSpread;
      factor.high = factor.middle * kGuessedSpread;
    }
    Sum& sum = unmodelled_[{program_.names.text(task.name), task.kernel_class, std::string{why}}];
    sum.tasks += 1;
    sum.time_us += recorded_us * factor.middle;
    return scaled(recorded_us, factor);
  }

  // Time ratio target / origin of work at its bound: peak rate for GEMMs and attention, memory bandwidth for the rest.
  double bound_ratio(KernelClass kernel_class) const {
    const Device& from = how_.origin->platform().device;
    const Device& to = how_.target->platform().device;
    if (kernel_class == KernelClass::gemm || kernel_class == KernelClass::attention) {
      for (const DType type : {DType::bf16, DType::fp16, DType::fp32}) {
        const auto a = from.peak(type), b = to.peak(type);
        if (a && b && b->value() > 0) return a->value() / b->value();
      }
    }
    return to.memory_bandwidth.value() > 0 ? from.memory_bandwidth.value() / to.memory_bandwidth.value()
                                           : 1.0;
  }

  // Time ratio target / origin of a transfer with unknown message or group. It is treated as an all-reduce of all ranks with the
  // message size that takes the recorded time on the origin, found by bisection.
  double link_ratio(double recorded_us) {
    std::vector<std::uint32_t> ranks(static_cast<std::size_t>(n_ranks_));
    std::iota(ranks.begin(), ranks.end(), 0U);
    const std::array<RankSpan, 1> all{ranks};
    const auto price_on = [&](StepPricer& prices, std::int64_t gpus_per_node, double bytes) {
      const GroupPlacement place = place_ranks(ranks, gpus_per_node > 0 ? gpus_per_node : n_ranks_, all);
      const Result<Estimate> once = prices.price(CollectiveOp::all_reduce, Bytes{bytes}, place);
      return once.ok() ? once->time.value() : 0.0;
    };
    double small = 10, large = 34;  // as powers of two: 1 KiB to 16 GiB
    for (int i = 0; i < 20; ++i) {
      const double middle = 0.5 * (small + large);
      (price_on(*how_.origin, how_.origin_gpus_per_node, std::exp2(middle)) < recorded_us ? small : large) =
          middle;
    }
    const double bytes = std::exp2(large);
    const double to = price_on(*how_.target, how_.gpus_per_node, bytes);
    const double from = price_on(*how_.origin, how_.origin_gpus_per_node, bytes);
    return to > 0 && from > 0 ? to / from : 1.0;
  }

  // Kernels of a convolution on the target if its library differs. The target library selects its own algorithm. Layout copies
  // are added if the recorded library copied or had no matrix units, and the target has them: matrix units need another layout
  // than the default of PyTorch.
  SeenKernels on_other_library(const Operation& operation, const SeenKernels& seen) const {
    SeenKernels out = seen.without_convolutions();
    if (!std::holds_alternative<ConvolutionShape>(operation.shape)) return out;
    using Seen = KernelImplementation;
    const bool copied = seen.has(Seen::to_channels_last) || seen.has(Seen::to_channels_first) ||
                        seen.has(Seen::layout_transpose);
    const auto units = [&operation](StepPricer& on) {
      const DeviceFigures& has = on.kernels().model().analytic().figures();
      return has.has_matrix_units(operation.dtype) ||
             (operation.dtype == DType::fp32 && has.has_matrix_units(DType::tf32));
    };
    if (how_.origin == nullptr || (!copied && units(*how_.origin)) || !units(*how_.target)) return out;
    const SeenKernels usual = usual_kernels(operation, how_.target->platform().device.vendor == "AMD", true);
    for (const Seen copy : {Seen::to_channels_last, Seen::to_channels_first, Seen::layout_transpose})
      out.count[static_cast<std::size_t>(copy)] = usual.count[static_cast<std::size_t>(copy)];
    out.times = usual.times;
    out.here = false;
    return out;
  }

  // Usual kernels of a convolution recorded without a GPU, in the type of the operation.
  SeenKernels of_dry_run(const Operation& operation) const {
    const DeviceFigures& has = how_.target->kernels().model().analytic().figures();
    SeenKernels kernels = usual_kernels(operation, how_.target->platform().device.vendor == "AMD",
                                        has.has_matrix_units(operation.dtype));
    kernels.times = 1;
    return kernels;
  }

  // Model times of a work on both GPUs, computed at the first request.
  const PricedOnce& price(WorkId id) {
    PricedOnce& once = works_[id.index()];
    if (once.done) return once;
    once.done = true;
    const TaskWork& work = program_.works.of(id);
    if (const auto* operation = std::get_if<Operation>(&work)) {
      const SeenKernels& seen = seen_[id.index()];
      const bool unseen =
          is_dry_run_ && !channels_last_ && std::holds_alternative<ConvolutionShape>(operation->shape);
      once.target = target_time_->of(*operation, how_.target->kernels().price(*operation),
                                     unseen          ? of_dry_run(*operation)
                                     : same_library_ ? seen
                                                     : on_other_library(*operation, seen));
      if (how_.origin != nullptr) {
        once.origin = origin_time_->of(*operation, how_.origin->kernels().price(*operation), seen);
      }
    } else if (const auto* transfer = std::get_if<CollectiveWork>(&work)) {
      once.target = price(*how_.target, *transfer, places_, once.why);
      if (how_.origin != nullptr) once.origin = price(*how_.origin, *transfer, origin_places_, once.why);
    } else {
      once.why = "no operation is known";
    }
    return once;
  }

  // Price of a collective on the links of `prices`; empty with a reason in `why` if it cannot be priced.
  static std::optional<Estimate> price(StepPricer& prices, const CollectiveWork& work,
                                       std::span<const GroupPlacement> places, std::string& why) {
    if (!work.group.valid() || work.message.value() <= 0) {
      why = work.group.valid() ? "its message is not known" : "its group is not known";
      return std::nullopt;
    }
    const GroupPlacement& place = places[work.group.index()];
    if (place.n_ranks <= 1) {
      why = "a group of one rank";
      return std::nullopt;
    }
    Result<Estimate> once = prices.price(work.op, work.message, place);
    if (once.ok()) return *once;
    why = once.error().message();
    return std::nullopt;
  }

  // Lists unmodelled work by descending time, averaged over the ranks.
  void finish_coverage(Coverage& coverage) const {
    const double ranks = static_cast<double>(std::max<std::uint64_t>(1, program_.rank_count()));
    for (const auto& [key, sum] : unmodelled_) {
      const auto& [name, kernel_class, why] = key;
      coverage.unmodelled.push_back({std::string{name}, kernel_class, why, sum.tasks, sum.time_us / ranks});
    }
    std::stable_sort(coverage.unmodelled.begin(), coverage.unmodelled.end(),
                     [](const auto& a, const auto& b) { return a.time_us > b.time_us; });
  }

  // Unmodelled tasks of one kind and their time.
  struct Sum {
    std::uint64_t tasks = 0;
    double time_us = 0;
  };
  std::array<ClassBand, kKernelClassCount> bands_{};
  const Program& program_;
  const RecordedPricing& how_;
  std::vector<GroupPlacement> places_, origin_places_;                // [GroupId]
  std::vector<PricedOnce> works_;                                     // [WorkId]
  std::vector<SeenKernels> seen_;                                     // [WorkId]
  std::vector<std::optional<KernelImplementation>> implementations_;  // [NameId]
  std::int64_t n_ranks_ = 2;                                          // ranks of the job, at least 2
  bool same_library_ = true;
  bool is_dry_run_ = false, channels_last_ = false;
  std::optional<KernelSibling> sibling_;  // set for GPUs of the same architecture
  std::optional<DeviceTime> target_time_, origin_time_;
  std::map<std::tuple<std::string_view, KernelClass, std::string>, Sum> unmodelled_;
};

}  // namespace

BandShares shares_together(std::span<const ClassBand> classes, KernelTimeSource ground) {
  double down = 0, up = 0, squares_down = 0, squares_up = 0;
  for (const ClassBand& of : classes) {
    down += of.us - of.low_us;
    up += of.high_us - of.us;
    squares_down += (of.us - of.low_us) * (of.us - of.low_us);
    squares_up += (of.high_us - of.us) * (of.high_us - of.us);
  }
  const double shared = ground == KernelTimeSource::ratio ? kClassesTogether : 0;
  const auto share = [shared](double sum, double squares) {
    return sum > 0 ? std::sqrt(shared + (1 - shared) * squares / (sum * sum)) : 1;
  };
  return {share(down, squares_down), share(up, squares_up)};
}

std::string_view to_string(KernelTimeSource ground) {
  switch (ground) {
    case KernelTimeSource::recorded: return "recorded";
    case KernelTimeSource::models: return "models";
    case KernelTimeSource::ratio: return "ratio";
  }
  return "recorded";
}

Result<RecordedPrices> price_recorded(const RecordedProgram& recorded, const RecordedPricing& how) {
  if (how.kernels != KernelTimeSource::recorded && how.target == nullptr) {
    return Error{"no platform to price the recorded kernels on"}.advice(
        "name one with --recorded-on, or keep the recorded times");
  }
  if (how.kernels == KernelTimeSource::ratio && how.origin == nullptr) {
    return Error{"the GPU that recorded the traces has no platform"}
        .found(recorded.files.empty() ? "no GPU" : fmt::format("\"{}\"", recorded.files.front().device))
        .advice("name a similar platform with --recorded-on, or use only models with --kernels models");
  }
  return Pricing{recorded, how}.run();
}

}  // namespace stepcast
