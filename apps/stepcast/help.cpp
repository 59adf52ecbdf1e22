#include "help.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/version.h"
#include "stepcast/base/words.h"

#include "verbs.h"

namespace stepcast::cli {
namespace {

constexpr VerbHelp kHelp[] = {
    {"replay",
     "  stepcast replay traces/\n"
     "  stepcast replay traces/ --timeline step.json.gz --with-measured\n"
     "  stepcast replay traces/ --all-steps --scenarios 1000",
     "--step --ranks --json --report --timeline --with-measured --all-steps --scenarios --train-tokens"},
    {"predict",
     "  stepcast predict --model llama-3-8b --gpus 8\n"
     "  stepcast predict --model llama-3-70b --platform dgx-h100 --gpus 512 --tp 4 --pp 4 --gbs 512\n"
     "  stepcast predict --command-line train.sh --platform dgx-h100\n"
     "  stepcast predict --trace traces/ --platform 8xmi300x --what-if host=1.5x",
     "--model --platform --gpus --dtype --framework --tp --pp --mbs --gbs --seq --trace --train-tokens"},
    {"dryrun",
     "  stepcast dryrun --gpus 8 -- torchrun train.py\n"
     "  stepcast dryrun --gpus 64 --platform dgx-h100 -- torchrun train.py --lr 1e-4",
     ""},
    {"export",
     "  stepcast export --trace traces/ --chakra out/\n"
     "  stepcast export --model llama-3-8b --gpus 64 --pp 4 --gbs 128 --chakra out/ --per-rank",
     "--model --platform --gpus --dtype --tp --pp --mbs --gbs --seq --trace --chakra --per-rank"},
    {"import",
     "  stepcast import rank3.json.gz -o rank3.step\n"
     "  stepcast import traces/ --ranks 3 -o rank3.step",
     ""},
    {"plan",
     "  stepcast plan --model gpt3-175b --platform dgx-a100 --gpus 1024 --gbs 1536\n"
     "  stepcast plan --model llama-3.1-405b --platform dgx-h100 --gpus 2048 --gbs 2048 --dtype bf16,fp8\n"
     "  stepcast plan --from train.sh\n"
     "  stepcast plan --model llama-3-70b --platform dgx-a100,dgx-h100 --gpus 256,512 --gbs 1024 "
     "--train-tokens 2T --within 30d",
     "--model --platform --gpus --dtype --framework --gbs --seq --from --max-memory-GiB --top "
     "--train-tokens --within"},
    {"shard",
     "  stepcast shard --model dlrm-multi-gpu --gpus 8\n"
     "  stepcast shard --tables tables.csv --gpus 16 --platform dgx-h100 -o plan.json",
     "--tables --indices --model --gpus --platform --gbs --dtype --top --json --report -o"},
    {"sweep",
     "  stepcast sweep sweep.toml -o out\n"
     "  stepcast sweep sweep.toml -o out --shard 2/16         # a Slurm array needs no --shard\n"
     "  stepcast sweep sweep.toml -o out --merge results.csv  # or .jsonl\n"
     "  stepcast sweep sweep.toml -o out --report sweep.html",
     ""},
    {"calibrate",
     "  stepcast calibrate collectives all_reduce.log --platform dgx-h100 -o my-cluster.json\n"
     "  stepcast calibrate kernels kernels.csv --platform a100-sxm4-80gb -o my-a100.json",
     ""},
    {"calibrate collectives",
     "  stepcast calibrate collectives all_reduce.log --platform dgx-h100 -o my-cluster.json", ""},
    {"calibrate kernels",
     "  stepcast calibrate kernels kernels.csv --platform a100-sxm4-80gb -o my-a100.json", ""},
    {"calibrate iterations", "  stepcast calibrate iterations steps.csv --platform dgx-h100 -o my-h100.json",
     ""},
    {"calibrate overheads",
     "  stepcast calibrate overheads traces/ --platform dgx-1-v100-32gb -o my-host.json", ""},
    {"models", "  stepcast models llama", ""},
    {"platforms", "  stepcast platforms\n  stepcast platforms dgx-h100", ""},
    {"inspect", "  stepcast inspect trace.json.gz\n  stepcast inspect train.log", ""},
    {"compare",
     "  stepcast compare before.json after.json\n"
     "  stepcast compare forecast.json train.log --fail-above 5%",
     ""},
    {"completion",
     "  source <(stepcast completion bash)\n"
     "  stepcast completion man | man -l -",
     ""}};

constexpr char kFirstGroup[] = "Flags to begin with";

using Group = std::pair<std::string, std::vector<std::string>>;

bool is_listed(const CLI::Option& option, std::string_view flags) {
  return any_word(flags, [&](std::string_view flag) {
    const std::size_t dashes = std::min(flag.find_first_not_of('-'), flag.size());
    const std::string name{flag.substr(dashes)};
    return dashes == 1 ? option.check_sname(name) : option.check_lname(name);
  });
}

// Hides all flags except those in `first`. Returns the names of the hidden ones by heading.
std::vector<Group> hide_all_but(CLI::App& verb, std::string_view first) {
  std::vector<Group> groups;
  for (CLI::Option* option : verb.get_options()) {
    if (option->get_positional()) continue;
    if (is_listed(*option, first)) {
      option->group(kFirstGroup);
      continue;
    }
    if (option != verb.get_help_ptr() && option != verb.get_help_all_ptr() && !option->get_group().empty()) {
      const auto same = [&](const Group& one) { return one.first == option->get_group(); };
      auto found = std::ranges::find_if(groups, same);
      if (found == groups.end()) found = groups.insert(groups.end(), {option->get_group(), {}});
      found->second.push_back(option->get_name(false, false));
    }
    option->group("");
  }
  return groups;
}

// One line for hidden flags: "  Layout and batch (14): --vp, --schedules, ...".
std::string line_of(const Group& group) {
  constexpr std::string_view kMore = ", ...";
  std::string line = fmt::format("  {} ({}):", group.first, group.second.size());
  for (std::size_t i = 0; i < group.second.size(); ++i) {
    const std::string name = (i == 0 ? " " : ", ") + group.second[i];
    if (line.size() + name.size() + kMore.size() > kHelpColumns) return line + std::string{kMore};
    line += name;
  }
  return line;
}

std::size_t lines_of(const std::string& help) {
  const std::string text = help_in_columns(help, kHelpColumns);
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace

std::span<const VerbHelp> stepcast_help() { return kHelp; }

std::string first_screen() {
  return fmt::format(
      "stepcast {} forecasts time, memory and cost of training steps on many GPUs.\n"
      "It runs on a CPU: no GPU is needed.\n"
      "\n"
      "Commands to try:\n"
      "  stepcast predict --model llama-3-8b --gpus 8     the time and memory of a step\n"
      "  stepcast plan --model llama-3-70b --gpus 64      the fastest layout on 64 GPUs\n"
      "  stepcast dryrun --gpus 8 -- torchrun train.py    your PyTorch program, no GPU\n"
      "  stepcast replay examples/dlrm_4gpu               why a recorded step is slow\n"
      "  stepcast models                                  models that are known by name\n"
      "\n"
      "Help: stepcast --help lists the verbs, stepcast VERB --help their flags.\n"
      "Documentation: {} (docs/ in a checkout)\n",
      version(), documentation_site());
}

std::string help_text(const CLI::App& root, CLI::App& verb, std::string_view path,
                      std::span<const VerbHelp> verbs, bool all) {
  const auto mode = all ? CLI::AppFormatMode::All : CLI::AppFormatMode::Normal;
  const auto found = std::ranges::find_if(verbs, [&](const VerbHelp& one) { return one.verb == path; });
  if (found == verbs.end()) return root.help("", mode);
  const std::string examples = fmt::format("Examples:\n{}", found->examples);
  const std::string own = verb.get_footer();
  verb.footer(own.empty() ? examples : own + "\n" + examples);
  std::string text = root.help("", mode);
  if (all || found->first_flags.empty() || lines_of(text) <= kLongestHelp) return text;
  std::string footer = fmt::format("More flags, which `{} {} --help-all` explains:\n", root.get_name(), path);
  for (const Group& group : hide_all_but(verb, found->first_flags)) footer += line_of(group) + "\n";
  verb.footer(footer + examples);
  return root.help();
}

}  // namespace stepcast::cli
