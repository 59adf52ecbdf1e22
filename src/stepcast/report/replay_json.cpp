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
      "kernels, fills, copies on the device, dependencies between streams",
      "the CPU",
      "copies between host and device",
      "transfers of collectives",
      "kernels of the last rank, as far as it has more work in the same operators than the median rank",
      "the last rank began its step later",
      "gaps between queued kernels, work from before the step, nothing left to do"};
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
  a("step_time_ms", ms(times.simulated_us), "simulated");
  a("measured_step_time_ms", ms(times.measured_us), "CPU duration of ProfilerStep");
  a("step_error_percent", fixed<6>(100 * times.error()), "(simulated - measured) / measured");
}

// How much of a rank's recorded waiting the dependencies explain.
void explained(auto& a, const ReplayedRank& rank, const RecordedStepFacts& facts) {
  a("simulated_wait_us", us3(rank.simulated_wait_us), "of the step, the thread that ends it does nothing");
  a("recorded_wait_us", us3(facts.recorded_wait_us), "waiting in calls beyond their base cost");
  a("unexplained_wait_us", us3(facts.unexplained_wait_us),
    "of it, what no dependency accounts for; left out of the replay");
  a("gpu_late_us", us3(facts.gpu_late_us),
    "time in which GPU work that every known dependency let start had not started; no cause is known");
  a("late_gpu_work", facts.late_gpu_work, "how much work that was");
  a("graph_nodes", facts.graph_nodes, "later nodes of graph launches, which keep their recorded distances");
  a("overlapping_kernels", facts.overlapping_kernels,
    "GPU work that began before the one ahead on its stream had ended; held by its start");
  a("kept_starts", facts.kept_starts,
    "starts and returns kept as recorded: they waited for work from before the file");
  a("kept_delay_us",
    by_origin(facts.kept_delay_us, [&](std::size_t o) { return us3(facts.kept_delay_us[o]); }),
    "recorded delays that a dependency keeps unchanged, by origin");
  a("edges",
    by_origin(facts.edge_count,
              [&](std::size_t o) {
                return ReplayEdges{facts.edge_count[o], facts.inferred_edge_count[o]};
              }),
    "dependencies by origin");
  a("left_over_kernels", facts.left_over_kernels, "GPU work in the window with its launch before it");
  a("kernel_start_error_us", rank.kernel_start);
}

// One recorded rank.
void rank(auto& a, const ReplayedRank& rank, const RecordedStepFacts& facts) {
  a("rank", rank.rank);
  step(a, rank.step);
  a("gpu_window_ms", rank.gpu_window, "step start to the last GPU end of work launched in it");
  const AllocatorPeak peak = facts.memory.value_or(AllocatorPeak{});
  const auto memory = Object{[peak](auto& m) {
    m("peak_allocated_bytes", peak.allocated_bytes);
    m("peak_reserved_bytes", peak.reserved_bytes);
  }};
  a("memory", given_if(facts.memory.has_value(), memory),
    "largest totals of the caching allocator in the recorded step, where they were recorded");
  a("explained", Object{[&](auto& e) { explained(e, rank, facts); }});
}

// The culprits of one rank, and its utilization.
void culprits(auto& a, const ReplayAnalysis& r, const RankCulprits& one) {
  const std::size_t c = one.rank_class.index();
  const RankUtilization& rates = at_or_none(r.rates.ranks, c);
  a("rank", at_or_none(r.facts, c).rank);
  a("came_last", one.came_last, "collectives, ties left out");
  a("caused_wait_ms", ms(one.caused_wait_us), "waiting of the others in them");
  a("waited_ms", ms(one.waited_us), "itself, also behind own work");
  a("own_ms", ReplayCulprits{one.own_us}, "work and waiting of the rank that no other rank causes");
  a("through_others_ms", ReplayCulprits{one.through_others_us},
    "while it only waits for another rank: the cause on that rank; with own_ms it sums to the step");
  a("caused_by_ms", ReplayCulprits{one.caused_by_us},
    "what held the rank while the others waited for it: sums to caused_wait_ms");
  a("gpu_busy_ms", ms(rates.busy_us), "some stream computes, transfers or copies");
  a("computing_ms", ms(rates.computing_us), "some stream runs a kernel that is not communication");
  a("kernels_ms", ms(rates.kernel_us), "sum of these kernels");
  a("kernels_of_known_work_ms", ms(rates.known_us), "the part with known work");
  a("flops", fixed<0>(rates.flops), "of the known work");
  a("bytes", fixed<0>(rates.bytes), "of the known work");
}

