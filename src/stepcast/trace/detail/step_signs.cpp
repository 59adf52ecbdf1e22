// Classifies steps by what happens in them. For each kind of step there are signs: events with names or
// types of that kind. Their covered time per step is compared with the median step.
#include "stepcast/trace/detail/step_signs.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "stepcast/operation/overhead_name.h"
#include "stepcast/trace/trace_index.h"

namespace stepcast::detail {
namespace {

using namespace std::string_view_literals;

// Signs must cover this share of the median step more than usual. Assumed (docs/constants.md).
constexpr double kMuchLonger = 0.05;
// Signs must cover this many times the usual time.
constexpr double kManyTimes = 2;
// Operators with smaller gaps are merged into one stretch, to save memory.
constexpr std::int64_t kOneStretchNs = 100'000;
constexpr std::size_t kKinds = static_cast<std::size_t>(StepKind::start_up) + 1;

// A word that is a sign.
struct Word {
  std::string_view text;  // in lower case
  StepKind kind;
};
// Words in annotations and frames of PyTorch, Lightning, Megatron and Transformers. The first match decides.
constexpr std::array kWords{
    Word{"dynamo_timed", StepKind::start_up},       Word{"convert_frame.py", StepKind::start_up},
    Word{"compile_fx", StepKind::start_up},         Word{"autotune", StepKind::start_up},
    Word{"profiler", StepKind::profiler},           Word{"cupti", StepKind::profiler},
    Word{"activity buffer", StepKind::profiler},    Word{"buffer flush", StepKind::profiler},
    Word{"instrumentation", StepKind::profiler},    Word{"module loading", StepKind::start_up},
    Word{"lazy function", StepKind::start_up},      Word{"torch.save", StepKind::checkpoint},
    Word{"state_dict", StepKind::checkpoint},       Word{"checkpoint", StepKind::checkpoint},
    Word{"serialization.py", StepKind::checkpoint}, Word{"evaluat", StepKind::evaluation},
    Word{"validat", StepKind::evaluation},          Word{"eval_step", StepKind::evaluation},
};
// Names that contain such a word but occur in every step or operator.
constexpr std::array kNoSign{"profilerstep"sv, "profiler::_record"sv, "evaluate_function"sv,
                             "checkpointfunction"sv, "utils/checkpoint"sv};

// The sign in a runtime call: starting a profiler, loading code, or allocating memory.
std::optional<StepKind> sign_of_call(std::string_view name) {
  const auto begins = [&](std::string_view with) { return name.starts_with(with); };
  if (begins("cudaProfiler") || begins("cuProfiler") || begins("hipProfiler")) return StepKind::profiler;
  const bool allocates = begins("cudaMalloc") || begins("cudaHostAlloc") || begins("hipMalloc") ||
                         begins("hipHostMalloc") || begins("cuMemAlloc");
  const bool loads = begins("cuModuleLoad") || begins("cuLibraryLoad") || begins("cudaLibraryLoad") ||
                     begins("hipModuleLoad");
  if (loads || (allocates && name.find("Async") == std::string_view::npos)) return StepKind::start_up;
  return std::nullopt;
}

// The median; of two middle values the smaller one, because with two steps the one without a sign is
// ordinary.
double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

// Names of operators ("aten::...") are never signs; data loaders come before the words.
std::optional<StepKind> sign_in(std::string_view name) {
  if (name.starts_with("aten::")) return std::nullopt;
  if (name.starts_with(kDataLoader)) return StepKind::loader;
  constexpr std::size_t kLongest = 256;  // names of templates can be very long
  std::string lower{name.substr(0, kLongest)};
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const auto holds = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  if (holds("dataloader.py") && holds("__next__")) return StepKind::loader;
  for (const Word& word : kWords)
    if (holds(word.text))
      return std::ranges::any_of(kNoSign, holds) ? std::nullopt : std::optional{word.kind};
  return std::nullopt;
}

// Extends the last stretch if possible, since events mostly come in order. The list is merged when it has
// doubled.
void CoveredTime::add(std::int64_t start_ns, std::int64_t end_ns) {
  if (!stretches_.empty() && start_ns >= stretches_.back().start_ns &&
      start_ns <= stretches_.back().end_ns + apart_ns_) {
    stretches_.back().end_ns = std::max(stretches_.back().end_ns, end_ns);
    return;
  }
  stretches_.push_back({start_ns, end_ns});
  if (stretches_.size() < unite_at_) return;
  unite();
  unite_at_ = 2 * stretches_.size() + 1024;
}

// Sorts and merges the stretches.
void CoveredTime::unite() {
  std::ranges::sort(stretches_, {}, &Stretch::start_ns);
  std::size_t n = 0;
  for (const Stretch& s : stretches_) {
    if (n > 0 && s.start_ns <= stretches_[n - 1].end_ns + apart_ns_)
      stretches_[n - 1].end_ns = std::max(stretches_[n - 1].end_ns, s.end_ns);
    else
      stretches_[n++] = s;
  }
  stretches_.resize(n);
}

std::vector<double> CoveredTime::in(std::span<const StepStretch> steps) {
  unite();
  std::vector<double> covered_ns;
  for (const StepStretch& step : steps) {
    double& sum = covered_ns.emplace_back(0);
    auto s =
        std::ranges::partition_point(stretches_, [&](const Stretch& x) { return x.end_ns <= step.start_ns; });
    for (; s != stretches_.end() && s->start_ns < step.end_ns; ++s)
      sum += static_cast<double>(std::min(s->end_ns, step.end_ns) - std::max(s->start_ns, step.start_ns));
  }
  return covered_ns;
}

StepSigns::StepSigns()
    : of_kind_(kKinds, CoveredTime{0}), operators_(kOneStretchNs), backward_(kOneStretchNs) {}

void StepSigns::add(const KinetoEvent& event) {
  add(event.event_class, event.name.raw, event.start_ns, event.duration_ns, event.args.input_dims);
}

// Copies from device to host count as a sign of checkpoints, which copy much data.
void StepSigns::add(EventClass what, std::string_view name, std::int64_t start_ns, std::int64_t duration_ns,
                    std::string_view input_dims) {
  std::optional<StepKind> kind;
  switch (what) {
    case EventClass::op:
      operators_.add(start_ns, start_ns + duration_ns);
      if (!input_dims.empty())
        if (const double size = size_by_shapes(name, input_dims); size > 0)
          sized_.push_back({start_ns, size});
      if (name.starts_with("autograd::engine::evaluate_function"))
        backward_.add(start_ns, start_ns + duration_ns);
      [[fallthrough]];
    case EventClass::annotation:
    case EventClass::frame: kind = sign_in(name); break;
    case EventClass::runtime: kind = sign_of_call(name); break;
    case EventClass::memcpy:
      if (name.find("DtoH") != std::string_view::npos || name.find("DeviceToHost") != std::string_view::npos)
        kind = StepKind::checkpoint;
      break;
    default: break;
  }
  if (kind) of_kind_[static_cast<std::size_t>(*kind)].add(start_ns, start_ns + duration_ns);
}

// Among several signs of a step, the one with the most additional time decides.
std::vector<SpecialStep> StepSigns::special(std::span<const StepStretch> steps) {
  std::vector<double> lengths;
  for (const StepStretch& step : steps) lengths.push_back(static_cast<double>(step.end_ns - step.start_ns));
  const double much_ns = kMuchLonger * middle(std::move(lengths));
  std::vector<StepKind> kinds(steps.size(), StepKind::ordinary);
  std::vector<double> most_ns(steps.size(), much_ns);
  for (std::size_t k = 1; k < kKinds; ++k) {
    const std::vector<double> ns = of_kind_[k].in(steps);
    const double usual_ns = middle(ns);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const double more_ns = ns[s] - usual_ns;
      if (ns[s] <= kManyTimes * usual_ns || more_ns <= most_ns[s]) continue;
      most_ns[s] = more_ns;
      kinds[s] = static_cast<StepKind>(k);
    }
  }
  const std::vector<double> backward_ns = backward_.in(steps), operators_ns = operators_.in(steps);
  const bool most_have_one = middle(backward_ns) > 0;
  std::vector<SpecialStep> special;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const bool evaluates = most_have_one && backward_ns[s] == 0 && operators_ns[s] > much_ns;
    if (kinds[s] == StepKind::ordinary && evaluates) kinds[s] = StepKind::evaluation;
    if (kinds[s] != StepKind::ordinary) special.push_back({steps[s].number, kinds[s]});
  }
  return special;
}

