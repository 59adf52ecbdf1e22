// Sweeps as they are run: rows, shards, folders, processes that are killed.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/stop.h"
#include "stepcast/sweep/sweep_folder.h"

#include "tests/support/command.h"
#include "tests/support/fails_with.h"
#include "tests/support/json_schema.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::sweep_run_test {
namespace {

namespace fs = std::filesystem;
using test::FailsWith;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// 48 points, some of which cannot be run: 4-way and 8-way tensor parallelism on 2 GPUs.
constexpr const char* kSpec = R"(model = ["llama-3-8b", "llama-2-7b"]
platform = ["dgx-h100", "dgx-a100"]
gpus = [2, 8, 16]
tp = [1, 2, 4, 8]
gbs = 64
seq = 2048
)";

std::string answer_of(const test::CommandResult& result) { return result.out + result.err; }

class SweepRuns : public ::testing::Test {
 protected:
  SweepRuns() { write("sweep.toml", kSpec); }

  void write(const std::string& name, const std::string& text) const { std::ofstream{place(name)} << text; }
  [[nodiscard]] std::string place(const std::string& name) const { return (folder_.path() / name).string(); }
  [[nodiscard]] std::string content(const std::string& name) const {
    const Result<std::string> text = read_file(folder_.path() / name);
    return text.ok() ? *text : text.error().message();
  }
  test::CommandResult sweep(std::vector<std::string> arguments,
                            const std::string& spec = "sweep.toml") const {
    arguments.insert(arguments.begin(), {test::stepcast_executable().string(), "sweep", place(spec)});
    return test::run_command(arguments);
  }
  // What one process makes of it, undisturbed.
  std::string reference() const {
    EXPECT_EQ(sweep({"-o", place("whole"), "--threads", "1"}).exit_code, 0);
    EXPECT_EQ(sweep({"-o", place("whole"), "--merge", place("whole.jsonl")}).exit_code, 0);
    return content("whole.jsonl");
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(SweepRuns, ARowIsTheForecast) {
  const SweepSpec spec =
      *parse_sweep("model = \"llama-3-8b\"\ngpus = 8\ntp = 2\ngbs = 64\ntrain-tokens = 1e12\n", "s");
  const Session session;
  const Result<std::string> row = session.run(spec.points.front());
  ASSERT_TRUE(row.ok()) << row.error().message();
  EXPECT_THAT(*row, StartsWith("{\"id\":\"" + spec.points.front().id + "\""));
  const JsonValue read = *parse_json(*row, "row");
  PredictRequest request;
  request.job.model = "llama-3-8b";
  request.job.n_gpus = 8;
  request.job.settings.tensor = 2;
  request.job.settings.global_batch_sequences = 64;
  request.budget.tokens = 1e12;
  const Forecast forecast = *session.predict(request);
  EXPECT_EQ(read.find("step_time_ms")->number(), forecast.step_time_ms);
  EXPECT_EQ(read.find("mfu")->number(), *forecast.throughput.mfu);
  EXPECT_EQ(read.find("peak_memory_GiB")->number(), forecast.memory->peak_memory_GiB);
  EXPECT_EQ(read.find("gpu_hours")->number(), forecast.training->gpu_hours);
  EXPECT_TRUE(read.find("error")->is_null());
  EXPECT_EQ(read.find("point")->find("tp")->number(), 2);
}

// Why fp8 does not pay is a note for people: points of a sweep do not pay for the second forecast.
TEST_F(SweepRuns, PointsDoNotCompareTypes) {
  const SweepSpec spec = *parse_sweep(
      "model = \"qwen3-30b-a3b\"\ngpus = 8\ntp = 2\nep = 4\nseq = 2048\nmbs = 1\ndtype = \"fp8\"\n", "s");
  const Session session;
  const Result<std::string> row = session.run(spec.points.front());
  ASSERT_TRUE(row.ok()) << row.error().message();
  EXPECT_THAT(*row, Not(HasSubstr("fp8 is slower than bf16")));
  PredictRequest request;
  request.job.model = "qwen3-30b-a3b";
  request.job.n_gpus = 8;
  request.job.settings.dtype = DType::fp8;
  request.job.settings.tensor = 2;
  request.job.settings.expert = 4;
  request.job.settings.seq_len_tokens = 2048;
  request.job.settings.micro_batch_sequences = 1;
  const Forecast forecast = *session.predict(request);
  EXPECT_THAT(forecast.notes, Contains(HasSubstr("fp8 is slower than bf16")));
  EXPECT_EQ(parse_json(*row, "row")->find("step_time_ms")->number(), forecast.step_time_ms);
}

// One reader for sweeps, `predict` and `plan`: a TOML file is TorchTitan's, a script may source others, types do not contradict.
TEST_F(SweepRuns, JobsAreReadAsTheCommandLineReadsThem) {
  const Session session;
  const auto row_of = [&](const std::string& text) {
    const SweepSpec spec = *parse_sweep(text, place("sweep.toml"));
    const Result<std::string> row = session.run(spec.points.front());
    return row ? *parse_json(*row, "row") : JsonValue{};
  };
  write("titan.toml", *read_file(test::source_dir() / "fuzz/corpus/torchtitan_config/llama3_8b.toml"));
  const JsonValue titan = row_of(fmt::format("config = \"{}\"\ngpus = 64\n", place("titan.toml")));
  EXPECT_TRUE(titan.find("error")->is_null()) << compact_json(titan);

  write("sizes.sh",
        "SIZES=\"--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024\"\n");
  write("train.sh",
        "source sizes.sh\npython pretrain_gpt.py $SIZES --max-position-embeddings 1024 --micro-batch-size 1 "
        "--global-batch-size 8 --bf16\n");
  const JsonValue sourced = row_of(fmt::format("command_line = \"{}\"\ngpus = 8\n", place("train.sh")));
  EXPECT_TRUE(sourced.find("error")->is_null()) << compact_json(sourced);

  const JsonValue both = row_of("model = \"llama-3-8b\"\ngpus = 8\ndtype = \"bf16\"\nfp16 = true\n");
  EXPECT_THAT(both.find("error")->text(), HasSubstr("--dtype: given together with --fp16"));
}

// Pools of GPUs, and interruptions: as a prediction has them.
TEST_F(SweepRuns, PoolsAndInterruptionsAreSettings) {
  const Session session;
  const auto row_of = [&](const std::string& more) {
    const SweepSpec spec =
        *parse_sweep("model = \"llama-3-8b\"\ntp = 2\npp = 2\ngbs = 64\ntrain_tokens = 1e12\n" + more, "s");
    return *parse_json(*session.run(spec.points.front()), "row");
  };
  PredictRequest request;
  request.job.model = "llama-3-8b";
  request.job.settings.tensor = request.job.settings.pipeline = 2;
  request.job.settings.global_batch_sequences = 64;
  request.budget.tokens = 1e12;
  request.pools = "8xh100@a+8xa100@b";
  request.zones = {"a:bandwidth=400Gbps,price=3", "b:bandwidth=100Gbps,price=1"};
  request.budget.failures = "default";
  request.budget.recovery = {"restart=1h", "mode=async"};
  const Forecast forecast = *session.predict(request);
  const std::string pools =
      "pools = \"8xh100@a+8xa100@b\"\nzones = \"a:bandwidth=400Gbps,price=3 b:bandwidth=100Gbps,price=1\"\n";
  const JsonValue row = row_of(pools + "failures = \"default\"\nrecovery = \"restart=1h,mode=async\"\n");
  ASSERT_TRUE(row.find("error")->is_null()) << row.find("error")->text();
  EXPECT_EQ(row.find("step_time_ms")->number(), forecast.step_time_ms);
  EXPECT_EQ(row.find("gpu_hours")->number(), forecast.training->gpu_hours);
  EXPECT_GT(row.find("gpu_hours")->number(), row_of(pools).find("gpu_hours")->number() * 1.0002);
  EXPECT_THAT(row_of(pools + "gpus = 16\n").find("error")->text(), HasSubstr("pools and gpus"));
  EXPECT_THAT(row_of("gpus = 8\nzones = \"a:price=2\"\n").find("error")->text(), HasSubstr("add pools"));
  EXPECT_THAT(row_of("gpus = 8\nrecovery = \"restart=1h\"\n").find("error")->text(),
              HasSubstr("add failures"));
}

TEST_F(SweepRuns, APlanIsTheLayoutThatIsChosen) {
  const SweepSpec spec = *parse_sweep(
      "mode = \"plan\"\nmodel = \"llama-3-8b\"\ngpus = 16\ngbs = 128\nseq = 4096\ntp = [[1, 2]]\n", "s");
  const Session session;
  const JsonValue row = *parse_json(*session.run(spec.points.front()), "row");
  ASSERT_TRUE(row.find("error")->is_null()) << row.find("error")->text();
  EXPECT_GT(row.find("layouts_priced")->number(), 10);
  EXPECT_THAT(row.find("megatron_flags")->text(), HasSubstr("--global-batch-size 128"));
}

TEST_F(SweepRuns, APointThatFailsIsARow) {
  const SweepSpec spec = *parse_sweep("model = [\"no-such-model\", \"llama-3-8b\"]\ngpus = 3\ntp = 2\n", "s");
  const Session session;
  const JsonValue no_model = *parse_json(*session.run(spec.points[0]), "row");
  EXPECT_THAT(no_model.find("error")->text(), HasSubstr("no-such-model"));
  EXPECT_TRUE(no_model.find("step_time_ms")->is_null());
  const JsonValue no_layout = *parse_json(*session.run(spec.points[1]), "row");
  EXPECT_THAT(no_layout.find("error")->text(), HasSubstr("3"));
}

TEST_F(SweepRuns, RowsFollowTheirSchema) {
  const fs::path folder = test::source_dir() / "docs" / "schemas";
  const std::string schema = *read_file(folder / "sweep_row.json");
  const Session session;
  for (const char* text :
       {"model = [\"llama-3-8b\", \"nothing\"]\ngpus = 8\ntrain-tokens = 1e12\ngpu-hour-price = 2\n",
        "model = \"dlrm-multi-gpu\"\ngpus = [8, 7]\n",
        "mode = \"plan\"\nmodel = \"llama-3-8b\"\ngpus = [8, 7]\ntp = 8\ngbs = 64\ntrain_tokens = 1e12\n"}) {
    const SweepSpec spec = *parse_sweep(text, "s");
    for (const SweepPoint& point : spec.points) {
      const std::string row = *session.run(point);
      EXPECT_THAT(stepcast::fixtures::violations(schema, row, folder), ::testing::IsEmpty()) << row;
    }
  }
}

TEST_F(SweepRuns, ShardsAndThreadsMakeTheSameRows) {
  const std::string expected = reference();
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 48);
  EXPECT_THAT(expected, HasSubstr("\"error\":\""));
  for (int shard = 0; shard < 3; ++shard) {
    EXPECT_EQ(
        sweep({"-o", place("out"), "--shard", std::to_string(shard) + "/3", "--threads", "2"}).exit_code, 0);
    if (shard < 2) {
      EXPECT_THAT(answer_of(sweep({"-o", place("out"), "--merge", place("early.jsonl")})),
                  HasSubstr("points have no row yet"));
    }
  }
  EXPECT_EQ(sweep({"-o", place("out"), "--merge", place("out.jsonl")}).exit_code, 0);
  EXPECT_EQ(content("out.jsonl"), expected);
  EXPECT_EQ(sweep({"-o", place("out"), "--merge", place("out.csv")}).exit_code, 0);
  EXPECT_THAT(content("out.csv"),
              StartsWith("point.gbs,point.gpus,point.model,point.platform,point.seq,point.tp,id,mode"));
  const test::CommandResult over =
      sweep({"-o", place("out"), "--merge", place("out/shard-0000-of-0003.jsonl")});
  EXPECT_EQ(over.exit_code, 2) << "a file that it reads";
  // Nothing is left to do, whoever asks.
  EXPECT_THAT(sweep({"-o", place("out")}).out, HasSubstr("48 had a row before, 0 were run"));
  EXPECT_THAT(sweep({"-o", place("out"), "--status"}).out, HasSubstr("48 of 48 points done"));
}

TEST_F(SweepRuns, TheClusterSaysWhichShard) {
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "env");
    arguments.insert(arguments.end(), {test::stepcast_executable().string(), "sweep", place("sweep.toml"),
                                       "-o", place("out")});
    return test::run_command(arguments);
  };
  const test::CommandResult slurm = with({"SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_COUNT=4",
                                          "SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_MAX=3"});
  EXPECT_THAT(answer_of(slurm), HasSubstr("shard 1/4 (by SLURM_ARRAY_TASK_ID)"));
  EXPECT_TRUE(fs::exists(place("out/shard-0001-of-0004.jsonl")));
  const test::CommandResult pod = with({"JOB_COMPLETION_INDEX=2"});
  EXPECT_EQ(pod.exit_code, 2);
  EXPECT_THAT(pod.err, HasSubstr("say --shards"));
}

