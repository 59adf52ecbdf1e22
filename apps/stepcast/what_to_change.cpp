#include "what_to_change.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/formats/launch_script.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/plan/job_words.h"
#include "stepcast/plan/layout_ranking.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/plan/recipe_dimensions.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/run/recovery.h"
#include "stepcast/sweep/option_table.h"

#include "command_line.h"
#include "given_flags.h"
#include "predict_options.h"

namespace stepcast::cli {
namespace {

using S = JobSettings;

// Flags with a layout.
constexpr std::string_view kFiles = "--command-line --torchtitan --deepspeed --config";

// Groups of settings with the same meaning: setting one resets the others.
STEPCAST_MEMBERS(kRecomputation, &S::recompute, &S::recompute_attention, &S::checkpoint_layers,
                 &S::recompute_by_block, &S::recompute_layers, &S::recompute_modules, &S::recompute_keeps,
                 &S::recompute_offloads);
STEPCAST_MEMBERS(kSharding, &S::sharding, &S::distributed_optimizer, &S::fully_sharded, &S::zero_stage,
                 &S::weight_copies);
STEPCAST_MEMBERS(kStages, &S::virtual_stages, &S::layers_per_virtual_stage, &S::first_stage_layers,
                 &S::last_stage_layers, &S::pipeline_layout, &S::pipeline_schedule);

template <class List>
bool says_any(const S& settings, const List& members) {
  bool any = false;
  members.each([&](auto member) { any = any || (settings.*member).has_value(); });
  return any;
}

bool say_the_same_thing(const S& a, const S& b) {
  bool any = false;
  setting_groups::kAll.each([&](auto member) { any = any || ((a.*member) && (b.*member)); });
  const auto both = [&](const auto& members) { return says_any(a, members) && says_any(b, members); };
  return any || both(kRecomputation) || both(kSharding) || both(kStages);
}

// Whether settings determine a part of the layout, apart from the precision.
bool says_layout(S settings) {
  settings.fp8.reset();
  settings.fp4.reset();
  return says_any(settings, setting_groups::kSearched) || says_any(settings, setting_groups::kOfSearched) ||
         says_any(settings, setting_groups::kOfDegrees) || says_any(settings, kStages);
}

Flags flags_of(S settings) {
  const std::optional<Sharding> sharding = settings.sharding;  // set by two flags of Megatron-LM
  if (sharding) {
    settings.sharding.reset();
    settings.fully_sharded.reset();
  }
  const Result<std::vector<std::string>> words = words_of_launch_script(megatron_flags_of(settings));
  Flags flags = words ? flags_in(*words, Question::described) : Flags{};
  if (sharding) flags.push_back({"--sharding", {std::string{to_string(*sharding)}}});
  return flags;
}

// The layout settings of a flag; empty for other flags.
S settings_said_by(const Flag& flag) {
  JobWords said;
  std::vector<std::string> megatron;
  const std::string value = join(flag.values, " ");
  const Option* option = find_option(flag.name, bit(Question::described));
  if (flag.name == "--recompute")
    said.words.recompute = value;
  else if (flag.name == "--sharding")
    said.words.sharding = value;
  else if (flag.name == "--sp")
    said.words.sequence_parallel = value;
  else if (flag.name == "--schedules")
    said.words.schedule = value;
  else if (option == nullptr || option->flags.find(',') != std::string_view::npos) {
    megatron = words_of({flag});
    if (option != nullptr) megatron.front() = option->flags.substr(option->flags.find(',') + 1);
  }
  const Result<Job> job = job_in_words(said, megatron, {});
  return job ? job->settings : S{};
}

// `flags` with `more`, which replace flags with the same meaning.
Flags with(Flags flags, const Flags& more) {
  S said;
  for (const Flag& flag : more) said = over(said, settings_said_by(flag));
  std::erase_if(flags, [&](const Flag& flag) {
    return is_said(more, flag.name) || say_the_same_thing(settings_said_by(flag), said);
  });
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

constexpr std::string_view kRecovery = "--recovery";

// The forecast of the whole training, if its interruptions were requested, else null.
const RunForecast* run_of(const Forecast& f) {
  return f.training && f.training->run ? &*f.training->run : nullptr;
}

// The time to minimise: days of the training with its interruptions, else milliseconds of the step.
double time_of(const Forecast& f) {
  const RunForecast* run = run_of(f);
  return run != nullptr ? run->days : f.promised_ms();
}

// Flags that mark a layout as found by a search (OpenLayout).
Flags as_planned() { return {{"--layout", {"as-planned"}}}; }

struct Tried {
  std::string about;  // the changed flag; empty: the layout changes
  Flags flags;
  PredictRequest request;
  Forecast forecast;
};

class Changes {
 public:
  // Errors: those of the forecast.
  static Result<Changes> of(Flags given, const Session& session, const PredictRequest& asked,
                            const Forecast& forecast) {
    STEPCAST_ASSIGN(SearchedPlatform on,
                    session.searched_platform(asked.platform, asked.job.gpus_per_node,
                                              static_cast<std::int64_t>(forecast.n_gpus)));
    // The node of a GPU given by name is looked up once.
    if (on.name != asked.platform) given = with(std::move(given), {Flag{"--platform", {on.name}}});
    Changes changes{std::move(given), session, forecast, std::move(on)};
    changes.base_ = changes.completed(changes.given_);
    STEPCAST_ASSIGN(changes.request_, request_in_words(words_of(changes.base_)));
    STEPCAST_ASSIGN(changes.job_, resolve(changes.request_.job));
    return changes;
  }

  ForecastAdvice all() {
    const bool leaves_all_open = std::ranges::none_of(given_, [](const Flag& flag) {
      return flag.name == "--layout" || is_among(flag.name, kFiles) || says_layout(settings_said_by(flag));
    });
    bool searched = leaves_all_open;
    if (!leaves_all_open) {
      const Flags fastest = fastest_layout();
      searched = is_said(fastest, "--pp");
      if (searched) try_with(fastest, /*may_be_tight=*/true);
    }
    const bool is_tight = asked_.memory && asked_.memory->verdict != "fits";
    for (const Flags& change : changes_of_one()) try_with(with(base_, change), is_tight, change.front().name);
    for (const Flags& change : changes_of_run()) try_with(change, is_tight, std::string{kRecovery});
    if (found_.empty() && !asked_.fits()) try_more_gpus();
    std::ranges::stable_sort(found_, {}, [](const Tried& one) { return time_of(one.forecast); });
    // For several values of a flag, the best one.
    std::vector<Tried> best;
    for (Tried& one : found_) {
      const auto says_it = [&](const Tried& other) {
        return time_of(other.forecast) == time_of(one.forecast) ||
               (!one.about.empty() && other.about == one.about);
      };
      if (best.size() < kMostActions && std::ranges::none_of(best, says_it)) best.push_back(std::move(one));
    }
    ForecastAdvice advice;
    for (const Tried& one : best) advice.actions.push_back(action_of(one));
    advice.sentence = sentence(advice.actions, searched);
    return advice;
  }

 private:
  Changes(Flags given, const Session& session, const Forecast& asked, SearchedPlatform on)
      : given_(std::move(given)), session_(session), asked_(asked), on_(std::move(on)) {}

  // `flags` with the layout that `predict` chooses for open parts.
  [[nodiscard]] Flags completed(const Flags& flags) const {
    const Result<PredictRequest> request = request_in_words(words_of(flags));
    if (!request) return flags;
    const Result<CompletingSettings> rest = session_.completing_settings(*request);
    if (!rest) return flags;
    Flags all = flags;
    if (rest->settings.pipeline_layout)  // contains the chunks
      std::erase_if(all, [](const Flag& flag) { return flag.name == "--vp"; });
    const Flags more = flags_of(rest->settings);
    all.insert(all.end(), more.begin(), more.end());
    if (rest->layout == OpenLayout::as_planned) return with(std::move(all), as_planned());
    return is_said(all, "--layout") ? with(std::move(all), {{"--layout", {"as-said"}}}) : all;
  }

  // The given flags without layout, with the same batch.
  [[nodiscard]] Flags without_layout() const {
    Flags open = given_;
    std::erase_if(open, [](const Flag& flag) {
      return flag.name == "--layout" || says_layout(settings_said_by(flag));
    });
    const bool says_batch =
        std::ranges::any_of(open, [](const Flag& flag) { return is_among(flag.name, kFiles); });
    if (!says_batch && !is_said(open, "--gbs"))
      open.push_back({"--gbs", {fmt::format("{}", job_.layout.batch.global_batch_sequences)}});
    return open;
  }

  // The flags of the fastest layout on these GPUs, as chosen by `plan`.
  [[nodiscard]] Flags fastest_layout() const {
    Flags open = without_layout();
    // Searching all expert layouts takes seconds on more GPUs.
    constexpr std::uint64_t kMostGpus = 64;
    if (job_.model.moe && asked_.n_gpus > kMostGpus) {
      const std::int64_t now = job_.layout.degrees.expert;
      const std::int64_t in_node =
          std::gcd(job_.model.moe->n_experts, std::int64_t{on_.platform->node.gpus_per_node});
      open.push_back({"--ep", {fmt::format("{}", now > 1 ? now : in_node)}});
    }
    for (const char* file : {"--command-line", "--torchtitan"})
      if (const auto found = std::ranges::find(open, file, &Flag::name); found != open.end())
        return with(open, fastest_in_place_of(join(found->values, " "), open));
    Flags fastest = completed(open);
    const auto recomputes = [](const Flag& flag) { return says_any(settings_said_by(flag), kRecomputation); };
    if (std::ranges::any_of(given_, recomputes) && std::ranges::none_of(fastest, recomputes))
      fastest.push_back({"--recompute", {"none"}});
    return fastest;
  }

  // Flags for the fastest layout if `file` describes another one, including options that turn parts off.
  // Empty if it is not a file.
  [[nodiscard]] Flags fastest_in_place_of(const std::string& file, const Flags& open) const {
    Result<PredictRequest> request = request_in_words(words_of(open));
    if (!request) return {};
    Job beside = request->job;
    beside.command_line.reset();
    beside.torchtitan.reset();
    const Result<RunningLayout> running = read_running_layout(file, beside);
    if (!running) return {};
    request->job = running->job;
    if (!request->job.n_gpus) request->job.n_gpus = running->n_gpus;
    const Result<CompletingSettings> completing = session_.completing_settings(*request);
    if (!completing) return {};
    const S* const fastest = &completing->settings;
    Flags flags = flags_of(*fastest);
    if (completing->layout == OpenLayout::as_planned) flags = with(std::move(flags), as_planned());
    if (!fastest->context) flags.push_back({"--cp", {"1"}});
    if (running->model.moe && !fastest->expert) flags.push_back({"--ep", {"1"}});
    if (!says_any(*fastest, kStages)) flags.push_back({"--vp", {"1"}});
    if (!says_any(*fastest, kRecomputation)) flags.push_back({"--recompute", {"none"}});
    if (!says_any(*fastest, kSharding)) flags.push_back({"--sharding", {"none"}});
    if (!fastest->sequence_parallel) flags.push_back({"--sp", {"off"}});
    return flags;
  }

  // Each changes one setting that the search does not choose, or a value near the given one.
  std::vector<Flags> changes_of_one() {
    std::vector<Flags> all;
    const Layout& layout = job_.layout;
    const auto say = [&](const char* name, const auto& value) {
      all.push_back(Flags{Flag{name, {fmt::format("{}", value)}}});
    };
    for (const char* kind : {"none", "selective", "full"})
      if (to_string(layout.layer.recompute.kind) != kind) say("--recompute", kind);
    const std::int64_t sequences = layout.batch.micro_batch_sequences;
    for (const std::int64_t times : {2, 4, 8, 16}) say("--mbs", times * sequences);
    if (sequences % 2 == 0) say("--mbs", sequences / 2);
    if (layout.degrees.pipeline > 1) {
      constexpr std::int64_t kMostChunks = 8;
      for (std::int64_t chunks = 1; chunks <= kMostChunks; ++chunks)
        if (chunks != layout.degrees.virtual_stages &&
            job_.model.n_layers % (chunks * layout.degrees.pipeline) == 0)
          say("--vp", chunks);
    }
    say("--sharding", layout.sharding.kind == Sharding::none ? "zero1" : "none");
    if (layout.degrees.tensor > 1) say("--sp", layout.layer.sequence_parallel ? "off" : "on");
    std::vector<S> settings{{.fuse_cross_entropy = true}};
    if (job_.model.moe) settings.push_back({.fuse_permutation = true});
    S overlap{.overlap_gradient_reduce = true};
    if (layout.sharding.kind != Sharding::none) overlap.overlap_parameter_gather = true;
    settings.push_back(overlap);
    for (const RecipeDimension& one : recipe_dimensions()) {
      if (!one.is_open(request_.job.settings) || !one.applies(layout, job_.model, on_.platform->device))
        continue;
      for (const RecipeChange& change : one.changes) {
        Layout changed = layout;
        change.apply(changed, settings.emplace_back());
      }
    }
    for (const S& one : settings)
      if (Flags flags = flags_of(one); !flags.empty()) all.push_back(std::move(flags));
    return all;
  }

  // Changes for restarts of a whole training, if requested: checkpoint intervals and spare nodes.
  [[nodiscard]] std::vector<Flags> changes_of_run() const {
    if (run_of(asked_) == nullptr) return {};
    const std::vector<std::string>& said = request_.budget.recovery;
    std::vector<Flags> all;
    const auto say = [&](const std::string& key, const std::string& value) {
      std::vector<std::string> words;
      for (const std::string& word : said)
        if (!word.starts_with(key)) words.push_back(word);
      if (!value.empty()) words.push_back(key + value);
      Flags changed = base_;
      std::erase_if(changed, [&](const Flag& flag) {
        return flag.name == kRecovery || (value.empty() && flag.name == "--save-interval");
      });
      if (!words.empty()) changed.push_back({std::string{kRecovery}, {join(words, ",")}});
      all.push_back(std::move(changed));
    };
    for (const char* mode : {"async", "memory"}) say("mode=", mode);
    say("interval=", "");  // the best interval
    const Result<Recovery> now = read_recovery(said);
    for (const std::int64_t more : {1, 2, 4, 8, 16})
      if (now && now->spare_nodes)  // otherwise there are always enough
        say("spares=", fmt::format("{}", *now->spare_nodes + more));
    return all;
  }

  // Forecasts `flags` and keeps the result if it fits and saves enough.
  bool try_with(const Flags& flags, bool may_be_tight, std::string about = {}) {
    Result<PredictRequest> request = request_in_words(words_of(flags));
    if (!request) return false;
    request->only_critical = true;
    request->compares_types = false;
    Result<Forecast> forecast = session_.predict(*request);
    if (!forecast || !forecast->fits()) return false;
    if (!may_be_tight && forecast->memory && forecast->memory->verdict != "fits") return false;
    if (asked_.fits() && time_of(*forecast) > time_of(asked_) * (1 - kWorthSaying)) return false;
    found_.push_back({std::move(about), flags, std::move(*request), std::move(*forecast)});
    return true;
  }

  // The smallest number of GPUs, doubling the given one, on which the job fits in some layout.
  void try_more_gpus() {
    constexpr std::uint64_t kMostTimes = 64;
    Flags open = without_layout();
    std::erase_if(open, [](const Flag& flag) { return flag.name == "--nodes"; });
    for (std::uint64_t times = 2; times <= kMostTimes; times *= 2)
      if (try_with(with(open, {Flag{"--gpus", {fmt::format("{}", asked_.n_gpus * times)}}}), true)) return;
  }

  // The command of a change, relative to the given command with its chosen layout.
  [[nodiscard]] std::string words_of_change(const Flags& flags) const {
    std::string text;
    const auto add = [&](const std::string& words) { text += (text.empty() ? "" : " ") + words; };
    S said;
    for (const Flag& flag : flags) {
      if (std::ranges::find(base_, flag) != base_.end()) continue;
      add(join(words_of({flag}), " "));
      said = over(said, settings_said_by(flag));
    }
    std::string without;
    for (const Flag& flag : given_)
      if (flag.name != "--layout" && is_said(base_, flag.name) && !is_said(flags, flag.name) &&
          !say_the_same_thing(settings_said_by(flag), said))
        without += " " + flag.name;
    if (!without.empty()) add("without" + without);
    return text;
  }

  ForecastAction action_of(const Tried& one) {
    const Forecast& f = one.forecast;
    ForecastAction action;
    action.change =
        f.n_gpus != asked_.n_gpus ? fmt::format("--gpus {}", f.n_gpus) : words_of_change(one.flags);
    action.step_time_ms = f.step_time_ms;
    action.promised_step_time_ms = f.promised_ms();
    action.saved_ms = asked_.promised_ms() - f.promised_ms();
    action.saved_percent = 100 * action.saved_ms / asked_.promised_ms();
    const double uncertain_ms = uncertain_of(one);
    action.saved_p10_ms = action.saved_ms - uncertain_ms;
    action.saved_p90_ms = action.saved_ms + uncertain_ms;
    action.certainty = !asked_.fits() ? "fits" : action.saved_p10_ms > 0 ? "clear" : "uncertain";
    if (f.training && asked_.training)
      action.saved_days = (asked_.training->time_s - f.training->time_s) / 86400;
    const RunForecast *was = run_of(asked_), *is = run_of(f);
    if (was != nullptr && is != nullptr && asked_.fits()) {
      action.saved_percent = 100 * (1 - is->days / was->days);
      // Both use the same failure rates and random draws.
      const bool all_of_it = is->days_p10 < was->days_p10 && is->days_p90 < was->days_p90;
      if (f.promised_ms() == asked_.promised_ms()) action.certainty = all_of_it ? "clear" : "uncertain";
    }
    if (f.memory) action.peak_memory_GiB = f.memory->peak_memory_GiB;
    if (f.memory && asked_.memory)
      action.memory_change_GiB = f.memory->peak_memory_GiB - asked_.memory->peak_memory_GiB;
    action.n_gpus = f.n_gpus;
    std::vector<std::string> words = words_of(one.flags);
    words.insert(words.begin(), "predict");
    action.command = command_of(words);
    return action;
  }

  // Half the width of the difference's band. The two forecasts share most of their error.
  [[nodiscard]] double uncertain_of(const Tried& one) const {
    const Forecast& then = one.forecast;
    const double wide = std::max(asked_.promised_p90_ms() - asked_.promised_p10_ms(),
                                 then.promised_p90_ms() - then.promised_p10_ms()) /
                        2;
    // A factor of only one forecast does not cancel.
    if (std::abs(asked_.promised_ms() / asked_.step_time_ms - then.promised_ms() / then.step_time_ms) > 1e-9)
      return wide;
    const Result<ResolvedJob> after = resolve(one.request.job);
    if (!after) return wide;
    const Result<StepPrediction> was = on_.steps->predict(job_.model, job_.layout);
    const Result<StepPrediction> is = on_.steps->predict(after->model, after->layout);
    if (!was || !is) return wide;
    const Layout& layout = after->layout;
    const bool has_experts = after->model.moe.has_value();
    const bool is_measured = unmeasured_kind(has_experts, layout.software.framework, layout.sharding.kind,
                                             layout.degrees.expert, layout.pipeline.schedule)
                                 .empty();
    const DifferenceOf of = !is_measured  ? DifferenceOf::unmeasured
                            : has_experts ? DifferenceOf::experts
                                          : DifferenceOf::dense;
    // The uncertainty is computed with the platform's prices and applied as a share of the step.
    return uncertain_difference_us(*was, *is, of) / was->step.time.value() * asked_.promised_ms();
  }

  [[nodiscard]] std::string sentence(const std::vector<ForecastAction>& actions, bool searched) const {
    if (!actions.empty()) {
      const ForecastAction& first = actions.front();
      if (first.n_gpus != asked_.n_gpus)
        return fmt::format("Nothing fits on {} GPUs. On {} GPUs the job takes {}.", asked_.n_gpus,
                           first.n_gpus, duration_text(first.promised_step_time_ms));
      constexpr std::size_t kReadable = 80;
      const std::string change =
          first.change.size() > kReadable ? "the first command" : fmt::format("`{}`", first.change);
      if (!asked_.fits())
        return fmt::format("Your job does not fit. With {} it fits and takes {}.", change,
                           duration_text(first.promised_step_time_ms));
      if (run_of(asked_) != nullptr)
        return fmt::format("With {0} the training takes {1:.1f} days less ({3:.1f} % of {2:.1f} days).",
                           change, first.saved_days.value_or(0), run_of(asked_)->days, first.saved_percent);
      return fmt::format("With {0} the step takes {1} less ({3:.1f} % of {2}).", change,
                         duration_text(first.saved_ms), duration_text(asked_.promised_ms()),
                         first.saved_percent);
    }
    if (!asked_.fits()) return "Your job does not fit, and no change that was tried makes it fit.";
    return fmt::format("Nothing to gain: {}no flag that was tried saves 1 % of the step.",
                       searched ? "`stepcast plan` finds no faster layout for these GPUs, and " : "");
  }

  Flags given_;
  const Session& session_;
  const Forecast& asked_;
  SearchedPlatform on_;
  Flags base_;              // with the chosen layout
  PredictRequest request_;  // for `base_`
  ResolvedJob job_;
  std::vector<Tried> found_;
};

}  // namespace

std::optional<ForecastAdvice> what_to_change(std::span<const std::string> words, const Session& session,
                                             const PredictRequest& request, const Forecast& forecast) {
  if (!request.pools.empty() || request.largest != LargestBatch::none || forecast.step_time_ms <= 0)
    return std::nullopt;
  Flags given = flags_in(words, Question::described);
  std::erase_if(given, [](const Flag& flag) { return is_of_output(flag, Question::described); });
  Result<Changes> changes = Changes::of(std::move(given), session, request, forecast);
  if (!changes) return std::nullopt;
  return changes->all();
}

}  // namespace stepcast::cli
