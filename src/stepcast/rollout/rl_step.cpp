#include "stepcast/rollout/rl_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/names.h"
#include "stepcast/base/number.h"
#include "stepcast/base/units.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/rollout/rl_config.h"
#include "stepcast/workload/memory.h"

namespace stepcast {
namespace {

// Memory share of an engine: the default of vLLM, and the usual share next to a sleeping trainer on the same GPUs
// (gpu_memory_utilization 0.6 in the example configs of NeMo-RL).
constexpr double kEngineMemoryShare = 0.9, kColocatedMemoryShare = 0.6;
// Most concurrent sequences of an engine: max_num_seqs of vLLM on GPUs with at least 70 GiB.
constexpr double kMostAtOnce = 1024;
// Default sequences generated per trained sequence with DAPO: gen_prompt_bsz / train_prompt_bsz of its published recipe (verl).
constexpr double kUsualOversampling = 3;
// Half-widths of the band to the fast and the slow side, in ln.
constexpr double kBandFast = 0.2, kBandSlow = 0.2;
// Default mean tokens of a prompt, for mathematical questions. Assumed.
constexpr double kUsualPrompt = 256;
// Limits of the search: pools, and GPUs of an engine.
constexpr std::int64_t kMostSplits = 16, kLargestEngine = 64;

// The validated settings of a question.
struct Rollout {
  RlAlgorithm algorithm = RlAlgorithm::grpo;
  std::int64_t off_policy_steps = 0;
  DType dtype = DType::bf16;
  Lengths lengths;
  double trained = 0, generated = 0;  // sequences per step
  double prompts = 0;                 // prompts to generate answers for
  double prompt_tokens = 0;           // mean tokens per prompt
  std::int64_t update = 0;            // sequences of one update
  // The reward model; empty: a function without GPU time.
  std::optional<Transformer> reward;
};

// Parses "on" (0 steps) or "off:N". Error: anything else.
Result<std::int64_t> off_policy_steps(const std::string& word) {
  if (word == "on") return 0;
  constexpr std::string_view kOff = "off:";
  if (word.starts_with(kOff) && word.size() <= kOff.size() + 3) {
    std::int64_t steps = 0;
    for (const char c : word.substr(kOff.size()))
      steps = c >= '0' && c <= '9' ? steps * 10 + (c - '0') : -1000;
    if (steps > 0) return steps;
  }
  return Error::at("", "--policy")
      .found("`" + word.substr(0, 80) + "`")
      .expected("on, or off:N steps, such as off:1");
}

Result<RlAlgorithm> algorithm_named(const std::string& word) {
  for (const RlAlgorithm one : {RlAlgorithm::grpo, RlAlgorithm::ppo, RlAlgorithm::dapo})
    if (word == to_string(one)) return one;
  return Error::at("", "--rl").found("`" + word.substr(0, 80) + "`").expected("grpo, ppo or dapo");
}

// Reads and validates the settings, filling in defaults.
Result<Rollout> read(const RlQuestion& question) {
  const RlSettings& s = question.settings;
  constexpr std::int64_t kMost = 1 << 24;
  Rollout out;
  STEPCAST_ASSIGN(out.algorithm, algorithm_named(s.algorithm.empty() ? "grpo" : s.algorithm));
  STEPCAST_ASSIGN(out.off_policy_steps, off_policy_steps(s.policy.empty() ? "on" : s.policy));
  const std::int64_t prompts = s.prompts.value_or(0), generations = s.generations.value_or(1);
  for (const auto& [flag, count] :
       {std::pair{"--prompts", prompts}, std::pair{"--generations", generations}}) {
    if (count >= 1 && count <= kMost) continue;
    return Error::at("", flag)
        .found(prompts == 0 && !s.prompts ? "nothing" : fmt::format("{}", count))
        .expected("a number from 1 to 16777216");
  }
  for (const auto& [flag, degree] : {std::pair{"--generation-tp", s.generation_tensor.value_or(1)},
                                     std::pair{"--generation-pp", s.generation_pipeline.value_or(1)}})
    if (degree < 1 || degree > kMost)
      return Error::at("", flag).found(fmt::format("{}", degree)).expected("a number from 1 to 16777216");
  if (!s.generation_dtype.empty() && s.generation_dtype != "bf16" && s.generation_dtype != "fp8") {
    return Error::at("", "--generation-dtype")
        .found("`" + s.generation_dtype.substr(0, 80) + "`")
        .expected("bf16 or fp8");
  }
  out.dtype = s.generation_dtype == "fp8" ? DType::fp8 : DType::bf16;
  if (const double share = s.generation_memory_share.value_or(kEngineMemoryShare); !(share > 0 && share <= 1))
    return Error::at("", "--generation-memory")
        .found(fmt::format("{:g}", share))
        .expected("a fraction above 0, at most 1");
  STEPCAST_ASSIGN(out.lengths, Lengths::read(s.lengths));
  out.prompt_tokens = as_double(s.prompt_tokens.value_or(0));
  if (!s.prompt_tokens) out.prompt_tokens = std::max(1.0, std::min(kUsualPrompt, out.lengths.mean() / 2));
  if (out.prompt_tokens < 1 || out.prompt_tokens >= out.lengths.mean()) {
    return Error::at("", "--prompt-tokens")
        .found(fmt::format("{:g}", out.prompt_tokens))
        .expected(fmt::format("1 to less than {:.0f}, the mean of prompt and answer", out.lengths.mean()));
  }
  const double more = s.oversampling.value_or(out.algorithm == RlAlgorithm::dapo ? kUsualOversampling : 1);
  if (!(more >= 1) || more > 1000)
    return Error::at("", "--oversampling").found(fmt::format("{:g}", more)).expected("1 to 1000");
  out.trained = as_double(prompts * generations);
  out.prompts = as_double(prompts) * more;
  out.generated = out.trained * more;
  out.update = question.job.settings.global_batch_sequences.value_or(prompts * generations);
  if (out.update < 1 || prompts * generations % out.update != 0) {
    // Searches the nearest number of generations that works, for the message.
    std::int64_t nearest = generations;
    while (nearest < kMost && (out.update < 1 || prompts * nearest % out.update != 0)) ++nearest;
    return Error::at("", "--generations",
                     fmt::format("{} prompts x {} answers do not divide into updates of {}", prompts,
                                 generations, out.update))
        .advice(
            fmt::format("nearest that works: --generations {}, or --gbs {}", nearest, prompts * generations));
  }
  if (!s.reward_model.empty()) {
    STEPCAST_ASSIGN(ResolvedJob job, resolve(Job{.model = s.reward_model}));
    out.reward = std::move(job.model);
  }
  return out;
}

// Training on some GPUs: the times of one update and of a forward pass over its sequences.
struct Training {
  Layout layout;
  double update_s = 0, forward_s = 0;  // forward_s: for the sequences of one update
  RlMemory memory;
  std::vector<std::string> notes;
};

// Degrees, sharding and recomputation of a layout, for the user.
std::string layout_words(const Layout& layout) {
  const Degrees& d = layout.degrees;
  std::string words = fmt::format("tp{} cp{} pp{} ep{} dp{}, {}", d.tensor, d.context, d.pipeline, d.expert,
                                  d.data, to_string(layout.sharding.kind));
  if (layout.layer.recompute.kind != Recompute::none)
    words += fmt::format(", recompute {}", to_string(layout.layer.recompute.kind));
  return words;
}

// Sets the batch to at least `rows` rows, divisible by the given layout. Micro-batches of packed rows have equal sizes, and are
// smaller than their limit if that avoids half-empty ones.
void share_out(double rows, std::int64_t gpus, JobSettings& s) {
  const auto degree = [](const std::optional<std::int64_t>& d) {
    return std::max<std::int64_t>(1, d.value_or(1));
  };
  const std::int64_t copies =
      std::max<std::int64_t>(1, gpus / (degree(s.tensor) * degree(s.pipeline) * degree(s.context)));
  const double of_copy = std::max(1.0, std::ceil(rows / as_double(copies)));
  const double batches = std::ceil(of_copy / as_double(degree(s.micro_batch_sequences)));
  if (s.micro_batch_sequences)
    s.micro_batch_sequences = static_cast<std::int64_t>(std::ceil(of_copy / batches));
  s.global_batch_sequences = copies * degree(s.micro_batch_sequences) * static_cast<std::int64_t>(batches);
}

// Searches the division of GPUs between generation and training, the engine and the layout of training.
class RlSearch {
 public:
  // `prices`: for generation, on the platform of `steps`.
  RlSearch(const RlQuestion& question, const Rollout& rollout, const Transformer& model,
           const StepModel& steps, StepPricer& prices, const RlConstants& constants,
           const TrainingLayout& open_layout)
      : question_(question),
        rollout_(rollout),
        model_(model),
        steps_(steps),
        prices_(prices),
        constants_(constants),
        open_layout_(open_layout) {}

