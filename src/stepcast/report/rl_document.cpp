#include "stepcast/report/rl_document.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/field_table.h"

namespace stepcast {

// The functions below list the members of the JSON: key, value, meaning. Columns name the rows of the table
// of parts.
constexpr AnswerHead answer_head(const RlForecast*) {
  return {"stepcast.rl_forecast/1", "stepcast predict --rl ALGORITHM --json",
          AnswerHead::Numbers::nine_digits};
}

// The parts of a step in seconds. Idle time is inside the longer of the two pools and not part of the sum.
void fields(auto& a, Is<RlParts> auto& p) {
  a("generate_s", p.generate_s(), "generation time in s: prefill, decode and tail");
  a("prefill_s", p.prefill_s, "prompts", {"prefill of the prompts", 2});
  a("decode_s", p.decode_s, "", {"decode", 2});
  a("tail_s", p.tail_s, "decode time with less than a tenth of the answers left, in s",
    {"tail of the longest answers", 2});
  a("log_probabilities_s", p.log_probabilities_s,
    "time in s for log-probabilities of the old policy and of the reference, and values of a critic",
    {"log-probabilities", 2});
  a("reward_s", p.reward_s, "time of the reward model, in s", {"reward model", 2});
  a("train_s", p.train_s, "", {"train", 2});
  a("transfer_s", p.transfer_s, "time of the weight transfer to the engine and of engine changes, in s",
    {"weights and engine changes", 2});
  a("idle_s", p.idle_s,
    "idle time of the pool that waits for the other one, in s; part of the step, not added to it",
    {p.generate_s() < p.learn_s() ? "idle: generation waits" : "idle: training waits", 2});
  a("idle_gpus", p.idle_gpus, "number of GPUs of the idle pool");
}

// The memory of a GPU while it generates and while it trains.
void fields(auto& a, Is<RlMemory> auto& m) {
  a("available_GiB", m.available_GiB, "memory of a GPU, in GiB");
  a("generation_weights_GiB", m.generation_weights_GiB);
  a("kv_cache_GiB", m.kv_cache_GiB,
    "KV cache of the sequences that an engine processes at the same time, in GiB");
  a("kv_cache_room_GiB", m.kv_cache_room_GiB, "memory that the engine has for the KV cache, in GiB");
  a("training_weights_GiB", m.training_weights_GiB);
  a("gradients_GiB", m.gradients_GiB);
  a("optimizer_GiB", m.optimizer_GiB);
  a("activations_GiB", m.activations_GiB, "activations, kept and working memory, in GiB");
  a("training_peak_GiB", m.training_peak_GiB);
  a("training_fits", m.training_fits);
}

// One way to divide the GPUs, with its step time.
void fields(auto& a, Is<RlSplit> auto& s) {
  a("policy", OneOf{s.on_policy ? "on" : "off", {"on", "off"}});
  a("generation_gpus", s.generation_gpus);
  a("training_gpus", s.training_gpus, "number of GPUs for training; on-policy: the same GPUs");
  a("generation_tensor_parallel", s.generation_tensor);
  a("generation_pipeline_parallel", s.generation_pipeline);
  a("sequences_at_once", s.sequences_at_once, "number of sequences that fit in an engine at the same time");
  a("step_time_s", s.step_s);
  a("training_layout", s.training_layout);
  a("training_fits", s.training_fits);
}

void fields(auto& a, Is<RlForecast> auto& f) {
  a("model", f.model);
  a("platform", f.platform);
  a("algorithm", f.algorithm);
  a("n_gpus", f.n_gpus);
  a("prompts", f.prompts);
  a("generations", f.generations, "answers per prompt");
  a("off_policy_steps", f.off_policy_steps, "maximum age of the weights in steps; 0: on-policy");
  a("generated_sequences", f.generated_sequences);
  a("trained_sequences", f.trained_sequences);
  a("mean_tokens", f.mean_tokens, "mean tokens of prompt and answer");
  a("max_tokens", f.max_tokens);
  a("step_time_s", f.step_s);
  a("step_time_p10_s", f.p10_s);
  a("step_time_p90_s", f.p90_s);
  a("tokens_per_s_per_gpu", f.tokens_per_s_per_gpu, "generated tokens per second and GPU, prompts included");
  a("parts", f.parts);
  a("memory", f.memory);
  a("split", f.split);
  a("training_layout", f.split.training_layout);
  a("alternatives", f.alternatives,
    "fastest split with the other policy on the same number of GPUs; with plan: all splits, fastest first");
  a("notes", f.notes);
}

std::string rl_json(const RlForecast& answer) { return answer_json(answer) + "\n"; }
std::string rl_schema() { return answer_schema<RlForecast>(); }

std::string rl_split_text(const RlSplit& s) {
  const std::string engine =
      fmt::format("engines of tp{}{}", s.generation_tensor,
                  s.generation_pipeline > 1 ? fmt::format(" pp{}", s.generation_pipeline) : std::string{});
  if (s.on_policy)
    return fmt::format("on-policy: all {} generate and train, {}", counted(s.generation_gpus, "GPU", "GPUs"),
                       engine);
  return fmt::format("off-policy: {} generate, {} train, {}", s.generation_gpus, s.training_gpus, engine);
}

namespace {

// The parts of the step that take time, with their share.
ReportTable rl_parts_table(const RlForecast& f) {
  ReportTable table{"part< | seconds | % of step"};
  detail::FieldRow parts;
  fields(parts, f.parts);
  for (const auto& [key, column, cell, seconds] : std::move(parts).take())
    if (seconds > 0)
      table.row({std::string{column.heading}, cell, table_number(100 * seconds / f.step_s, 1)});
  if (!f.split.on_policy)
    table.caption =
        "Both pools work at the same time: the step takes the longer of the two, plus the transfer.";
  return table;
}

// The memory of a GPU in both phases; empty cells are zero.
ReportTable rl_memory_table(const RlMemory& m) {
  ReportTable table{"memory of a GPU, GiB< | generation | training"};
  const auto row = [&](const char* name, double generation, double training) {
    table.row({name, table_number_or_blank(generation, 1), table_number_or_blank(training, 1)});
  };
  row("weights", m.generation_weights_GiB, m.training_weights_GiB);
  row("KV cache", m.kv_cache_GiB, 0);
  row("gradients", 0, m.gradients_GiB);
  row("optimizer", 0, m.optimizer_GiB);
  row("activations", 0, m.activations_GiB);
  row("total", m.generation_weights_GiB + m.kv_cache_GiB, m.training_peak_GiB);
  row("room", m.generation_weights_GiB + m.kv_cache_room_GiB, m.available_GiB);
  return table;
}

}  // namespace

// A terminal prints a few lines, then the tables of parts, memory and alternatives. A page has the split of
// the GPUs as a table of its own.
ReportDocument rl_document(const RlForecast& f) {
  ReportDocument document;
  document.title = fmt::format("Post-training of {} on {}", f.model, counted(f.n_gpus, "GPU", "GPUs"));
  document.subject = {fmt::format("{}, {}: {} prompts x {} answers, {} tokens on average, {} at most",
                                  f.platform, to_string(f.algorithm), table_count(f.prompts),
                                  table_count(f.generations), table_number(f.mean_tokens, 0),
                                  table_number(f.max_tokens, 0))};
  const std::string band = fmt::format("p10 {}, p90 {}", table_number(f.p10_s, 1), table_number(f.p90_s, 1));
  document.verdict = fmt::format("A step takes {} s ({}).", table_number(f.step_s, 1), band);
  document.figures = {{"Step time", table_number(f.step_s, 1) + " s", band, "fitted", "step_time_s"},
                      {"Tokens per second and GPU",
                       table_number(f.tokens_per_s_per_gpu, 1),
                       {},
                       "fitted",
                       "tokens_per_s_per_gpu"}};
  std::string head = fmt::format(
      "{}\n{}\n\nStep time      {:>10} s   {}\nThroughput     {:>10} tokens/s per GPU, prompts included\n",
      document.title, document.subject.front(), table_number(f.step_s, 1), band,
      table_number(f.tokens_per_s_per_gpu, 1));
  head +=
      fmt::format("Split          {}\nTraining       {}\n", rl_split_text(f.split), f.split.training_layout);
  document.add("", {TerminalText{std::move(head)}}).shown = Shown::terminal;
  ReportTable facts = ReportTable::facts();
  facts.row({"split", rl_split_text(f.split)});
  facts.row({"training", f.split.training_layout});
  document.add("Placement", {std::move(facts)}).shown = Shown::page;
  document.add("Where the step goes", {rl_parts_table(f)});
  document.add("Memory", {rl_memory_table(f.memory)});
  // A plan lists all ways to divide the GPUs; a forecast lists at most the other policy.
  const bool is_plan = f.alternatives.size() > 1 ||
                       (f.alternatives.size() == 1 && f.alternatives.front().on_policy == f.split.on_policy);
  ReportTable others{"policy and split< | training< | seconds | of this step"};
  for (const RlSplit& other : f.alternatives)
    others.row({rl_split_text(other), other.training_layout + (other.training_fits ? "" : ", does not fit"),
                table_number(other.step_s, 1), table_number(other.step_s / f.step_s, 2)});
  document.add(is_plan ? "Possible placements" : "On- against off-policy", {std::move(others)});
  document.add("Notes", {ReportList{f.notes}});
  ReportTable parts = rl_parts_table(f);
  // The first screen shows the split and the parts of the step.
  constexpr std::size_t kMostParts = 8;
  parts.most = kMostParts;
  document.first_screen = FirstScreen{
      .why = fmt::format("{}; training {}.", sentence(rl_split_text(f.split)), f.split.training_layout),
      .blocks = {std::move(parts)},
      .notes = f.notes};
  document.json = rl_json(f);
  return document;
}

}  // namespace stepcast