TEST_F(SweepRuns, AskedToStopItKeepsWhatIsDone) {
  const std::string whole = reference();
  const SweepSpec spec = *parse_sweep(kSpec, "sweep.toml");
  const Session session;
  std::stop_source stop;
  SweepRun run{.folder = place("out"), .threads = 1};
  run.progress = [&](std::size_t done, std::size_t) {
    if (done == 5) stop.request_stop();
  };
  {
    const StopScope scope{stop.get_token()};
    EXPECT_THAT(session.sweep(spec, run), FailsWith("interrupted"));
  }
  const Result<SweepReport> rest = session.sweep(spec, {.folder = place("out"), .threads = 1});
  ASSERT_TRUE(rest.ok()) << rest.error().message();
  EXPECT_EQ(rest->n_before, 5U);
  EXPECT_EQ(sweep({"-o", place("out"), "--merge", place("out.jsonl")}).exit_code, 0);
  EXPECT_EQ(content("out.jsonl"), whole);
}

TEST_F(SweepRuns, AnotherSpecIsRefused) {
  EXPECT_EQ(sweep({"-o", place("out"), "--shard", "0/2"}).exit_code, 0);
  write("longer.toml", std::string{kSpec} + "mbs = [1, 2]\n");
  const test::CommandResult other = sweep({"-o", place("out"), "--shard", "1/2"}, "longer.toml");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("the folder belongs to another sweep"));
  // Its points are others, as all have a micro-batch now.
  EXPECT_EQ(sweep({"-o", place("out"), "--extend"}, "longer.toml").exit_code, 2);
  std::string more = kSpec;
  more.replace(more.find("[2, 8, 16]"), 10, "[2, 8, 16, 32]");
  write("more.toml", more);
  const test::CommandResult extended = sweep({"-o", place("out"), "--extend"}, "more.toml");
  EXPECT_EQ(extended.exit_code, 0) << extended.err;
  EXPECT_THAT(extended.out, HasSubstr("64 points"));
}

