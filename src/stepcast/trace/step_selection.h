// The events of a profiler trace that one step needs, so that nothing else of a large file is kept.
//
//   STEPCAST_ASSIGN(StepSelection selection, scan_steps(file));          // a first pass over the file
//   selection.choose(7);
//   STEPCAST_ASSIGN(const RecordedRank rank, read_kineto(file, {.only = &selection}));
//
// Kept are: the marks of all steps; events of all threads during the step; everything that calls of the step
// launched, whenever it runs; GPU work that still runs when the step starts, with its launches and their
// operators; and the GPU work that ended first, which shows whether the file begins with the step. A replay
// from these events gives the same result as from all events.
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

// A selection for one file.
class StepSelection {
 public:
  // An empty selection, for the first pass.
  StepSelection();
  StepSelection(StepSelection&&) noexcept;
  StepSelection& operator=(StepSelection&&) noexcept;
  ~StepSelection();

  // First pass: call add() with every event, then finish(). Keeps 16 bytes per call and per piece of GPU
  // work.
  void add(const detail::KinetoEvent& event);
  void finish();

  // The numbers N of all complete ProfilerStep#N, ordered by start.
  [[nodiscard]] const std::vector<std::int64_t>& steps() const;
  // The steps that are not ordinary.
  [[nodiscard]] const std::vector<SpecialStep>& special_steps() const;
  // The sizes of all steps by their shapes.
  [[nodiscard]] const std::vector<StepSize>& step_sizes() const;
  // Length of a step in microseconds; 0 if it does not exist.
  [[nodiscard]] double length_us(std::int64_t step) const;
  // True if a call inside the step starts GPU work. Call before choose().
  [[nodiscard]] bool launches_gpu_work(std::int64_t step) const;

  // Prepares the second pass. If the step does not exist, only the marks are kept. `all_operators`: keep the
  // operators of all steps, because an execution trace is joined by the order of all operators. Call once.
  void choose(std::int64_t step, bool all_operators = false);
  // Second pass: true if the event belongs to the selection.
  [[nodiscard]] bool keeps(const detail::KinetoEvent& event) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The step of a job to replay if the user names none: the typical_step() of the common steps with GPU work,
// else the last common step. Empty if the files have no step in common.
[[nodiscard]] std::optional<std::int64_t> step_to_replay(std::span<const StepSelection> files);

// Selects one step in all profiler traces of a job: `step`, by default step_to_replay(). Returns an empty
// list if a file has no steps; the files should then be kept as a whole. `all_operators`: see choose().
// Error: a file that cannot be read.
[[nodiscard]] Result<std::vector<StepSelection>> select_step(std::span<const std::filesystem::path> files,
                                                             std::optional<std::int64_t> step,
                                                             bool all_operators, unsigned threads,
                                                             ReadProgress& progress);

// Estimated size of a file's JSON in bytes: compressed files count with 16 times their size. 0 if the file
// cannot be read.
[[nodiscard]] std::uint64_t bytes_of_json(const std::filesystem::path& file);

}  // namespace stepcast
