// Selects the events of one step in two passes over a file. The first pass keeps 16 bytes per call and piece
// of GPU work; choose() derives the correlations that belong to the step; the second pass asks keeps() for
// every event.
#include "stepcast/trace/step_selection.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "stepcast/base/archive.h"
#include "stepcast/base/parallel.h"
#include "stepcast/trace/detail/event_store.h"
#include "stepcast/trace/detail/kineto_event.h"
#include "stepcast/trace/detail/step_signs.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/recorded_rank.h"
#include "stepcast/trace/trace_index.h"

namespace stepcast {
namespace {

using detail::EventClass;
using detail::KinetoEvent;

// All times are those of the file (`ts`), in nanoseconds.
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr auto kToleranceNs = static_cast<std::int64_t>(detail::kClockToleranceUs * 1e3);

using Row = std::pair<std::int64_t, std::int64_t>;  // pid, tid

// A step mark.
struct Mark {
  std::int64_t number = 0, start_ns = 0, end_ns = 0;
  Row row;
};

// Facts about calls and GPU work that the first pass keeps.
struct Call {
  std::int64_t correlation = -1, start_ns = 0;
};

struct GpuEnd {
  std::int64_t correlation = -1, end_ns = 0;
};

// Typical compression ratio of profiler traces with gzip (docs/recording.md).
constexpr std::uint64_t kDeflation = 16;

std::int64_t end_of(const KinetoEvent& event) { return event.start_ns + event.duration_ns; }

// The set of rows of a file. There are few rows, and consecutive events often have the same one.
class Rows {
 public:
  void insert(const KinetoEvent& event) {
    const Row row{event.pid.number, event.tid.number};
    if (!rows_.empty() && row == last_) return;
    rows_.insert(row);
    last_ = row;
  }
  [[nodiscard]] bool contains(const Row& row) const { return rows_.contains(row); }

 private:
  std::set<Row> rows_;
  Row last_{};
};

}  // namespace

struct StepSelection::Impl {
  std::vector<Mark> marks;
  std::vector<std::int64_t> numbers;
  detail::StepSigns signs;
  std::vector<SpecialStep> special;
  std::vector<StepSize> sizes;
  detail::ChunkedList<Call> call_list;
  detail::ChunkedList<GpuEnd> work_list;
  std::vector<Call> calls;   // between finish() and choose()
  std::vector<GpuEnd> work;  // the same, sorted by correlation
  Rows cpu_rows, gpu_rows;
  std::int64_t first_work_end_ns = kNever;

  std::optional<Mark> chosen;
  bool all_operators = false;
  // Correlations of calls inside the step, and of GPU work that was launched before the end of the step and
  // ends after its start.
  std::unordered_set<std::int64_t> correlations;
  // Starts of calls before the step that launched such work, ascending.
  std::vector<std::int64_t> early_ns;