  // The fastest splits under this policy: as many as requested, at least one, each with another number of generation GPUs.
  [[nodiscard]] Result<std::vector<RlAnswer>> best(bool on_policy);

 private:
  // An engine with its memory for keys and values.
  struct Engine {
    EngineLayout layout;
    Generation generation;
    double room = 0, at_once = 0;  // bytes for keys and values; sequences
  };
  // Error: the longest sequence does not fit. `colocated`: next to a trainer on the same GPUs.
  [[nodiscard]] Result<Engine> engine(const EngineLayout& layout, bool colocated);
  // Engine layouts to try on a pool of `gpus` GPUs.
  [[nodiscard]] std::vector<EngineLayout> engines(std::int64_t gpus) const;
  // Numbers of generation GPUs to try. Error: a given number leaves no GPUs on one side.
  [[nodiscard]] Result<std::vector<std::int64_t>> pools(bool on_policy) const;
  // One number of generation GPUs with all engines for it.
  struct Pool {
    Training training;
    bool is_final = false;  // the layout of training is final and not searched again
    std::vector<RlAnswer> engines;
  };
  // All pools with the default layout of training. `why`: the error if the only pool cannot train.
  [[nodiscard]] Result<std::vector<Pool>> usual_pools(bool on_policy, std::optional<Error>& why);
  [[nodiscard]] RlAnswer fastest_of(const Pool& pool, double learning) const;
  [[nodiscard]] std::vector<RlAnswer> ranked(std::vector<Pool>& all);
  // `searched`: takes an open layout from open_layout_, otherwise the default layout.
  [[nodiscard]] Result<Training> train_on(std::int64_t gpus, bool searched) const;
  // The generation part of a split.
  [[nodiscard]] Result<RlAnswer> generated(Engine& engine, const RlSplit& split);
  // Adds the training part and computes the step time.
  void add_training(const Training& training, RlAnswer& out) const;
  // The error if no engine works, with the nearest one that does.
  [[nodiscard]] Error nothing_fits(bool on_policy);

