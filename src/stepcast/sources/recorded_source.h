// The traces of one job, whatever they are, as what everything behind them works on: Programs of its steps.
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

class RecordedSource {
 public:
  virtual ~RecordedSource() = default;

  // Its name, what a person should know of it, and what was read: profiler traces and execution traces, empty where the
  // files are others.
  [[nodiscard]] const TraceSet& traces() const { return traces_; }
  // The GPU that recorded, as the first trace that names one has it; else empty.
  [[nodiscard]] std::string device() const;
  // Numbers of the steps that all ranks have, where there is more than one step to compare.
  [[nodiscard]] virtual std::vector<std::int64_t> steps() const { return {}; }

  // The step that was asked for, else the last. Where files have no times, they are those of the `platform`. Errors: a
  // step that is not there; times that neither the files nor a platform have.
  [[nodiscard]] virtual Result<RecordedProgram> program(const RebuildOptions& how,
                                                        const Platform* platform = nullptr) const = 0;

  // The same of the last step that is asked for. Gives back the memory of all events, of which thousands of ranks take
  // gigabytes, rank by rank as their tasks stand where it can.
  [[nodiscard]] virtual Result<RecordedProgram> last_program(const RebuildOptions& how,
                                                             const Platform* platform = nullptr);

 protected:
  explicit RecordedSource(TraceSet traces) : traces_(std::move(traces)) {}
  RecordedSource(const RecordedSource&) = delete;
  RecordedSource& operator=(const RecordedSource&) = delete;

  // The events of a rank; what a report says of its file stays.
  void forget_events(std::size_t rank);

  TraceSet traces_;
};

}  // namespace stepcast
