// The JSON of a replay, stepcast.replay/2: two forecasts, and the additional results of comparing them with
// the record. Each function writes the members of one object: name, value and, for the schema, its meaning.

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/replay_document.h"
#include "stepcast/report/replay_verdict.h"

namespace stepcast {

namespace detail {
// Times by culprit, as one JSON object.
struct ReplayCulprits {
  CulpritTimes us{};
};

constexpr std::string_view schema_name(const ReplayCulprits*) { return "culprits"; }
}  // namespace detail

// The names of these types in the $defs of the schema.
constexpr std::string_view schema_name(const TimePair*) { return "pair"; }
constexpr std::string_view schema_name(const ErrorSpread*) { return "spread"; }

namespace detail {
namespace {

// Times in milliseconds with six decimals, and in microseconds with three.
auto ms(double us) { return fixed<6>(us * 1e-3); }
auto us3(double us) { return fixed<3>(us); }

std::vector<Fixed<6>> all_ms(const std::vector<double>& us) {
  std::vector<Fixed<6>> times;
  for (const double one : us) times.push_back(ms(one));
  return times;
}

// The entries above 0, by the name of their edge origin.
template <class Values, class Shown>
auto by_origin(const Values& values, const Shown& shown) {
  std::vector<std::pair<std::string_view, decltype(shown(std::size_t{}))>> out;
  for (std::size_t o = 0; o < values.size(); ++o)
    if (values[o] > 0) out.emplace_back(to_string(static_cast<EdgeOrigin>(o)), shown(o));
  return out;
}

// The number of edges of one origin, and of those that were inferred.
struct ReplayEdges {
  std::uint32_t n = 0, inferred = 0;
};

void fields(auto& a, Is<ReplayEdges> auto& e) {
  a("n", e.n);
  a("inferred", e.inferred);
}

}  // namespace

// The members of objects that occur in several places.
void fields(auto& a, Is<ReplayCulprits> auto& c) {
  constexpr std::array<std::string_view, kCulpritCount> kMeanings{
      "kernels, fills, copies on the device and dependencies between streams, in ms",
      "CPU time that delays the GPU, in ms",
      "copies between host and device, in ms",
      "transfers of collectives, in ms",
      "extra kernel time of the last rank, due to more work in the same operators than the median rank, in "
      "ms",
      "late start of the last rank, in ms",
      "gaps between queued kernels, work from before the step, and time after the last work, in ms"};
  for (std::size_t k = 0; k < kCulpritCount; ++k)
    a(to_string(static_cast<Culprit>(k)), ms(c.us[k]), kMeanings[k]);
}

void fields(auto& a, Is<TimePair> auto& t) {
  a("measured", ms(t.measured_us));
  a("simulated", ms(t.simulated_us));
  a("error_percent", fixed<6>(100 * t.error()));
}

void fields(auto& a, Is<ErrorSpread> auto& e) {
  a("n", e.n);
  a("median", us3(e.median_us));
  a("p95", us3(e.p95_us));
  a("max", us3(e.max_us));
}

namespace {

// The step time of a rank or a variant, measured and simulated.
void step(auto& a, const TimePair& times) {
  a("step_time_ms", ms(times.simulated_us), "simulated step time, in ms");
  a("measured_step_time_ms", ms(times.measured_us), "recorded step time in ms: CPU duration of ProfilerStep");
  a("step_error_percent", fixed<6>(100 * times.error()), "(simulated - measured) / measured");
}

// How much of a rank's recorded waiting the dependencies explain.
void explained(auto& a, const ReplayedRank& rank, const RecordedStepFacts& facts) {
  a("simulated_wait_us", us3(rank.simulated_wait_us),
    "time in the simulated step in which its last thread waits, in us");
  a("recorded_wait_us", us3(facts.recorded_wait_us),
    "recorded waiting in calls beyond their base cost, in us");
  a("unexplained_wait_us", us3(facts.unexplained_wait_us),
    "part of recorded_wait_us without a dependency that explains it; the replay omits it");
  a("gpu_late_us", us3(facts.gpu_late_us),
    "time in which GPU work was ready but had not started for no known reason, in us");
  a("late_gpu_work", facts.late_gpu_work, "number of GPU tasks that started late for no known reason");
  a("graph_nodes", facts.graph_nodes,
    "number of later nodes of graph launches; they keep their recorded offsets");
  a("overlapping_kernels", facts.overlapping_kernels,
    "number of GPU tasks that started before the previous one on their stream ended; they depend on its "
    "start");
  a("kept_starts", facts.kept_starts,
    "number of starts and returns kept as recorded because they waited for work before the trace began");
  a("kept_delay_us",
    by_origin(facts.kept_delay_us, [&](std::size_t o) { return us3(facts.kept_delay_us[o]); }),
    "recorded delays that the replay copies instead of explaining, by origin, in us");
  a("edges",
    by_origin(facts.edge_count,
              [&](std::size_t o) {
                return ReplayEdges{facts.edge_count[o], facts.inferred_edge_count[o]};
              }),
    "number of dependencies by origin");
  a("left_over_kernels", facts.left_over_kernels,
    "number of GPU tasks in the window that were launched before it");
  a("kernel_start_error_us", rank.kernel_start);
}

// One recorded rank.
void rank(auto& a, const ReplayedRank& rank, const RecordedStepFacts& facts) {
  a("rank", rank.rank);
  step(a, rank.step);
  a("gpu_window_ms", rank.gpu_window,
    "time from the step start to the end of the last GPU work launched in it, in ms");
  const AllocatorPeak peak = facts.memory.value_or(AllocatorPeak{});
  const auto memory = Object{[peak](auto& m) {
    m("peak_allocated_bytes", peak.allocated_bytes);
    m("peak_reserved_bytes", peak.reserved_bytes);
  }};
  a("memory", given_if(facts.memory.has_value(), memory),
    "peaks of the caching allocator in the recorded step, if recorded");
  a("explained", Object{[&](auto& e) { explained(e, rank, facts); }});
}

// The culprits of one rank, and its utilization.
void culprits(auto& a, const ReplayAnalysis& r, const RankCulprits& one) {
  const std::size_t c = one.rank_class.index();
  const RankUtilization& rates = at_or_none(r.rates.ranks, c);
  a("rank", at_or_none(r.facts, c).rank);
  a("came_last", one.came_last, "number of collectives in which the rank arrived last, without ties");
  a("caused_wait_ms", ms(one.caused_wait_us), "waiting of the other ranks in these collectives, in ms");
  a("waited_ms", ms(one.waited_us), "waiting of the rank in collectives, hidden or exposed, in ms");
  a("own_ms", ReplayCulprits{one.own_us},
    "work and waiting of the rank that no other rank causes, by cause, in ms");
  a("through_others_ms", ReplayCulprits{one.through_others_us},
    "exposed waiting for another rank by the cause on that rank, in ms; with own_ms it sums to the step");
  a("caused_by_ms", ReplayCulprits{one.caused_by_us},
    "causes of the rank's delay while others waited for it, in ms; the sum is caused_wait_ms");
  a("gpu_busy_ms", ms(rates.busy_us), "time in which some stream computes, transfers or copies, in ms");
  a("computing_ms", ms(rates.computing_us),
    "time in which some stream runs a kernel that is not communication, in ms");
  a("kernels_ms", ms(rates.kernel_us), "summed time of these kernels, in ms");
  a("kernels_of_known_work_ms", ms(rates.known_us), "summed time of the kernels with known work, in ms");
  a("flops", fixed<0>(rates.flops), "of the known work");
  a("bytes", fixed<0>(rates.bytes), "of the known work");
}

// Operators that differ between ranks, and operators of the CPU that the GPU waits for.
void operators(auto& a, const ReplayAnalysis& r) {
  a("operators",
    Each{r.operators,
         [&](auto& o, const OperatorComparison& op) {
           o("name", op.op, "innermost operator; empty: outside any operator");
           o("on", OneOf{op.on_gpu ? "gpu" : "host", {"gpu", "host"}});
           o("median_ms", ms(op.median_us), "median time over ranks, in ms");
           o("slowest_rank", at_or_none(r.facts, op.slowest).rank);
           o("slowest_ms", ms(at_or_none(op.times_us, op.slowest)));
           o("work_ratio",
             fixed<6>(std::isfinite(op.work_ratio) ? std::optional{op.work_ratio} : std::nullopt),
             "FLOPs or bytes of the slowest rank over those of the median rank, whichever ratio is larger. "
             "1: work unknown; null: the median rank has none");
           o("ranks_ms", all_ms(op.times_us), "[rank class]");
         }},
    "operators with the largest time difference between the slowest and the median rank");
  a("awaited_operators",
    Each{r.awaited,
         [](auto& o, const AwaitedOperator& op) {
           o("name", op.op, "outermost operator or annotation of the launching thread");
           o("gpu_idle_ms", ms(op.gpu_idle_us),
             "GPU idle time of all ranks due to the operator, in ms; the sum is the idle time for the CPU");
           o("gaps", op.gaps, "number of idle intervals");
           o("ranks_ms", all_ms(op.ranks_us), "[rank class]");
         }},
    "CPU operators that the GPU waits for, longest first");
}

// The rates of collectives and kernels, with the peaks of the platform.
void rates(auto& a, const ReplayAnalysis& r) {
  a("groups",
    Each{r.groups,
         [](auto& o, const GroupTraffic& g) {
           o("group", g.group);
           o("operation", g.operation);
           o("n_ranks", g.n_ranks);
           o("n", g.n, "number of collectives");
           o("message_bytes", fixed<0>(g.message_bytes), "summed message size, in bytes");
           o("transfer_ms", ms(g.transfer_us), "summed transfer time without waiting, in ms");
           o("mean_wait_ms", ms(g.wait_us), "waiting time summed over collectives, mean over ranks, in ms");
           o("bus_GBps", fixed<6>(g.bus_GBps), "bus bandwidth as nccl-tests counts it, in GB/s");
           o("largest_message_bytes", fixed<0>(g.largest_message_bytes));
           o("largest_bus_GBps", fixed<6>(g.largest_bus_GBps),
             "bus bandwidth of the largest message, in GB/s");
           o("link_GBps", fixed<6>(g.link_GBps),
             "link bandwidth in one direction per GPU, in GB/s; null: unknown");
           o("link", g.link);
           o("holds_waiting", g.holds_waiting,
             "whether ranks of the group are missing: times then include waiting for them, and bus "
             "bandwidths are lower bounds");
         }},
    "collectives by process group and operation, most time first");
  a("classes",
    Each{r.rates.classes,
         [](auto& o, const ClassRate& c) {
           o("class", to_string(c.kernel_class));
           o("time_ms", ms(c.time_us), "kernel time of all ranks, in ms");
           o("of_known_work_ms", ms(c.known_us));
           o("flops", fixed<0>(c.flops), "of the known work");
           o("bytes", fixed<0>(c.bytes), "of the known work");
         }},
    "kernels by class, longest first");
  a("peak_tflops", fixed<6>(r.rates.peak_tflops),
    "peak of the platform in the type with most FLOPs, in TFLOP/s");
  a("peak_memory_GBps", fixed<6>(r.rates.peak_GBps), "peak memory bandwidth of the platform, in GB/s");
}

// What delays the simulated step.
void diagnosis(auto& a, const ReplayAnalysis& r) {
  CulpritTimes mean{};
  for (std::size_t k = 0; k < kCulpritCount; ++k) mean[k] = r.culprits.of(static_cast<Culprit>(k));
  a("platform", r.platform,
    "platform with the peaks and links for comparison; null: no platform has the recorded GPU");
  a("bound_by", r.binding.bound_by(), "resource that saves most of the step if it is twice as fast");
  a("twice_as_fast",
    Each{r.binding.gains,
         [&](auto& o, const ResourceGain& gain) {
           o("resource", OneOf{to_string(gain.resource), {"gpu", "host", "communication"}},
             "resource: gpu (kernels, fills and copies), host or communication");
           o("saved_ms", ms(gain.saved_us), "step time saved in a sequence of equal steps, in ms");
         }},
    "savings with a twice as fast resource, largest first");
  a("culprits_ms", ReplayCulprits{mean}, "causes of the time of the mean step, in ms; the sum is the step");
  a("collectives", r.culprits.collectives, "number of collectives with at least two ranks");
  a("ties", r.culprits.ties, "number of these collectives in which the last two arrivals are within tie_us");
  a("tie_us", r.culprits.tie_us, "largest clock error between ranks, in us");
  a("ranks", Each{r.culprits.ranks, [&](auto& o, const RankCulprits& one) { culprits(o, r, one); }},
    "in the order of rank_classes");
  operators(a, r);
  rates(a, r);
}

// The waiting in collectives, simulated and measured.
void waits(auto& a, const ReplayAnalysis& r) {
  struct Waits {
    ForecastCollective collective;
    std::vector<double> measured_us;
  };
  std::vector<Waits> rows;
  for (std::size_t i = 0; i < r.measured_wait_us.size() && i < r.simulated.collectives.size(); ++i)
    rows.push_back({r.simulated.collectives[i], r.measured_wait_us[i]});
  a("collective_waits",
    Each{rows,
         [&](auto& o, const Waits& row) {
           o("name", row.collective.name);
           o("ordinal", row.collective.ordinal);
           std::size_t m = 0;
           o("members",
             Each{row.collective.members, [&](auto& w, const ForecastMember& member) {
                    w("rank", at_or_none(r.facts, member.rank_class).rank);
                    w("simulated_wait_us", us3(member.wait_us));
                    w("measured_wait_us", us3(at_or_none(row.measured_us, m++)),
                      "recorded waiting in us: time in the collective minus the shortest time of any member");
                  }});
         }},
    "in the order of simulated.collectives");
}

// One variant: the same traces under other rules.
void variant(auto& a, const ReplayAnalysis& r, const ReplayVariant& variant) {
  a("global_window_ms", variant.global_window);
  std::size_t c = 0;
  a("ranks", Each{variant.step, [&](auto& o, const TimePair& times) {
                    o("rank", at_or_none(r.facts, c).rank);
                    step(o, times);
                    o("gpu_window_ms", at_or_none(variant.gpu_window, c++));
                  }});
}

}  // namespace

// The document itself. The order of calls is the order of the keys.
void fields(auto& a, Is<ReplayAnalysis> auto& r) {
  const TimePair longest = longest_step(r);
  a("step_time_ms", ms(longest.simulated_us), "simulated step time, longest of all ranks, in ms");
  a("measured_step_time_ms", ms(longest.measured_us), "recorded step time, longest of all ranks, in ms");
  a("step_error_percent", fixed<6>(100 * longest.error()));
  a("repeated_step_time_ms", ms(r.binding.step_us),
    "simulated step time in a sequence of equal steps, in ms. Longer than step_time_ms if the CPU runs ahead "
    "of the GPU; predict starts from it.");
  a("global_window_ms", r.global_window,
    "time from the earliest step start to the last end of a step or of its GPU work, over all ranks, in ms");
  a("kernel_start_error_us", r.kernel_start,
    "error of the start times of GPU work, relative to the step start, over all ranks, in us");
  a("verdict", replay_verdict(r),
    "bottleneck of the step and the rank that delays the others, in one sentence");
  a("diagnosis", Object{[&](auto& d) { diagnosis(d, r); }}, "bottlenecks of the simulated step");
  a("warning", r.warning,
    "set if a step time is off by more than 2 %, or GPU start times by more than 1 % of the step");
  a("inputs", Each{r.inputs, [](auto& i, const ReplayInput& input) {
                     i("rank", input.rank);
                     i("world_size", input.world_size);
                     i("profiler", input.profiler, "profiler trace file");
                     i("execution_trace", input.execution_trace, "execution trace file");
                     i("device", input.device);
                     i("events", input.events, "number of events read");
                     i("skipped_events", input.skipped, "number of events skipped, by reason");
                     i("special_steps",
                       Each{input.special_steps,
                            [](auto& s, const SpecialStep& special) {
                              s("step", special.number);
                              s("kind", special.kind);
                            }},
                       "steps that differ from the other steps of the file");
                   }});
  a("shape_groups",
    given_if(!r.shape_groups.empty(), Each{r.shape_groups,
                                           [](auto& g, const ShapeGroup& group) {
                                             g("steps", group.steps);
                                             g("median_step", group.median_step);
                                             g("median_ms", fixed<6>(group.median_ms));
                                           }}),
    "groups of steps with equal shapes, if steps differ by shape; most frequent first. The first group is "
    "replayed unless you give a step.");
  std::size_t c = 0;
  a("ranks", Each{r.ranks, [&](auto& o, const ReplayedRank& one) { rank(o, one, at_or_none(r.facts, c++)); }},
    "in the order of rank_classes of both forecasts");
  waits(a, r);
  a("baseline", Object{[&](auto& b) {
      b("time_ms", fixed<6>(r.baseline_ms));
      b("rank", r.baseline_class ? std::optional{at_or_none(r.facts, *r.baseline_class).rank} : std::nullopt);
      b("stream", r.baseline_stream);
    }},
    "published baseline: largest over all ranks");
  a("variants",
    EachUnder{r.variants, [](const ReplayVariant& v) { return v.name; },
              [&](auto& o, const ReplayVariant& v) { variant(o, r, v); }},
    "replays of the same traces with other rules: naive, smallest_handoff");
  a("constants", Each{r.constants, [](auto& o, const ReplayConstant& constant) {
                        o("name", constant.name);
                        o("value_us", us3(constant.value_us));
                        o("clean", constant.clean, "number of operations from which it was learned");
                        o("all", constant.all, "number of operations of this kind");
                        o("fallback", constant.fallback,
                          "whether no operation was clean and the value comes from related constants");
                      }});
  a("simulated", r.simulated, "forecast of kind replay");
  a("measured", r.measured, "forecast of kind measurement");
}

}  // namespace detail

STEPCAST_ANSWER(replay, ReplayAnalysis, "stepcast.replay/2", "stepcast replay --json")

}  // namespace stepcast