  const RlQuestion& question_;
  const Rollout& rollout_;
  const Transformer& model_;
  const StepModel& steps_;
  StepPricer& prices_;
  const RlConstants& constants_;
  const TrainingLayout& open_layout_;
};

Result<RlSearch::Engine> RlSearch::engine(const EngineLayout& layout, bool colocated) {
  STEPCAST_ASSIGN(Generation generation, Generation::create(model_, layout, prices_));
  const double memory = steps_.platform().device.memory_size.value();
  const double share = question_.settings.generation_memory_share.value_or(colocated ? kColocatedMemoryShare
                                                                                     : kEngineMemoryShare);
  // Memory that the weights leave for keys and values.
  const double room = memory * share - generation.weight_bytes();
  const double longest = generation.cache_bytes(rollout_.lengths.max());
  if (room < longest) {
    return Error{fmt::format(
        "an engine of {} GPUs leaves {:.1f} GiB for the KV cache, but the longest sequence needs {:.1f}",
        layout.gpus(), std::max(0.0, room) / kGiB, longest / kGiB)};
  }
  const double mean = generation.cache_bytes(rollout_.lengths.mean());
  const double at_once = std::min(kMostAtOnce, mean > 0 ? std::floor(room / mean) : kMostAtOnce);
  return Engine{layout, std::move(generation), room, std::max(1.0, at_once)};
}

std::vector<EngineLayout> RlSearch::engines(std::int64_t gpus) const {
  const RlSettings& s = question_.settings;
  const std::int64_t in_node = steps_.platform().node.gpus_per_node;
  std::vector<EngineLayout> all;
  for (std::int64_t tensor = 1; tensor <= std::min(gpus, kLargestEngine); tensor *= 2) {
    const std::int64_t t = s.generation_tensor.value_or(tensor);
    for (std::int64_t pipeline = 1; pipeline <= 8; pipeline *= 2) {
      const std::int64_t p = s.generation_pipeline.value_or(pipeline);
      const EngineLayout one{t, p, rollout_.dtype};
      // Pipeline stages are only useful for models that do not fit a node.
      const bool is_usual = p == 1 || s.generation_pipeline || t >= std::min(in_node, gpus);
      if (is_usual && one.gpus() <= gpus && gpus % one.gpus() == 0) all.push_back(one);
      if (s.generation_pipeline) break;
    }
    if (s.generation_tensor) break;
  }
  return all;
}

// Off-policy pools have sizes in multiples of nodes, at most kMostSplits of them.
Result<std::vector<std::int64_t>> RlSearch::pools(bool on_policy) const {
  const std::int64_t n = *question_.job.n_gpus;
  const std::optional<std::int64_t>& given = question_.settings.generation_gpus;
  if (on_policy) return std::vector{n};
  if (given) {
    if (*given >= 1 && *given < n) return std::vector{*given};
    return Error::at("", "--generation-gpus", "the split leaves one pool empty")
        .found(fmt::format("{} of {}", *given, n))
        .advice(fmt::format("nearest that works: {}", *given < 1 ? 1 : n - 1));
  }
  if (n < 2) {
    return Error::at("", "--gpus", "off-policy needs at least one GPU per pool")
        .found(fmt::format("{}", n))
        .advice("nearest that works: --gpus 2");
  }
  const std::int64_t in_node = steps_.platform().node.gpus_per_node;
  // Whole nodes if there are several, in coarser steps for large jobs.
  std::int64_t step = n > in_node && n % in_node == 0 ? in_node : 1;
  while (n / step > kMostSplits && n % (2 * step) == 0) step *= 2;
  std::vector<std::int64_t> out;
  for (std::int64_t gpus = step; gpus < n; gpus += step) out.push_back(gpus);
  return out;
}

Result<Training> RlSearch::train_on(std::int64_t gpus, bool searched) const {
  Job job = question_.job;
  JobSettings& s = job.settings;
  s.reference_model.reset();  // runs once for all updates, not in each one
  job.n_gpus = gpus;
  // The row length must be divisible among context- and tensor-parallel ranks.
  const std::int64_t pieces =
      2 * std::max<std::int64_t>(1, s.context.value_or(1)) * std::max<std::int64_t>(1, s.tensor.value_or(1));
  const double longest = std::max(rollout_.lengths.max(), 1.0);
  const std::int64_t seq = static_cast<std::int64_t>(std::ceil(longest / as_double(pieces))) * pieces;
  s.seq_len_tokens = seq;
  // Rows are packed: each has the maximum length and contains several sequences.
  s.packed_mean_tokens = std::min(rollout_.lengths.mean(), as_double(seq));
  const double rows = as_double(rollout_.update) * rollout_.lengths.mean() / as_double(seq);
  const bool is_open = leaves_layout_open(job);
  double repeated = 1;  // wanted rows over predicted rows
  if (is_open) {
    // A power of two per GPU, so that every layout that divides the GPUs also divides the batch.
    const double power = std::round(std::log2(std::max(1.0, rows / as_double(gpus))));
    s.global_batch_sequences = gpus << static_cast<int>(std::min(24.0, power));
    repeated = std::max(1.0, rows / as_double(*s.global_batch_sequences));
  } else {
    share_out(rows, gpus, s);
  }
  STEPCAST_ASSIGN(ResolvedJob resolved, resolve(job));
  Training out;
  const Platform& platform = steps_.platform();
  if (is_open) {
    const std::int64_t in_node = platform.node.gpus_per_node;
    const LayoutSearch search{job, {platform.device.memory_size, std::min<std::int64_t>(in_node, 8)}};
    std::optional<LayoutChoice> chosen = search.usual();
    // No usual layout fits: take the one with the least memory.
    if (!chosen) chosen = search.smallest();
    if (searched) {
      if (std::optional<LayoutChoice> planned = open_layout_(job, chosen ? chosen->job : resolved))
        chosen = std::move(planned);
    }
    if (chosen) {
      resolved = std::move(chosen->job);
      if (!chosen->flags.empty()) out.notes.push_back("layout of training not given: " + chosen->flags);
    }
  }
  out.layout = resolved.layout;
  STEPCAST_ASSIGN(const PricedStep priced, steps_.price(resolved.model, resolved.layout));
  const StepPrediction step = steps_.predict(priced, resolved.layout);
  out.update_s = 1e-6 * (step.step.time.value() + (repeated - 1) * passes_us(step));
  out.forward_s = 1e-6 * repeated * forward_us(priced, step);
  STEPCAST_ASSIGN(const MemoryForecast memory,
                  memory_forecast(priced.work, resolved.model, resolved.layout, platform.device.memory_size));
  const StageMemory& stage = memory.stages[memory.worst_stage];
  out.memory = {.training_weights_GiB = stage.weights.value() / kGiB,
                .gradients_GiB = stage.gradients.value() / kGiB,
                .optimizer_GiB = stage.optimizer.value() / kGiB,
                .activations_GiB = (stage.activations + stage.working).value() / kGiB,
                .training_peak_GiB = stage.total().value() / kGiB,
                .available_GiB = memory.available.value() / kGiB,
                .training_fits = memory.verdict != MemoryVerdict::does_not_fit};
  return out;
}

Result<RlAnswer> RlSearch::generated(Engine& engine, const RlSplit& split) {
  const double engines = as_double(split.generation_gpus) / as_double(engine.layout.gpus());
  // For an on-policy question, the off-policy alternative is one step off.
  const std::int64_t in_flight = split.on_policy ? 0 : std::max<std::int64_t>(1, rollout_.off_policy_steps);
  const GenerationLoad load{.sequences = std::ceil(rollout_.generated / engines),
                            .all_sequences = rollout_.generated,
                            .prompts = std::ceil(rollout_.prompts / engines),
                            .prompt_tokens = rollout_.prompt_tokens,
                            .at_once = engine.at_once,
                            .batches_in_flight = as_double(in_flight),
                            .lengths = &rollout_.lengths};
  RlAnswer out;
  STEPCAST_ASSIGN(out.work.generation, engine.generation.generate(load));
  RlForecast& f = out.forecast;
  f.split = split;
  f.memory.generation_weights_GiB = engine.generation.weight_bytes() / kGiB;
  f.memory.kv_cache_room_GiB = engine.room / kGiB;
  f.memory.kv_cache_GiB =
      std::min(load.sequences, load.at_once) * engine.generation.cache_bytes(rollout_.lengths.mean()) / kGiB;
  return out;
}

void RlSearch::add_training(const Training& training, RlAnswer& out) const {
  const double updates = rollout_.trained / as_double(rollout_.update);
  // A critic is trained like the policy, so it doubles the training time.
  const bool critic = rollout_.algorithm == RlAlgorithm::ppo;
  // Forward passes: the policy before the step, its reference and the critic, once each.
  const bool reference =
      question_.job.settings.reference_model.value_or(rollout_.algorithm != RlAlgorithm::dapo);
  const double passes = 1.0 + (reference ? 1 : 0) + (critic ? 1 : 0);
  RlWork& work = out.work;
  work.log_probabilities_s = passes * updates * training.forward_s;
  work.train_s = (critic ? 2 : 1) * updates * training.update_s;
  if (rollout_.reward) {  // scores all generated sequences
    const double size =
        as_double(active_parameter_count(*rollout_.reward)) / as_double(active_parameter_count(model_));
    work.reward_s = size * updates * training.forward_s * rollout_.generated / rollout_.trained;
  }
  work.parameters = as_double(parameter_count(model_).total());
  RlForecast& f = out.forecast;
  f.parts = parts_of(work, f.split, constants_, f.step_s);
  f.split.step_s = f.step_s;
  const RlMemory engine = f.memory;
  f.memory = training.memory;
  f.memory.generation_weights_GiB = engine.generation_weights_GiB;
  f.memory.kv_cache_room_GiB = engine.kv_cache_room_GiB;
  f.memory.kv_cache_GiB = engine.kv_cache_GiB;
  f.notes = training.notes;
  f.split.training_fits = f.memory.training_fits;
  f.split.training_layout = layout_words(training.layout);
}

Error RlSearch::nothing_fits(bool on_policy) {
  Error why{"no engine can be made of these GPUs"};
  const RlSettings& s = question_.settings;
  if (s.generation_tensor) {
    const Result<Engine> asked =
        engine({*s.generation_tensor, s.generation_pipeline.value_or(1), rollout_.dtype}, on_policy);
    if (!asked) why = asked.error();
  }
  for (const std::int64_t pipeline : {1, 2, 4}) {
    for (std::int64_t tensor = 1; tensor <= kLargestEngine; tensor *= 2) {
      if (!engine({tensor, pipeline, rollout_.dtype}, on_policy)) continue;
      const std::string stages = pipeline > 1 ? fmt::format(" --generation-pp {}", pipeline) : "";
      return Error{why.message()}.advice(
          fmt::format("nearest that works: --generation-tp {}{} on a multiple of {} GPUs", tensor, stages,
                      tensor * pipeline));
    }
  }
  return Error{why.message()}.advice("the model and its longest sequence fit in no engine that was tried");
}

Result<std::vector<RlSearch::Pool>> RlSearch::usual_pools(bool on_policy, std::optional<Error>& why) {
  STEPCAST_ASSIGN(const std::vector<std::int64_t> sizes, pools(on_policy));
  const std::int64_t n = *question_.job.n_gpus;
  const bool is_open = open_layout_ && leaves_layout_open(question_.job);
  // Engines and their prices are shared by all pools.
  std::map<std::pair<std::int64_t, std::int64_t>, Engine> known;
  std::vector<Pool> out;
  for (const std::int64_t gpus : sizes) {
    const std::int64_t training_gpus = on_policy ? n : n - gpus;
    Result<Training> trained = train_on(training_gpus, false);
    if (!trained) {
      if (sizes.size() == 1) why = trained.error();
      continue;
    }
    Pool pool{.training = std::move(*trained), .is_final = !is_open, .engines = {}};
    for (const EngineLayout& layout : engines(gpus)) {
      auto found = known.find({layout.tensor, layout.pipeline});
      if (found == known.end()) {
        Result<Engine> made = engine(layout, on_policy);
        if (!made) continue;
        found = known.emplace(std::pair{layout.tensor, layout.pipeline}, std::move(*made)).first;
      }
      RlSplit split{on_policy, gpus, training_gpus, layout.tensor, layout.pipeline, 0, 0};
      split.sequences_at_once = static_cast<std::int64_t>(found->second.at_once);
      STEPCAST_ASSIGN(RlAnswer one, generated(found->second, split));
      pool.engines.push_back(std::move(one));
    }
    if (!pool.engines.empty()) out.push_back(std::move(pool));
  }
  return out;
}

// The fastest engine of a pool. `learning`: factor on the training time, if the layout of training was not searched yet.
RlAnswer RlSearch::fastest_of(const Pool& pool, double learning) const {
  Training training = pool.training;
  training.update_s *= learning;
  training.forward_s *= learning;
  std::optional<RlAnswer> best;
  for (const RlAnswer& engine : pool.engines) {
    RlAnswer one = engine;
    add_training(training, one);
    if (!best || one.forecast.step_s < best->forecast.step_s) best = std::move(one);
  }
  return *std::move(best);
}

// Fastest first; splits with training that does not fit come last. Searching training layouts is slow, so it is done only for
// leading splits. For the others, the gain of the last search is assumed.
std::vector<RlAnswer> RlSearch::ranked(std::vector<Pool>& all) {
  double gained = 1;
  const std::size_t wanted = std::max<std::size_t>(1, question_.settings.options);
  std::vector<RlAnswer> answers;
  while (true) {
    std::vector<std::pair<RlAnswer, Pool*>> now;
    for (Pool& pool : all) now.emplace_back(fastest_of(pool, pool.is_final ? 1 : gained), &pool);
    std::ranges::sort(now, {}, [](const auto& one) {
      const RlSplit& split = one.first.forecast.split;
      return std::pair{one.second->is_final && !split.training_fits, split.step_s};
    });
    now.resize(std::min(now.size(), wanted));
    const auto open = std::ranges::find_if(now, [](const auto& one) { return !one.second->is_final; });
    if (open == now.end()) {
      for (auto& [answer, pool] : now) answers.push_back(std::move(answer));
      return answers;
    }
    Pool& pool = *open->second;
    pool.is_final = true;
    const double usual_s = pool.training.update_s;
    if (Result<Training> searched = train_on(open->first.forecast.split.training_gpus, true)) {
      pool.training = std::move(*searched);
      gained = pool.training.update_s / usual_s;
    }
  }
}

Result<std::vector<RlAnswer>> RlSearch::best(bool on_policy) {
  std::optional<Error> why;
  STEPCAST_ASSIGN(std::vector<Pool> all, usual_pools(on_policy, why));
  if (all.empty() && why) return *why;
  if (all.empty()) return nothing_fits(on_policy);
  return ranked(all);
}

}  // namespace

std::string_view to_string(RlAlgorithm algorithm) {
  return name_of<RlAlgorithm::dapo>(algorithm, {"grpo", "ppo", "dapo"});
}

// On-policy parts add up. Off-policy pools overlap, and the step is the slower pool plus the transfer.
RlParts parts_of(const RlWork& work, const RlSplit& split, const RlConstants& c, double& step_s) {
  RlParts parts;
  const GenerationTime& g = work.generation;
  parts.prefill_s = g.prefill_s;
  parts.decode_s = g.decode_s * c.decode_factor + 1e-6 * c.layer_us * g.decode_layers;
  parts.tail_s = g.tail_s * c.decode_factor + 1e-6 * c.layer_us * g.tail_layers;
  parts.log_probabilities_s = work.log_probabilities_s * c.training_factor;
  parts.reward_s = work.reward_s * c.training_factor;
  parts.train_s = work.train_s * c.training_factor;
  constexpr double kParameters = 1e11;
  const double transfer = c.transfer_s_per_100B * work.parameters / kParameters;
  parts.transfer_s = split.on_policy ? c.colocated_s + 2 * transfer : c.handover_s + transfer;
  if (split.on_policy) {
    step_s = parts.generate_s() + parts.learn_s() + parts.transfer_s;
    return parts;
  }
  const double generate = parts.generate_s(), learn = parts.learn_s();
  // The faster pool waits for the slower one.
  parts.idle_s = std::abs(generate - learn);
  parts.idle_gpus = as_double(generate < learn ? split.generation_gpus : split.training_gpus);
  step_s = std::max(generate, learn) + parts.transfer_s;
  return parts;
}

namespace {

// Adds the question and notes to the forecast.
void describe_question(const RlQuestion& question, const Rollout& rollout, const Transformer& model,
                       const Platform& platform, const RlConstants& constants, RlForecast& f) {
  f.model = model.name;
  f.platform = platform.name;
  f.algorithm = rollout.algorithm;
  f.n_gpus = *question.job.n_gpus;
  f.prompts = *question.settings.prompts;
  f.generations = question.settings.generations.value_or(1);
  f.off_policy_steps = rollout.off_policy_steps;
  f.generated_sequences = rollout.generated;
  f.trained_sequences = rollout.trained;
  f.mean_tokens = rollout.lengths.mean();
  f.max_tokens = rollout.lengths.max();
  f.p10_s = f.step_s * std::exp(-kBandFast);
  f.p90_s = f.step_s * std::exp(kBandSlow);
  f.tokens_per_s_per_gpu = f.generated_sequences * f.mean_tokens / f.step_s / as_double(f.n_gpus);
  if (const std::vector<std::string>& left_out = question.job.not_modelled; !left_out.empty())
    f.notes.push_back(fmt::format("not modelled: {}", fmt::join(left_out, ", ")));
  // Time that no part of the model explains, reported if its share is large, as for small models.
  constexpr double kWorthSaying = 0.1;
  const double fixed_s = f.split.on_policy ? constants.colocated_s : constants.handover_s;
  if (fixed_s > kWorthSaying * f.step_s)
    f.notes.push_back(
        fmt::format("a constant {:g} s of the step, fitted to NeMo-RL, for engine changes and CPU work{}",
                    fixed_s, f.split.on_policy ? "; verl with a 7B model takes about 20 s" : ""));
  if (!f.memory.training_fits)
    f.notes.push_back(fmt::format("training does not fit: {:.1f} of {:.1f} GiB", f.memory.training_peak_GiB,
                                  f.memory.available_GiB));
}

// The model of the job without its settings. Error: not a decoder.
Result<Transformer> decoder_of(const Job& job) {
  Job bare = job;
  bare.settings = {};
  bare.n_gpus.reset();
  STEPCAST_ASSIGN(ResolvedJob resolved, resolve(bare));
  if (resolved.model.architecture == Architecture::decoder) return std::move(resolved.model);
  return Error::at("", "--model")
      .found(resolved.model.name)
      .expected("a decoder: this model cannot generate");
}

}  // namespace

Result<RlAnswer> rl_step(const RlQuestion& said, const StepModel& steps, const RlConstants& constants,
                         const TrainingLayout& open_layout) {
  RlQuestion question = said;
  std::vector<std::string> notes;
  if (said.job.config || said.job.command_line) {
    STEPCAST_ASSIGN(question, with_rl_config(said, notes));
  }
  STEPCAST_ASSIGN(const Rollout rollout, read(question));
  if (question.job.n_gpus.value_or(0) < 1)
    return Error::at("", "--gpus").found("nothing").expected("the total of GPUs for generation and training");
  STEPCAST_ASSIGN(const Transformer model, decoder_of(question.job));
  const bool on_policy = rollout.off_policy_steps == 0;
  const RlSettings& settings = question.settings;
  if (on_policy && settings.generation_gpus && *settings.generation_gpus != *question.job.n_gpus) {
    return Error::at("", "--generation-gpus", "on-policy all GPUs generate and train")
        .advice("add --policy off:1, or leave it out");
  }
  StepWorker generating = steps.worker();
  RlSearch search{question, rollout, model, steps, generating.pricer(), constants, open_layout};
  STEPCAST_ASSIGN(std::vector<RlAnswer> all, search.best(on_policy));
  RlAnswer out = all.front();
  RlForecast& f = out.forecast;
  f.notes.insert(f.notes.begin(), notes.begin(), notes.end());
  describe_question(question, rollout, model, steps.platform(), constants, f);
  // The alternative policy may divide the GPUs differently, so given generation settings are dropped.
  RlQuestion open = question;
  open.settings.generation_gpus.reset();
  open.settings.generation_tensor.reset();
  open.settings.generation_pipeline.reset();
  RlSearch other{open, rollout, model, steps, generating.pricer(), constants, open_layout};
  Result<std::vector<RlAnswer>> others = other.best(!on_policy);
  if (settings.options == 0) all.clear();
  if (others) all.insert(all.end(), others->begin(), others->end());
  for (const RlAnswer& one : all) f.alternatives.push_back(one.forecast.split);
  std::ranges::stable_sort(f.alternatives, {}, [](const RlSplit& s) {
    return std::pair{!s.training_fits, s.step_s};
  });
  if (settings.options > 0 && f.alternatives.size() > settings.options)
    f.alternatives.resize(settings.options);
  return out;
}

}  // namespace stepcast
