// A recorded job, independent of its file formats, as the rest of the program uses it: one Program (task
// graph) per step.
//
//   STEPCAST_ASSIGN(const TraceListing listing, list_traces(places));
//   STEPCAST_ASSIGN(const std::unique_ptr<RecordedSource> source, source_kind(listing.kind()).open(listing, {}));
//   STEPCAST_ASSIGN(RecordedProgram recorded, source->program({.step = 12}));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/sources/source_kind.h"
#include "stepcast/sources/trace_listing.h"
#include "stepcast/sources/trace_set.h"

namespace stepcast {

// Base class of the source kinds. Not copyable: programs and indices refer to the traces in it.
class RecordedSource {
 public:
  virtual ~RecordedSource() = default;

  // The name of the job, notes for the user, and the profiler and execution traces that were read. The lists
  // of traces are empty for formats that have neither (Chakra, timelines of pipelines).
  [[nodiscard]] const TraceSet& traces() const { return traces_; }
  // Name of the GPU the job was recorded on, from the first trace that names one. Empty if no trace does.
  [[nodiscard]] std::string device() const;
  // Numbers of the steps that all ranks recorded, ascending. Empty for formats with a single unnumbered step,
  // in which there is nothing to compare.
  [[nodiscard]] virtual std::vector<std::int64_t> steps() const { return {}; }

  // The task graph of step `how.step`. Default: the typical step of profiler traces (rebuild_program()), the
  // last step of a pipeline timeline, the only step of other formats. Work without a recorded time is priced
  // by `platform`. Errors: a step that was not recorded; times that neither the files nor a platform supply.
  [[nodiscard]] virtual Result<RecordedProgram> program(const RebuildOptions& how,
                                                        const Platform* platform = nullptr) const = 0;

  // The same as program(), for the last call on this source. Frees the events of all ranks, which take
  // gigabytes for thousands of ranks. Sources that can do so free each rank as soon as its tasks are built.
  // Later calls of program() are not allowed.
  [[nodiscard]] virtual Result<RecordedProgram> last_program(const RebuildOptions& how,
                                                             const Platform* platform = nullptr);

 protected:
  explicit RecordedSource(TraceSet traces) : traces_(std::move(traces)) {}
  RecordedSource(const RecordedSource&) = delete;
  RecordedSource& operator=(const RecordedSource&) = delete;

  // Frees the events and the execution trace of the rank at this position. File name, rank number, world size
  // and devices stay, since reports name them.
  void forget_events(std::size_t rank);

  TraceSet traces_;
};

}  // namespace stepcast