// Operators that differ between ranks, and operators of the CPU that the GPU waits for.
void operators(auto& a, const ReplayAnalysis& r) {
  a("operators",
    Each{r.operators,
         [&](auto& o, const OperatorComparison& op) {
           o("name", op.op, "innermost operator; empty: outside any");
           o("on", OneOf{op.on_gpu ? "gpu" : "host", {"gpu", "host"}});
           o("median_ms", ms(op.median_us), "over ranks");
           o("slowest_rank", at_or_none(r.facts, op.slowest).rank);
           o("slowest_ms", ms(at_or_none(op.times_us, op.slowest)));
           o("work_ratio",
             fixed<6>(std::isfinite(op.work_ratio) ? std::optional{op.work_ratio} : std::nullopt),
             "FLOPs or bytes of the slowest rank over those of the median rank, the larger; 1 where no work "
             "is known; "
             "null: the median rank has none");
           o("ranks_ms", all_ms(op.times_us), "[rank class]");
         }},
    "those in which the slowest rank is furthest from the median one, by time");
  a("awaited_operators",
    Each{r.awaited,
         [](auto& o, const AwaitedOperator& op) {
           o("name", op.op, "outermost operator or annotation of the launching thread");
           o("gpu_idle_ms", ms(op.gpu_idle_us), "all ranks; they sum to the idle time for the CPU");
           o("gaps", op.gaps, "stretches of idle time");
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
           o("n", g.n, "collectives");
           o("message_bytes", fixed<0>(g.message_bytes), "sum");
           o("transfer_ms", ms(g.transfer_us), "sum, without waiting");
           o("mean_wait_ms", ms(g.wait_us), "sum over collectives, mean over ranks");
           o("bus_GBps", fixed<6>(g.bus_GBps), "as nccl-tests counts it");
           o("largest_message_bytes", fixed<0>(g.largest_message_bytes));
           o("largest_bus_GBps", fixed<6>(g.largest_bus_GBps), "of the largest message");
           o("link_GBps", fixed<6>(g.link_GBps), "one direction, per GPU; null: not known");
           o("link", g.link);
           o("holds_waiting", g.holds_waiting,
             "ranks of the group are not here: times hold the waiting for them, bus bandwidths are lower "
             "bounds");
         }},
    "collectives by process group and operation, most time first");
  a("classes",
    Each{r.rates.classes,
         [](auto& o, const ClassRate& c) {
           o("class", to_string(c.kernel_class));
           o("time_ms", ms(c.time_us), "kernels of all ranks");
           o("of_known_work_ms", ms(c.known_us));
           o("flops", fixed<0>(c.flops), "of the known work");
           o("bytes", fixed<0>(c.bytes), "of the known work");
         }},
    "kernels by class, longest first");
  a("peak_tflops", fixed<6>(r.rates.peak_tflops), "of the platform in the type with most FLOPs");
  a("peak_memory_GBps", fixed<6>(r.rates.peak_GBps), "of the platform");
}