TEST_F(SweepRuns, RefusesRowsOfNothing) {
  EXPECT_EQ(sweep({"-o", place("out")}).exit_code, 0);
  write("out/shard-0007-of-0009.jsonl", "{\"id\":\"0123456789abcdef\",\"mode\":\"predict\"}\n");
  EXPECT_THAT(sweep({"-o", place("out")}).err, HasSubstr("line 1: point 0123456789abcdef is not of"));
  write("out/shard-0007-of-0009.jsonl", "{\"id\":\"0123");
  EXPECT_THAT(sweep({"-o", place("out")}).err, HasSubstr("no row of a sweep"));
  EXPECT_THAT(sweep({"-o", place("nowhere"), "--status"}).err, HasSubstr("holds no sweep"));
  EXPECT_THAT(sweep({}).err, HasSubstr("-o is required"));
  EXPECT_THAT(sweep({"--point", "abc"}).err, HasSubstr("expected the id of one of the 48 points"));
}

TEST_F(SweepRuns, OnePointForAnExecutor) {
  const std::string expected = reference();
  const Result<SweepSpec> spec = read_sweep(place("sweep.toml"));
  std::string all;
  const Session session;
  for (const SweepPoint& point : spec->points) {
    const SweepSpec alone = *parse_sweep(point.json(), "point");
    all += *session.run(alone.points.front()) + "\n";
  }
  EXPECT_EQ(all, expected);
  const std::string id = spec->points[5].id;
  EXPECT_THAT(expected, HasSubstr(sweep({"--point", id}).out));
}

