// What one step of a profiler trace needs, so that of a large file nothing else is kept.
//
//   STEPCAST_ASSIGN(StepSelection selection, scan_steps(file));          // a first pass over the file
//   selection.choose(7);
//   STEPCAST_ASSIGN(const RecordedRank rank, read_kineto(file, {.only = &selection}));
//
// Kept are the marks of all steps; what threads do while the step lasts; what its calls launched, whenever it runs;
// what the GPU still works on when it begins, with the launches and their operators; and the GPU work that ended first, which tells whether
// the file begins with the step. A replay of the step from these events is the same as from all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/read_progress.h"
#include "stepcast/trace/step_kind.h"
#include "stepcast/trace/step_shapes.h"

namespace stepcast {

namespace detail {
struct KinetoEvent;
}

class StepSelection {
 public:
  StepSelection();
  StepSelection(StepSelection&&) noexcept;
  StepSelection& operator=(StepSelection&&) noexcept;
  ~StepSelection();

  // The first pass: every event, then finish(). Sixteen bytes stay of each call and of each piece of GPU work.
  void add(const detail::KinetoEvent& event);
  void finish();

  // N of every complete ProfilerStep#N, by start.
  [[nodiscard]] const std::vector<std::int64_t>& steps() const;
  // Of them those that are not ordinary.
  [[nodiscard]] const std::vector<SpecialStep>& special_steps() const;
  [[nodiscard]] const std::vector<StepSize>& step_sizes() const;
  [[nodiscard]] double length_us(std::int64_t step) const;
  // Whether a call inside the step starts GPU work.
  [[nodiscard]] bool launches_gpu_work(std::int64_t step) const;

  // For the second pass. Of a step that is not there only the marks are kept. `all_operators`: those of other steps
  // stay, too; an execution trace is joined by the order of all. Once.
  void choose(std::int64_t step, bool all_operators = false);
  [[nodiscard]] bool keeps(const detail::KinetoEvent& event) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The step of a job's profiler traces that is replayed where nobody says: of those that all have the typical_step() of the
// ones with GPU work, else the last. Nothing where they have none in common.
[[nodiscard]] std::optional<std::int64_t> step_to_replay(std::span<const StepSelection> files);

// A selection of one step for each of the profiler traces of a job: `step`, else step_to_replay(). Empty where one has no steps: then they are best kept whole. `all_operators` as for choose(). Errors: a
// file that cannot be read.
[[nodiscard]] Result<std::vector<StepSelection>> select_step(std::span<const std::filesystem::path> files,
                                                             std::optional<std::int64_t> step,
                                                             bool all_operators, unsigned threads,
                                                             ReadProgress& progress);

// How much JSON a file holds; gzip counts sixteenfold. 0 where it cannot be read.
[[nodiscard]] std::uint64_t bytes_of_json(const std::filesystem::path& file);

}  // namespace stepcast