// What delays the simulated step.
void diagnosis(auto& a, const ReplayAnalysis& r) {
  CulpritTimes mean{};
  for (std::size_t k = 0; k < kCulpritCount; ++k) mean[k] = r.culprits.of(static_cast<Culprit>(k));
  a("platform", r.platform,
    "with the peaks and links to compare with; null: none has the GPU that recorded");
  a("bound_by", r.binding.bound_by(), "what would save most of the step if it were twice as fast");
  a("twice_as_fast",
    Each{r.binding.gains,
         [&](auto& o, const ResourceGain& gain) {
           o("resource", OneOf{to_string(gain.resource), {"gpu", "host", "communication"}},
             "gpu: kernels, fills and copies");
           o("saved_ms", ms(gain.saved_us), "of the step in a row of such steps");
         }},
    "what the step would save, most first");
  a("culprits_ms", ReplayCulprits{mean}, "of the mean step: it sums to it");
  a("collectives", r.culprits.collectives, "of two ranks and more");
  a("ties", r.culprits.ties, "of them: the last two arrivals within tie_us");
  a("tie_us", r.culprits.tie_us, "how far the clocks of the ranks may differ");
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
           o("members", Each{row.collective.members, [&](auto& w, const ForecastMember& member) {
                               w("rank", at_or_none(r.facts, member.rank_class).rank);
                               w("simulated_wait_us", us3(member.wait_us));
                               w("measured_wait_us", us3(at_or_none(row.measured_us, m++)),
                                 "stay minus the shortest stay of all");
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
  a("step_time_ms", ms(longest.simulated_us), "simulated; the longest of all ranks");
  a("measured_step_time_ms", ms(longest.measured_us), "the longest of all ranks");
  a("step_error_percent", fixed<6>(100 * longest.error()));
  a("repeated_step_time_ms", ms(r.binding.step_us),
    "of the simulated step in a row of such steps: longer where the CPU runs ahead of its GPU; what predict "
    "starts from");
  a("global_window_ms", r.global_window,
    "earliest step start to the last end of a step or of its GPU work, over all ranks");
  a("kernel_start_error_us", r.kernel_start, "starts of GPU work relative to the step's start, all ranks");
  a("verdict", replay_verdict(r), "what holds the step back and who lets the others wait, in one sentence");
  a("diagnosis", Object{[&](auto& d) { diagnosis(d, r); }}, "what holds the simulated step back");
  a("warning", r.warning, "a step is off by more than 2 %, or starts of its GPU work by more than 1 % of it");
  a("inputs", Each{r.inputs, [](auto& i, const ReplayInput& input) {
                     i("rank", input.rank);
                     i("world_size", input.world_size);
                     i("profiler", input.profiler, "file");
                     i("execution_trace", input.execution_trace, "file");
                     i("device", input.device);
                     i("events", input.events, "read");
                     i("skipped_events", input.skipped, "by reason");
                     i("special_steps",
                       Each{input.special_steps,
                            [](auto& s, const SpecialStep& special) {
                              s("step", special.number);
                              s("kind", special.kind);
                            }},
                       "not like the other steps of the file");
                   }});
  a("shape_groups",
    given_if(!r.shape_groups.empty(), Each{r.shape_groups,
                                           [](auto& g, const ShapeGroup& group) {
                                             g("steps", group.steps);
                                             g("median_step", group.median_step);
                                             g("median_ms", fixed<6>(group.median_ms));
                                           }}),
    "where the steps of the files differ by shape: the most frequent shape first, which is replayed where no "
    "step is named");
  std::size_t c = 0;
  a("ranks", Each{r.ranks, [&](auto& o, const ReplayedRank& one) { rank(o, one, at_or_none(r.facts, c++)); }},
    "in the order of rank_classes of both forecasts");
  waits(a, r);
  a("baseline", Object{[&](auto& b) {
      b("time_ms", fixed<6>(r.baseline_ms));
      b("rank", r.baseline_class ? std::optional{at_or_none(r.facts, *r.baseline_class).rank} : std::nullopt);
      b("stream", r.baseline_stream);
    }},
    "published baseline over all ranks");
  a("variants",
    EachUnder{r.variants, [](const ReplayVariant& v) { return v.name; },
              [&](auto& o, const ReplayVariant& v) { variant(o, r, v); }},
    "the same traces under other rules: naive, smallest_handoff");
  a("constants", Each{r.constants, [](auto& o, const ReplayConstant& constant) {
                        o("name", constant.name);
                        o("value_us", us3(constant.value_us));
                        o("clean", constant.clean, "operations it was learned from");
                        o("all", constant.all, "operations of that kind");
                        o("fallback", constant.fallback, "none was clean: from related ones");
                      }});
  a("simulated", r.simulated, "kind replay");
  a("measured", r.measured, "kind measurement");
}

}  // namespace detail

STEPCAST_ANSWER(replay, ReplayAnalysis, "stepcast.replay/2", "stepcast replay --json")

}  // namespace stepcast
