// stepcast dryrun: runs a PyTorch program on the CPU of this machine, records a step of each rank class, and
// forecasts the records like `predict --trace`. The Python package stepcast.dryrun runs and records.

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "stepcast/platform/platform.h"
#include "stepcast/platform/platform_choice.h"

#include "in_process.h"
#include "option_list.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

struct DryRunOptions {
  std::string platform = "dgx-h100", output = "dryrun", guess;
  std::int64_t gpus = 1;
  std::optional<std::int64_t> at;
  double timeout_s = 900;
  bool keep_going = false, eager = false, compiled = false, json = false, details = false;
  std::vector<std::string> what_if, program;
};

fs::path folder_of_this_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

// The folder of the Python package: above bin/ in a wheel, next to build/ in a source tree.
Result<fs::path> python_package() {
  const fs::path here = folder_of_this_program();
  for (const fs::path& place :
       {here.parent_path() / "dryrun", here.parent_path().parent_path() / "python" / "stepcast" / "dryrun",
        here.parent_path() / "share" / "stepcast" / "python" / "stepcast" / "dryrun"}) {
    std::error_code ignored;
    if (fs::is_regular_file(place / "__main__.py", ignored)) return place;
  }
  return Error{"dryrun needs the Python package of stepcast, which is not next to this program"}.advice(
      "pip install stepcast");
}

// The name of the device in CUDA: "NVIDIA H100 80GB HBM3".
std::string device_name_of(const Device& device) {
  for (const std::string& alias : device.aliases)
    if (alias.starts_with("NVIDIA ")) return alias;
  return "NVIDIA " + device.name;
}

std::vector<std::string> words_of(const DryRunOptions& options, const fs::path& package,
                                  const Platform& platform) {
  const Device& device = platform.device;
  const auto whole = [](Bytes bytes) { return fmt::format("{:.0f}", bytes.value()); };
  const char* const python = std::getenv("STEPCAST_PYTHON");
  std::vector<std::string> words{python != nullptr && *python != '\0' ? python : "python3",
                                 (package / "__main__.py").string(),
                                 "record",
                                 "--out",
                                 options.output,
                                 "--platform",
                                 options.platform,
                                 "--gpus",
                                 std::to_string(options.gpus),
                                 "--timeout",
                                 fmt::format("{}", options.timeout_s),
                                 "--device-name",
                                 device_name_of(device),
                                 "--architecture",
                                 device.architecture,
                                 "--memory-bytes",
                                 whole(device.memory_size),
                                 "--gpus-per-node",
                                 std::to_string(platform.node.gpus_per_node)};
  const auto add = [&words](const char* flag, const std::string& value) {
    words.emplace_back(flag);
    words.push_back(value);
  };
  if (device.sm_count) add("--sms", std::to_string(*device.sm_count));
  if (device.l2_size) add("--l2-bytes", whole(*device.l2_size));
  if (options.at) add("--at", std::to_string(*options.at));
  if (!options.guess.empty()) add("--guess", options.guess);
  if (options.keep_going) words.emplace_back("--keep-going");
  if (options.eager) words.emplace_back("--eager");
  if (options.compiled) words.emplace_back("--compiled");
  words.emplace_back("--");
  words.insert(words.end(), options.program.begin(), options.program.end());
  return words;
}

// Runs `words` as a child process and returns its exit code. Ctrl-C reaches the child, which ends its own children.
Result<int> run_child(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, arguments.front(), nullptr, nullptr, arguments.data(), environ);
  if (problem != 0) {
    return Error{fmt::format("cannot start {}: {}", words.front(), std::system_category().message(problem))}
        .advice("set STEPCAST_PYTHON to an interpreter");
  }
  const auto before = std::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGINT, before);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kInternalError;
}

Result<int> run_dryrun(const DryRunOptions& options) {
  if (options.program.empty()) {
    return Error{"no program was given"}.advice(
        "stepcast dryrun --gpus 8 --platform dgx-h100 -- torchrun train.py");
  }
  STEPCAST_ASSIGN(const PlatformChoice meant, load_meant_platform(options.platform, options.gpus));
  const Platform& platform = meant.platform;
  if (platform.device.vendor != "NVIDIA") {
    return Error{fmt::format("dryrun supports only CUDA, but {} has GPUs of {}", options.platform,
                             platform.device.vendor)}
        .advice(
            "name a platform with NVIDIA GPUs, then forecast the other one from the records: predict --trace "
            "DIR --platform NAME");
  }
  STEPCAST_ASSIGN(const fs::path package, python_package());
  const fs::path libraries = folder_of_this_program() / "python" / "stepcast" / "dryrun" / "lib";
  std::error_code ignored;
  if (fs::is_directory(libraries, ignored)) ::setenv("STEPCAST_DRYRUN_LIBRARIES", libraries.c_str(), 0);
  STEPCAST_ASSIGN(const int code, run_child(words_of(options, package, platform)));
  if (code != 0) return code;
  // All answers are those of `predict` for the folder of records.
  std::vector<std::string> words{"predict", "--trace", options.output, "--platform", options.platform};
  for (const std::string& change : options.what_if) {
    words.emplace_back("--what-if");
    words.push_back(change);
  }
  if (options.json) words.emplace_back("--json");
  if (options.details) words.emplace_back("--details");
  const VerbOutcome answer = run_verb(words);
  if (!answer.error.empty()) return Error{answer.error};
  print_text(answer.output);
  return answer.code;
}

void add_flags(CLI::App& app, DryRunOptions& o) {
  FlagList flags{app};
  flags.add(
      "PROGRAM", &o.program,
      "after `--`: torchrun train.py, python train.py, accelerate launch, deepspeed, or a console script");
  flags.add("--gpus", &o.gpus, "GPUs of the job", {.range = {{1, 1 << 20}}, .shows_default = true});
  flags.add("--platform", &o.platform, "name of a shipped platform, or a platform file",
            {.shows_default = true});
  flags.add("-o,--output", &o.output, "folder for the records, which `predict --trace` reads",
            {.is_output = true, .shows_default = true});
  flags.add("--at", &o.at,
            "optimizer step to record (default: the first that launches the same work as the step before)");
  flags.add("--timeout", &o.timeout_s, "time limit for all ranks, in seconds",
            {.above_zero = true, .shows_default = true});
  flags.add("--keep-going", &o.keep_going, "use the last complete step if the program fails later");
  flags.add("--eager", &o.eager, "ignore torch.compile: run operator by operator");
  flags.add("--compiled", &o.compiled,
            "compile each module that the program calls, like model.compile(), if it compiles none");
  flags.add("--guess", &o.guess,
            "assumption for sizes that depend on data: nonzero=0.5 (default), a fraction of the elements");
  flags.add("--what-if", &o.what_if, "change of the machine, as with predict");
  flags.add("--json", &o.json, "print one JSON object");
  flags.add(*find_option("--details", kPredictQuestions), &o.details);
}

}  // namespace

Verb dryrun_verb() {
  return {"dryrun", "run a PyTorch program without a GPU, and predict its step", [](CLI::App& app) {
            auto options = std::make_shared<DryRunOptions>();
            add_flags(app, *options);
            app.get_option("--eager")->excludes("--compiled");
            return [options] { return run_dryrun(*options); };
          }};
}

}  // namespace stepcast::cli
