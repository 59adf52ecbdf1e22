// Source kind "pipeline": the timeline of a pipeline-parallel job (trace/pipeline_timeline.h). One file
// contains all ranks and steps. It has start and end times of stage operations, but neither operators of
// PyTorch nor kernels.
#include <array>
#include <utility>

#include <fmt/format.h>

#include "stepcast/rebuild/pipeline_program.h"
#include "stepcast/sources/recorded_source.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

SourceKind pipeline_source();

namespace {

// All steps of one timeline file.
class PipelineSource : public RecordedSource {
 public:
  PipelineSource(TraceSet named, PipelineTimeline timeline)
      : RecordedSource(std::move(named)), timeline_(std::move(timeline)) {}

  // Replays one step (`how.step`, by default the last). Its launch delays are the medians of all other steps
  // in the file, so that the replayed step is not fitted to itself. A file with one step has launch delays of
  // 0, and a note says so.
  [[nodiscard]] Result<RecordedProgram> program(const RebuildOptions& how,
                                                const Platform* /*platform*/) const override {
    const std::int64_t step = how.step.value_or(timeline_.steps.back());
    std::vector<std::int64_t> others = timeline_.steps;
    std::erase(others, step);
    STEPCAST_ASSIGN(RecordedProgram program,
                    pipeline_program(timeline_, step, learn_launch_delays(timeline_, others)));
    program.notes.push_back(
        others.empty()
            ? std::string{"only one step: launch delays are unknown and assumed to be 0"}
            : fmt::format("launch delays are medians of the other {} steps of the file", others.size()));
    if (timeline_.bad_times > 0)
      program.notes.push_back(
          fmt::format("warning: {} operators were left out: they have {}", timeline_.bad_times, kBadTime));
    return program;
  }

 private:
  PipelineTimeline timeline_;
};

// Error: the listing has more than one timeline. Each file already contains a whole job, so two of them are
// two jobs.
Result<std::unique_ptr<RecordedSource>> open_pipeline(const TraceListing& listing,
                                                      const TraceSetOptions& /*options*/) {
  const std::vector<std::filesystem::path>& files = listing.of(SourceKindId::pipeline);
  if (files.size() > 1) {
    return Error::at(listing.name, fmt::format("{} pipeline timelines are given", files.size()))
        .advice("give one of them: each has all ranks of a job");
  }
  STEPCAST_ASSIGN(PipelineTimeline timeline, read_pipeline_timeline(files.front()));
  TraceSet named;
  named.name = listing.name;
  return std::unique_ptr<RecordedSource>{
      std::make_unique<PipelineSource>(std::move(named), std::move(timeline))};
}

// Requests that need operators or kernels, which a timeline does not name.
constexpr std::array kNeedOperators{TraceAsk::second_trace,
                                    TraceAsk::modelled_kernels,
                                    TraceAsk::scaled_kernels,
                                    TraceAsk::host_overheads,
                                    TraceAsk::shapes_of_step,
                                    TraceAsk::recorded_on,
                                    TraceAsk::batch,
                                    TraceAsk::dtype,
                                    TraceAsk::data_parallel_ranks,
                                    TraceAsk::bucket_size,
                                    TraceAsk::recompute,
                                    TraceAsk::links_of,
                                    TraceAsk::rank_platform};
constexpr std::array kAllSteps{TraceAsk::all_steps}, kPlatform{TraceAsk::platform}, kRanks{TraceAsk::ranks};
constexpr std::array kPipelineRefusals{
    Refusal{"a pipeline timeline has no operators and no kernels, but {} needs them",
            "leave it out; --what-if, --overlap, --like-median-rank, --step and --scenarios modify the "
            "recorded step",
            kNeedOperators},
    Refusal{"{} is for traces of PyTorch", "`stepcast replay --step N` replays one step of a pipeline",
            kAllSteps},
    Refusal{"pipeline timelines hold no operations, so they cannot be moved to another GPU",
            "leave --platform out; use --what-if nvlink=2x for faster transfers", kPlatform},
    Refusal{"a pipeline timeline is replayed as a whole", "leave --ranks out", kRanks}};

}  // namespace

SourceKind pipeline_source() {
  return {
      .called = "a pipeline timeline",
      .times = RecordedTimes::all,
      .names_gpu = false,
      .has_launches = false,
      .is_one_file = true,
      .refusals = kPipelineRefusals,
      .holds = [](TraceFormat format, std::string_view) { return format == TraceFormat::pipeline_timeline; },
      .open = open_pipeline};
}

}  // namespace stepcast
