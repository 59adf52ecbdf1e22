// Source kind "xla": profiles of XLA programs (trace/xla_profile.h). One file has the devices of one host, and
// each device is a rank. Launches by the CPU are in some of them; operators and shapes are in none.
#include <array>
#include <utility>

#include "stepcast/sources/profiler_source.h"

namespace stepcast {

SourceKind xla_source();

namespace {

// The ranks are used like those of profiler traces: they have the same kinds of events.
Result<std::unique_ptr<RecordedSource>> open_xla(const TraceListing& listing,
                                                 const TraceSetOptions& options) {
  STEPCAST_ASSIGN(TraceSet profiles, read_xla_profiles(listing, options));
  return make_profiler_source(std::move(profiles), options.threads);
}

// Requests that need operators with shapes, or sizes of transfers.
constexpr std::array kNeedShapes{TraceAsk::second_trace,
                                 TraceAsk::modelled_kernels,
                                 TraceAsk::host_overheads,
                                 TraceAsk::shapes_of_step,
                                 TraceAsk::batch,
                                 TraceAsk::dtype,
                                 TraceAsk::data_parallel_ranks,
                                 TraceAsk::bucket_size,
                                 TraceAsk::recompute,
                                 TraceAsk::links_of};
constexpr std::array kXlaRefusals{
    Refusal{"XLA profiles have no shapes and no sizes of transfers, but {} needs them",
            "leave it out, or describe the job instead: stepcast predict --model", kNeedShapes}};

}  // namespace

SourceKind xla_source() {
  return {.called = "XLA profiles",
          .times = RecordedTimes::all,
          .names_gpu = true,
          .has_launches = true,
          .is_one_file = false,
          .refusals = kXlaRefusals,
          .holds = [](TraceFormat format, std::string_view) { return format == TraceFormat::xplane; },
          .open = open_xla};
}

}  // namespace stepcast
