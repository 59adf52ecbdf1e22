#include "stepcast/report/rl_timeline.h"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/trace_events.h"
#include "stepcast/report/rl_document.h"

namespace stepcast {
namespace {

using detail::Ns;
using detail::TraceArg;
using detail::TraceEvents;

// A part of the step of a pool. A part with others inside is as long as their sum.
struct RlSlice {
  std::string_view name, category;
  double seconds = 0;
  std::vector<TraceArg> args{};
  std::vector<RlSlice> inside{};
};

// Lengths are rounded before they are added, so that slices nest.
Ns length_of(const RlSlice& part) {
  if (part.inside.empty()) return static_cast<Ns>(std::llround(part.seconds * 1e9));
  Ns sum = 0;
  for (const RlSlice& one : part.inside) sum += length_of(one);
  return sum;
}

void add_part(const RlSlice& part, int pid, Ns start, TraceEvents& events) {
  const Ns end = start + length_of(part);
  if (end == start) return;
  events.slice(pid, 1,
               {.start = start, .end = end, .name = part.name, .category = part.category, .args = part.args});
  for (const RlSlice& one : part.inside) {
    add_part(one, pid, start, events);
    start += length_of(one);
  }
}

// Sequences with their tokens, prompts included.
std::vector<TraceArg> amount_of(double sequences, double mean_tokens) {
  return {{"sequences", std::int64_t{std::llround(sequences)}},
          {"tokens", std::int64_t{std::llround(sequences * mean_tokens)}}};
}

RlSlice generation_of(const RlForecast& f) {
  const RlParts& p = f.parts;
  RlSlice part{.name = "generation",
               .category = "generation",
               .args = amount_of(f.generated_sequences, f.mean_tokens),
               .inside = {{"prefill", "generation", p.prefill_s},
                          {"decode", "generation", p.decode_s},
                          {"tail of the longest answers", "generation", p.tail_s}}};
  part.args.push_back({"sequences_at_once_per_engine", f.split.sequences_at_once});
  part.args.push_back({"weights_GiB", f.memory.generation_weights_GiB});
  part.args.push_back({"kv_cache_GiB", f.memory.kv_cache_GiB});
  return part;
}

std::vector<RlSlice> learning_of(const RlForecast& f) {
  const RlParts& p = f.parts;
  std::vector<TraceArg> trained = amount_of(f.trained_sequences, f.mean_tokens);
  std::vector<RlSlice> parts{
      {"log-probabilities", "scoring", p.log_probabilities_s, trained},
      {"reward model", "scoring", p.reward_s, amount_of(f.generated_sequences, f.mean_tokens)}};
  trained.push_back({"layout", f.split.training_layout});
  trained.push_back({"peak_memory_GiB", f.memory.training_peak_GiB});
  parts.push_back({"train", "training", p.train_s, std::move(trained)});
  return parts;
}

void add_pool(const RlForecast& f, int pid, std::string_view name, std::vector<RlSlice> parts,
              TraceEvents& events) {
  events.process(pid, name);
  events.thread(pid, 1, "step", 1);
  parts.push_back({"weights and engine changes", "transfer", f.parts.transfer_s});
  add_part({.name = "step",
            .category = "step",
            .args = {{"algorithm", std::string{to_string(f.algorithm)}},
                     {"split", rl_split_text(f.split)},
                     {"source", "fitted"},
                     {"p10_s", f.p10_s},
                     {"p90_s", f.p90_s}},
            .inside = std::move(parts)},
           pid, 0, events);
}

void add_step(const RlForecast& f, TraceEvents& events) {
  std::vector<RlSlice> generation{generation_of(f)}, learning = learning_of(f);
  if (f.split.on_policy) {
    generation.insert(generation.end(), learning.begin(), learning.end());
    add_pool(f, 1, counted(f.n_gpus, "GPU", "GPUs"), std::move(generation), events);
    return;
  }
  const bool generation_waits = f.parts.generate_s() < f.parts.learn_s();
  (generation_waits ? generation : learning).push_back({"idle", "idle", f.parts.idle_s});
  add_pool(f, 1, "generation: " + counted(f.split.generation_gpus, "GPU", "GPUs"), std::move(generation),
           events);
  add_pool(f, 2, "training: " + counted(f.split.training_gpus, "GPU", "GPUs"), std::move(learning), events);
}

}  // namespace

std::string to_perfetto(const RlForecast& forecast) {
  const auto events = detail::json_trace_events();
  add_step(forecast, *events);
  return events->finish();
}

Status write_perfetto(const OutputFile& file, const RlForecast& forecast) {
  return detail::write_events(file, [&](TraceEvents& events) { add_step(forecast, events); });
}

}  // namespace stepcast