// Assigns each operator to the step in which it starts, by binary search.
std::vector<StepSize> StepSigns::sizes(std::span<const StepStretch> steps) const {
  std::vector<StepSize> work;
  for (const StepStretch& step : steps) work.push_back({step.number, 0});
  for (const Sized& op : sized_) {
    const auto behind = std::ranges::partition_point(
        steps, [&](const StepStretch& step) { return step.start_ns <= op.start_ns; });
    if (behind == steps.begin() || op.start_ns >= std::prev(behind)->end_ns) continue;
    work[static_cast<std::size_t>(std::prev(behind) - steps.begin())].size += op.size;
  }
  return work;
}

// Uses the events in memory, for ranks that were not read from a profiler trace.
void tell_steps_apart(RecordedRank& rank) {
  StepSigns signs;
  const auto add = [&](EventClass what, const auto& event, NameId shapes = {}) {
    signs.add(what, rank.names.text(event.name), event.start.count(), event.duration.count(),
              shapes.valid() ? rank.names.text(shapes) : std::string_view{});
  };
  for (const CpuOp& op : rank.cpu_ops)
    add(op.kind == CpuOp::Kind::op ? EventClass::op : EventClass::annotation, op, op.input_shapes);
  for (const RuntimeCall& call : rank.runtime_calls) add(EventClass::runtime, call);
  for (const GpuOp& op : rank.gpu_ops)
    add(op.kind == GpuOp::Kind::memcpy ? EventClass::memcpy : EventClass::kernel, op);
  std::vector<StepStretch> steps;
  for (const RecordedStep& step : find_steps(rank))
    steps.push_back({step.number, step.start.count(), step.end.count()});
  rank.special_steps = signs.special(steps);
  rank.step_sizes = signs.sizes(steps);
}

}  // namespace stepcast::detail