// A process that is killed after so long; true if it was still at work.
bool killed_after(const std::vector<std::string>& arguments, std::chrono::microseconds time) {
  std::vector<std::string> storage = arguments;
  std::vector<char*> argv;
  for (std::string& argument : storage) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int problem = posix_spawn(&child, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return false;
  std::this_thread::sleep_for(time);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

TEST_F(SweepRuns, KilledFiftyTimesItMakesTheSameFile) {
  const std::string expected = reference();
  std::mt19937 random{20};
  int kills = 0, sweeps = 0, finished = 0;
  // Kills come sooner after each sweep that ended before, later after each that was killed: however fast the machine is.
  std::chrono::microseconds latest{400'000};
  // As often as a sweep comes to its end between two kills, the next one begins.
  while (kills < 50 && finished < 200) {
    const std::string out = place("out" + std::to_string(sweeps));
    const std::string shard = std::to_string(random() % 2) + "/2";
    const std::chrono::microseconds time{static_cast<long>(random()) % latest.count()};
    const bool killed =
        killed_after({test::stepcast_executable().string(), "sweep", place("sweep.toml"), "-o", out,
                      "--shard", shard, "--threads", random() % 2 == 0 ? "1" : "2"},
                     time);
    kills += killed ? 1 : 0;
    latest = std::clamp(killed ? latest * 5 / 4 : latest * 3 / 4, std::chrono::microseconds{2'000},
                        std::chrono::microseconds{400'000});
    if (killed) continue;
    ++finished;
    if (!fs::exists(out + "/shard-0000-of-0002.jsonl") || !fs::exists(out + "/shard-0001-of-0002.jsonl"))
      continue;
    if (sweep({"-o", out, "--merge", place("merged.jsonl")}).exit_code != 0) continue;
    ASSERT_EQ(content("merged.jsonl"), expected);
    ++sweeps;
  }
  EXPECT_EQ(kills, 50);
  // What the kills left unfinished is finished, by another number of shards even.
  const std::string out = place("out" + std::to_string(sweeps));
  const test::CommandResult rest = sweep({"-o", out});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(sweep({"-o", out, "--merge", place("merged.jsonl")}).exit_code, 0);
  EXPECT_EQ(content("merged.jsonl"), expected);
}

}  // namespace
}  // namespace stepcast::sweep_run_test