  // True if GPU work has this correlation. Requires sorted `work`.
  [[nodiscard]] bool starts_work(std::int64_t correlation) const {
    const auto at = std::partition_point(work.begin(), work.end(),
                                         [&](const GpuEnd& w) { return w.correlation < correlation; });
    return at != work.end() && at->correlation == correlation;
  }
  [[nodiscard]] const Mark* mark_of(std::int64_t step) const {
    const auto at = std::ranges::find(marks, step, &Mark::number);
    return at == marks.end() ? nullptr : &*at;
  }
};

StepSelection::StepSelection() : impl_(std::make_unique<Impl>()) {}
StepSelection::StepSelection(StepSelection&&) noexcept = default;
StepSelection& StepSelection::operator=(StepSelection&&) noexcept = default;
StepSelection::~StepSelection() = default;

// Collects the marks, and ids with one time of each call and piece of GPU work. Rows are remembered to
// recognise marks on GPU rows.
void StepSelection::add(const KinetoEvent& event) {
  Impl& all = *impl_;
  all.signs.add(event);
  const std::int64_t correlation = event.args.correlation;
  switch (event.event_class) {
    case EventClass::runtime:
      all.cpu_rows.insert(event);
      if (correlation >= 0) all.call_list.push_back({correlation, event.start_ns});
      break;
    case EventClass::kernel:
    case EventClass::memcpy:
    case EventClass::memset:
      all.gpu_rows.insert(event);
      all.first_work_end_ns = std::min(all.first_work_end_ns, end_of(event));
      if (correlation >= 0) all.work_list.push_back({correlation, end_of(event)});
      break;
    case EventClass::op:
    case EventClass::annotation: {
      const auto number = profiler_step_number(event.name.raw);
      if (!number) {
        if (event.event_class == EventClass::op) all.cpu_rows.insert(event);
      } else if (event.duration_ns > 0) {
        all.marks.push_back({*number, event.start_ns, end_of(event), {event.pid.number, event.tid.number}});
      }
      break;
    }
    case EventClass::skip:
    case EventClass::frame:
    case EventClass::sync:
    case EventClass::memory:
    case EventClass::thread_name: break;
  }
}

void StepSelection::finish() {
  Impl& all = *impl_;
  // Marks occur a second time on the rows of GPU streams; those are dropped.
  std::erase_if(all.marks, [&](const Mark& mark) {
    return all.gpu_rows.contains(mark.row) && !all.cpu_rows.contains(mark.row);
  });
  std::ranges::stable_sort(all.marks, [](const Mark& a, const Mark& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  std::vector<detail::StepStretch> steps;
  for (const Mark& mark : all.marks) {
    all.numbers.push_back(mark.number);
    steps.push_back({mark.number, mark.start_ns, mark.end_ns});
  }
  all.special = all.signs.special(steps);
  all.sizes = all.signs.sizes(steps);
  all.calls = all.call_list.take();
  all.work = all.work_list.take();
  std::ranges::sort(all.work, {}, &GpuEnd::correlation);
}

const std::vector<std::int64_t>& StepSelection::steps() const { return impl_->numbers; }

const std::vector<SpecialStep>& StepSelection::special_steps() const { return impl_->special; }

const std::vector<StepSize>& StepSelection::step_sizes() const { return impl_->sizes; }

double StepSelection::length_us(std::int64_t step) const {
  const Mark* const mark = impl_->mark_of(step);
  return mark != nullptr ? static_cast<double>(mark->end_ns - mark->start_ns) * 1e-3 : 0;
}

bool StepSelection::launches_gpu_work(std::int64_t step) const {
  const Mark* const mark = impl_->mark_of(step);
  return mark != nullptr && std::ranges::any_of(impl_->calls, [&](const Call& call) {
           return call.start_ns >= mark->start_ns && call.start_ns < mark->end_ns &&
                  impl_->starts_work(call.correlation);
         });
}

// Derives the correlations of the step, and frees what the first pass kept. A tolerance accounts for clocks
// with whole microseconds.
void StepSelection::choose(std::int64_t step, bool all_operators) {
  Impl& all = *impl_;
  all.all_operators = all_operators;
  if (const Mark* const mark = all.mark_of(step)) {
    all.chosen = *mark;
    const std::int64_t begin = mark->start_ns - kToleranceNs, end = mark->end_ns + kToleranceNs;
    for (const Call& call : all.calls) {
      if (call.start_ns > end) continue;
      if (call.start_ns >= begin) {
        all.correlations.insert(call.correlation);
        continue;
      }
      auto at = std::partition_point(all.work.begin(), all.work.end(),
                                     [&](const GpuEnd& w) { return w.correlation < call.correlation; });
      if (at == all.work.end() || at->correlation != call.correlation) continue;
      for (; at != all.work.end() && at->correlation == call.correlation; ++at)
        if (at->end_ns >= begin && all.correlations.insert(call.correlation).second)
          all.early_ns.push_back(call.start_ns);
    }
    std::ranges::sort(all.early_ns);
  }
  std::vector<Call>{}.swap(all.calls);  // an assignment would not free their memory
  std::vector<GpuEnd>{}.swap(all.work);
}

// Events that overlap the step are kept, and others if their correlation belongs to it. Names of threads and
// skipped events are always kept, since they are counted.
bool StepSelection::keeps(const KinetoEvent& event) const {
  const Impl& all = *impl_;
  if (event.event_class == EventClass::skip || event.event_class == EventClass::frame ||
      event.event_class == EventClass::thread_name)
    return true;
  const bool is_cpu = event.event_class == EventClass::op || event.event_class == EventClass::annotation;
  if (is_cpu && (all.all_operators || profiler_step_number(event.name.raw))) return true;
  if (!all.chosen) return false;
  const std::int64_t start = event.start_ns, end = end_of(event);
  if (start <= all.chosen->end_ns + kToleranceNs && end >= all.chosen->start_ns - kToleranceNs) return true;
  const std::int64_t correlation = event.args.correlation;
  const bool belongs = correlation >= 0 && all.correlations.contains(correlation);
  switch (event.event_class) {
    case EventClass::kernel:
    case EventClass::memcpy:
    case EventClass::memset: return end == all.first_work_end_ns || belongs;
    case EventClass::runtime:
    case EventClass::sync: return belongs;
    case EventClass::op:
    case EventClass::annotation: {  // operators that launched this work are needed to know what it does
      const auto launch = std::ranges::lower_bound(all.early_ns, start);
      return launch != all.early_ns.end() && *launch <= end;
    }
    case EventClass::memory:
    case EventClass::skip:
    case EventClass::frame:
    case EventClass::thread_name: break;
  }
  return false;
}

std::uint64_t bytes_of_json(const std::filesystem::path& file) {
  std::error_code problem;
  const std::uint64_t bytes = std::filesystem::file_size(file, problem);
  if (problem) return 0;
  std::array<char, 2> magic{};
  std::ifstream(file, std::ios::binary).read(magic.data(), magic.size());
  return magic == std::array{'\x1f', '\x8b'} || is_archive(file) ? bytes * kDeflation : bytes;
}

// The same choice as rebuild_program() makes from the events, so that both agree on the step.
std::optional<std::int64_t> step_to_replay(std::span<const StepSelection> files) {
  std::map<std::int64_t, std::size_t> seen;
  for (const StepSelection& file : files)
    for (const std::int64_t step : std::set(file.steps().begin(), file.steps().end())) ++seen[step];
  std::erase_if(seen, [&](const auto& entry) { return entry.second < files.size(); });
  std::vector<StepLength> working;
  for (const auto& [step, n] : seen) {
    StepLength length{step, 0};
    for (const StepSelection& file : files) {
      length.size.push_back(size_of(file.step_sizes(), step));
      length.us = std::max(length.us, file.length_us(step));
      if (std::ranges::find(file.special_steps(), step, &SpecialStep::number) != file.special_steps().end())
        length.is_special = true;
    }
    const auto launches = [&](const StepSelection& file) { return file.launches_gpu_work(step); };
    if (std::ranges::any_of(files, launches)) working.push_back(length);
  }
  if (working.empty()) return seen.empty() ? std::nullopt : std::optional{seen.rbegin()->first};
  return typical_step(std::move(working));
}

Result<std::vector<StepSelection>> select_step(std::span<const std::filesystem::path> files,
                                               std::optional<std::int64_t> step, bool all_operators,
                                               unsigned threads, ReadProgress& progress) {
  std::vector<StepSelection> selections(files.size());
  STEPCAST_TRY(parallel_for(files.size(), threads, [&](std::size_t i) -> Status {
    ReadOptions how{.progress = progress.of_file()};
    STEPCAST_ASSIGN(selections[i], scan_steps(files[i], how));
    return Ok{};
  }));
  const bool all_have_steps =
      std::ranges::none_of(selections, [](const StepSelection& file) { return file.steps().empty(); });
  if (all_have_steps && !step) step = step_to_replay(selections);
  if (!all_have_steps || !step) return std::vector<StepSelection>{};
  for (StepSelection& file : selections) file.choose(*step, all_operators);
  return selections;
}

}  // namespace stepcast
