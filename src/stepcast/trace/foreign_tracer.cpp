// Recognises traces of other devices and profilers by the categories of their events, so that the error can
// name them.
#include "stepcast/trace/foreign_tracer.h"

#include <algorithm>

#include "stepcast/base/text.h"

namespace stepcast {
namespace {

// A sign of a profiler.
struct Sign {
  // Start of a category, or of the reason of a skipped event, in lower case.
  std::string_view beginning;
  ForeignTracer tracer;
};

constexpr std::string_view kOnlyCudaAndRocm =
    "stepcast replays traces of PyTorch on NVIDIA and AMD GPUs; describe the job instead: stepcast predict "
    "--model";

constexpr Sign kSigns[] = {
    {"an xla operation",  // kXlaOperation
     {"a trace of an XLA program (JAX or TensorFlow)", "give the *.xplane.pb next to it, which is read"}},
    {"xpu_", {"a trace of Intel GPUs (XPU)", kOnlyCudaAndRocm}},
    {"mtia_", {"a trace of MTIA accelerators", kOnlyCudaAndRocm}},
    {"hpu_", {"a trace of Gaudi accelerators (HPU)", kOnlyCudaAndRocm}},
    {"privateuse1_", {"a trace of a device that a PyTorch extension adds (PrivateUse1)", kOnlyCudaAndRocm}},
    {"aiu_", {"a trace of AIU accelerators", kOnlyCudaAndRocm}},
    {"hip_api",
     {"a trace of rocprof",
      "record with torch.profiler (its traces of AMD GPUs are supported) or `stepcast capture`"}},
    {"kernel_dispatch",
     {"a trace of rocprof",
      "record with torch.profiler (its traces of AMD GPUs are supported) or `stepcast capture`"}},
};

}  // namespace

std::optional<ForeignTracer> foreign_tracer(const RecordedRank& rank) {
  for (const Sign& sign : kSigns) {
    const auto shows = [&](std::string_view text) { return lower(text).starts_with(sign.beginning); };
    for (const auto& [reason, n] : rank.skipped)
      if (shows(reason)) return sign.tracer;
    if (std::ranges::any_of(rank.other_runtimes, shows)) return sign.tracer;
  }
  return std::nullopt;
}

}  // namespace stepcast
