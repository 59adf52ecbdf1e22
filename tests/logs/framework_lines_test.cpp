// Lines of frameworks under their own names: each shape is told 40 times, two seconds a step, also with carriage returns,
// from two ranks in turn, and cut off in the middle of a line.

#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/logs/logged_run.h"

namespace stepcast::framework_lines_test {
namespace {

using ::testing::HasSubstr;

struct Shape {
  const char *name, *framework;
  const char* line;  // {0}: the step; {1}: seconds since the begin; {2}: a time of day
};

constexpr Shape kShapes[] = {
    {"MaxText", "maxtext",
     "completed step: {0}, seconds: 2.000, TFLOP/s/device: 180.123, Tokens/s/device: 16384.000, "
     "total_weights: "
     "262144, loss: 9.1\n"},
    {"MegatronDeepSpeedOf2022", "megatron",
     " iteration {0}/ 100 | consumed samples: 64 | elapsed time per iteration (s): 2.00 | learning rate: "
     "1E-4 | "
     "global batch size: 64 | lm loss: 7.1 | samples per second: 32.0 | TFLOPs: 150.12 |\n"},
    {"Nanotron", "nanotron",
     "03/01/2025 10:00:00 [INFO|DP=0|PP=0|TP=0|host]: iteration: {0} / 100 | consumed_tokens: 1.05M | "
     "elapsed_time_per_iteration_ms: 2K | tokens_per_sec_per_gpu: 65.5K | global_batch_size: 512 | lm_loss: "
     "11\n"},
    {"NanotronSince2025", "nanotron",
     "[INFO|DP=0]: iteration: {0} / 100  | consumed_tokens: 1.05M | time_per_iteration_ms: 2K | eta: "
     "0:01:00\n"},
    {"OlmoCore", "olmo",
     "2025-03-01 {2},000\thost:0\tINFO\t[step={0}/100,epoch=1,eta=0:12:10]\n    train/CE loss=11.1\n"
     "    throughput/device/TPS=32,768\n    throughput/device/BPS=0.5000\n"
     "    throughput/device/BPS (actual avg)=0.4990\n"},
    {"Olmo1", "olmo",
     "[step={0}/739328,epoch=0]\n    throughput/device/tokens_per_second=8,192\n"
     "    throughput/device/batches_per_second=0.5000\n"},
    {"InternEvo", "internevo",
     "2025-03-01 {2},000 INFO record_current_batch_training_metrics -- tflops=188.8,step={0},loss=11.6,"
     "tgs (tokens/gpu/second)=4095.8,lr=4e-07,num_consumed_tokens=131072,fwd_bwd_time=1.85\n"},
    {"LlmC", "llm_c",
     "step {0}/100 | loss 11.009 (+nanz)| norm 15.3 | lr 8.57e-07 | 2000.00 ms | 42.6% bf16 MFU | 9 tok/s\n"},
    {"LlmCInPython", "llm_c",
     "step {0}/100 | train loss 5.27 | norm 30.1 | lr 1.00e-04 | (2000.00 ms | 2467 tok/s)\n"},
    {"LlmCOf2024", "llm_c", "step {0}: train loss 4.367631 (took 2000.000000 ms)\n"},
    {"BuildNanoGpt", "llm_c",
     "step {0} | loss: 6.5 | lr 5.0e-05 | norm: 2.2 | dt: 2000.00ms | tok/sec: 262144.1\n"},
    {"NanoGpt", "llm_c", "iter {0}: loss 3.2101, time 2000.00ms, mfu 15.03%\n"},
    {"ModdedNanoGpt", "modded_nanogpt", "step:{0}/100 train_time:{1}000ms step_avg:1999.00ms\n"},
    {"ModdedNanoGptOf2024", "modded_nanogpt",
     "step:{0}/100 train_loss:4.5 train_time:{1}.000s step_avg:9ms\n"},
    {"Verl", "verl",
     "(TaskRunner pid=1234) step:{0} - actor/kl_loss:0.001 - timing_s/gen:1.2 - timing_s/step:2.000 - "
     "perf/time_per_step:2.000 - perf/throughput:1234.5\n"},
    {"VerlWithNumpy", "verl", "step:{0} - training/global_step:{0} - timing_s/step:np.float64(2.000)\n"},
    {"TorchtuneBar", "torchtune", "1|{0}|Loss: 1.23:  1%|#   | {0}/100 [00:{1}<03:00,  2.00s/it]\r"},
    {"Lightning", "lightning", "Epoch 0:   1%|#   | {0}/100 [00:{1}<03:00,  0.50it/s, v_num=0]\r"},
    {"LightningRich", "lightning",
     "Epoch 0/9  \xE2\x94\x81\xE2\x94\x81 {0}/100 0:00:10 \xE2\x80\xA2 0:03:00 0.50it/s v_num: 0.000\n"},
    {"Levanter", "levanter",
     "2025-03-01T{2} - 0 - tqdm_loggable - INFO :: Progress on:train {0}it/9.16kit rate:2.0s/it "
     "remaining:5:00 "
     "elapsed:33:27 postfix:loss=3.5\n"},
};

std::string made(const Shape& shape, int ranks = 1) {
  std::string text;
  for (int i = 1; i <= 40; ++i) {
    const std::string clock = fmt::format("10:{:02}:{:02}", 2 * i / 60, 2 * i % 60);
    for (int rank = 0; rank < ranks; ++rank) {
      if (ranks > 1) text += fmt::format("[rank{}]:", rank);
      text += fmt::format(fmt::runtime(shape.line), i, 2 * i, clock);
    }
  }
  return text;
}

LoggedTimes times_of_step(const std::string& text, double step_ms) {
  const auto log = parse_training_log(text, "made.log");
  EXPECT_TRUE(log.ok()) << log.error().message();
  const auto times = log.ok() ? logged_times(*log) : Result<LoggedTimes>{LoggedTimes{}};
  EXPECT_NEAR(times->median_ms, step_ms, 1e-3 * step_ms) << text.substr(0, 900);
  return *times;
}

LoggedTimes times_of(const std::string& text, const std::string& framework) {
  const auto log = parse_training_log(text, "made.log");
  EXPECT_TRUE(log.ok()) << log.error().message();
  if (!log.ok()) return {};
  const auto times = logged_times(*log);
  EXPECT_TRUE(times.ok()) << times.error().message();
  if (!times.ok()) return {};
  EXPECT_EQ(to_string(times->format), framework);
  EXPECT_NEAR(times->median_ms, 2000, 2) << text.substr(0, 400);
  return *times;
}

class FrameworkLine : public ::testing::TestWithParam<Shape> {};

TEST_P(FrameworkLine, TellsItsSteps) {
  const std::string text = made(GetParam());
  EXPECT_GE(times_of(text, GetParam().framework).n, 39U);
  times_of(text.substr(0, text.size() * 3 / 4 - 7), GetParam().framework);
  std::string returns;
  for (const char c : text) returns += c == '\n' ? std::string{"\r\n"} : std::string{c};
  times_of(returns, GetParam().framework);
  if (text.find("\n ") == std::string::npos && text.find('\r') == std::string::npos) {
    EXPECT_LE(times_of(made(GetParam(), 2), GetParam().framework).n, 40U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FrameworkLine, ::testing::ValuesIn(kShapes),
                         [](const auto& info) { return std::string{info.param.name}; });

// Tokens per second and GPU become times by the work of a step: 8 x 4096 tokens on 2 GPUs at 8192 tokens/s each.
TEST(FrameworkLines, RatesOfTorchtuneNeedTheWorkOfAStep) {
  std::string text;
  for (int i = 1; i <= 20; ++i)
    text += fmt::format(
        "Step {} | loss:1.23 lr:2e-05 tokens_per_second_per_gpu:8192.0 peak_memory_reserved:30.2\n", i);
  const auto log = parse_training_log(text, "made.log");
  ASSERT_TRUE(log.ok()) << log.error().message();
  EXPECT_FALSE(logged_times(*log)->why_no_time.empty());
  EXPECT_DOUBLE_EQ(log->peak_memory_GiB, 30.2);
  EXPECT_DOUBLE_EQ(logged_times(*log, {.tokens_per_step = 8 * 4096, .n_gpus = 2})->median_ms, 2000);
}

// Programs that nobody knows: the unit stands in the name or behind the value.
TEST(FrameworkLines, AUnitThatIsNamedIsEnough) {
  for (const char* line :
       {"step={} step_time_ms=2500.0 loss=2.1", "[{}/1000] loss=2.1 sec/it=2.50 eta=1:00:00",
        "Iteration {}: time per iteration: 2.5 s", "iter {} | iter_time_ms 2500.0 | loss 2.1",
        "step {} loss 2.1 (0.4 steps/sec)", "{{'step': {}, 'seconds_per_step': 2.5}}",
        "INFO:root:step {}/1000, loss=2.1, 2.5 sec/step",
        "update {}: avg step time (s): 2.5, data time (s): 0.2"}) {
    std::string text = "starting\n";
    for (int i = 1; i <= 20; ++i) text += fmt::format(fmt::runtime(line), i) + "\n";
    SCOPED_TRACE(line);
    EXPECT_EQ(times_of_step(text, 2500).n, 20U);
  }
  for (const char* line : {"step {} data_time_s=2.5 load: 2.5 s/iter", "eval step {}: 2.5 s/step",
                           "step {} took a while", "step {} time 2.5"}) {
    std::string text;
    for (int i = 1; i <= 20; ++i) text += fmt::format(fmt::runtime(line), i) + "\n";
    EXPECT_FALSE(parse_training_log(text, "made.log").ok()) << line;
  }
}

// "2s/step" has one digit; 1,000 steps in 2043 s have four.
TEST(FrameworkLines, KerasSaysTheTimeOfAnEpoch) {
  std::string text;
  for (int i = 1; i <= 20; ++i)
    text += fmt::format("Epoch {}/20\n1000/1000 - 2043s - 2s/step - accuracy: 0.1000 - loss: 2.3026\n", i);
  const LoggedTimes times = times_of_step(text, 2043);
  EXPECT_EQ(times.last_step, 21000U);
  EXPECT_EQ(times.steps_per_line, 1000);
}

// The bar of what is loaded first is none of training, and be it the longest.
TEST(FrameworkLines, BarsOfLoadingAreNoSteps) {
  const std::string loading = "Loading checkpoint shards: 100%|##########| 30/30 [05:00<00:00, 10.00s/it]\n";
  EXPECT_FALSE(parse_training_log(loading, "made.log").ok());
  std::string text = loading;
  for (int i = 1; i <= 40; ++i)
    text +=
        fmt::format("{:3}%|#   | {}/1000 [{:02}:{:02}<30:00,  2.00s/it]\r", i / 10, i, i / 30, i * 2 % 60);
  EXPECT_EQ(times_of_step(text, 2000).n, 40U);
}

TEST(FrameworkLines, ParametersOfMaxTextDescribeItsRun) {
  std::string text =
      "I0301 10:00:00.000000 pyconfig.py:100] Config param per_device_batch_size: 4.0\n"
      "Config param model_name: llama3.1-8b\nConfig param max_target_length: 4096\nConfig param steps: 50\n"
      "Config param remat_policy: minimal\nConfig param some_parameter_of_next_year: 3\n";
  auto log = parse_training_log(text + made(kShapes[0]), "made.log");
  ASSERT_TRUE(log.ok()) << log.error().message();
  Job said;
  said.n_gpus = 8;
  const auto run = logged_run(*std::move(log), said);
  ASSERT_TRUE(run.ok() && run->resolved) << run->why_no_job;
  EXPECT_EQ(run->job->source, "MaxText's parameters");
  EXPECT_EQ(run->resolved->layout.batch.global_batch_sequences, 32);
  EXPECT_EQ(run->resolved->layout.batch.seq_len_tokens, 4096);
  EXPECT_EQ(run->resolved->model.n_layers, 32);
}

std::string varint(std::uint64_t n) {
  std::string out;
  for (; n > 127; n >>= 7U) out += static_cast<char>(n | 128U);
  return out + static_cast<char>(n);
}
std::string field(int number, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3U | 2U) + varint(bytes.size()) + bytes;
}
template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}
// One record; checksums are not looked at.
std::string event(int step, const std::string& rest) {
  const std::string message =
      "\x09" + raw(1.74e9 + 2.0 * step) + "\x10" + varint(static_cast<std::uint64_t>(step)) + rest;
  return raw(std::uint64_t{message.size()}) + "crc1" + message + "crc2";
}
std::string scalar(int step, const std::string& tag, float value, bool as_tensor) {
  const std::string number =
      as_tensor ? field(8, std::string{"\x08\x01", 2} + field(4, raw(value))) : "\x15" + raw(value);
  return event(step, field(5, field(1, field(1, tag) + number)));
}

TEST(EventFile, TellsTimesByAScalarOrByTheClock) {
  for (const bool as_tensor : {false, true}) {
    std::string events = event(0, field(3, "brain.Event:2")), clock = events;
    for (int i = 1; i <= 40; ++i) {
      events += scalar(i, "batch-size", 128, as_tensor) + scalar(i, "lm loss", 2.5F, as_tensor) +
                scalar(i, "iteration-time", 2.0F, as_tensor);
      clock += scalar(i, "train/loss", 2.5F, as_tensor);
    }
    EXPECT_EQ(times_of(events, "tensorboard").batch_sequences, 128U);
    EXPECT_EQ(times_of(events.substr(0, events.size() - 3), "tensorboard").n, 39U);  // still being written
    EXPECT_TRUE(times_of(clock, "tensorboard").from_clock);
    EXPECT_TRUE(may_be_training_log(events));
  }
  std::string broken = event(0, field(3, "brain.Event:2"));
  broken += raw(std::uint64_t{1} << 40U) + "crc1";
  EXPECT_THAT(parse_training_log(broken, "e").error().message(), HasSubstr("no record of an event file"));
}

struct Table {
  const char *name, *header, *row;
};
constexpr Table kTables[] = {
    {"WandbOfARun", "\"Step\",\"run-a - perf/step_time_seconds\",\"run-a - perf/step_time_seconds__MIN\"",
     "\"{0}\",\"2.0\",\"1\""},
    {"WandbHistory", "_step,_runtime,_timestamp,train/loss", "{0},{1},{1},2.1"},
    {"WandbOfLightning", "trainer/global_step,train/iter_time_s", "{0},2.0"},
    {"Verl", "_step,timing_s/step", "{0},2.0"},
    {"Rates", "step,throughput/batches_per_sec", "{0},0.5"},
    {"Dates", "timestamp,step,loss", "2025-03-01T{2},{0},2.1"},
};
TEST(TablesOfSteps, NameTheirTimesInManyWays) {
  for (const Table& table : kTables) {
    std::string text = table.header;
    for (int i = 1; i <= 30; ++i)
      text += "\n" + fmt::format(fmt::runtime(table.row), i, 2 * i,
                                 fmt::format("10:{:02}:{:02}", i / 30, 2 * i % 60));
    SCOPED_TRACE(table.name);
    times_of(text + "\n", "csv");
  }
}

// A line of JSON for each step is a row of a table, with the keys of the first line as its columns.
TEST(TablesOfSteps, MayBeLinesOfJson) {
  std::string metrics, clock;
  for (int i = 1; i <= 30; ++i) {
    metrics += fmt::format(
        "{{\"loss\": 9.1, \"perf/step_time_seconds\": 2.0, \"run\": \"a,b\", \"step\": {}.0}}\n", i);
    clock += fmt::format(
        "{{\"current_steps\": {}, \"loss\": 1.2, \"elapsed_time\": \"1 day, {}:{:02}:{:02}\", \"lr\": "
        "1e-4}}\n",
        900 * i, i / 2, i % 2 * 30, 0);
  }
  EXPECT_TRUE(may_be_training_log(metrics));
  EXPECT_EQ(times_of(metrics, "csv").n, 30U);
  EXPECT_EQ(times_of(clock, "csv").steps_per_line, 900);
  EXPECT_FALSE(may_be_training_log("{\"traceEvents\": [\n{}\n]}\n"));
}

TEST(ForeignFiles, KeysThatComeAgainAreNoYaml) {
  const auto log = parse_training_log("Train: 0\nTrain: 1\nTrain: 2\nTrain: 3\n", "file");
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.error().message(), ::testing::Not(HasSubstr("YAML")));
}

// Benchmarks count epochs, shares of them, steps or samples; a batch is 512 of 2^20 samples, a step 200 ms.
TEST(MlperfLines, CountsWhateverTheBenchmarkCounts) {
  constexpr double kSamples = 1048576, kBatch = 512, kStepMs = 200;
  const auto event = [](double time_ms, std::string_view key, const std::string& value,
                        const std::string& metadata) {
    return fmt::format(
        ":::MLLOG {{\"time_ms\": {:.0f}, \"key\": \"{}\", \"value\": {}, \"metadata\": {{{}}}}}\n",
        1.7e12 + time_ms, key, value, metadata);
  };
  const auto run = [&](const char* begin, const char* end, const char* count, double samples,
                       double per_count) {
    std::string text = event(0, "global_batch_size", "512", "") + event(1, "train_samples", "1048576", "");
    double time_ms = 10;
    for (int i = 1; i <= 10; ++i) {
      const double before = (i - 1) * samples / per_count, behind = i * samples / per_count;
      text += event(time_ms, begin, "null", fmt::format("\"{}\": {}", count, before));
      time_ms += samples / kBatch * kStepMs;
      text +=
          event(time_ms, end, "null",
                fmt::format("\"{}\": {}", count, std::string_view{end} == "epoch_stop" ? before : behind));
      time_ms += 5000;
    }
    return times_of_step(text, kStepMs);
  };
  run("epoch_start", "epoch_stop", "epoch_num", kSamples, kSamples);
  run("block_start", "block_stop", "epoch_num", kSamples / 16, kSamples);
  run("block_start", "block_stop", "step_num", kSamples / 16, kBatch);
  run("block_start", "eval_start", "samples_count", kSamples / 16, 1);
  std::string rates = event(0, "global_batch_size", "512", "") + event(1, "run_start", "null", "");
  for (int i = 1; i <= 10; ++i)
    rates +=
        event(2000.0 * i, "tracked_stats", "{\"train_step_time\": 0.2}", fmt::format("\"step\": {}", 10 * i));
  EXPECT_EQ(times_of_step(rates, kStepMs).n, 10U);
}

struct Foreign {
  const char *begin, *what;
};
TEST(ForeignFiles, AreRefusedByNameOfWhatTheyAre) {
  constexpr Foreign kFiles[] = {
      {"+---+\n| NVIDIA-SMI 550.54  Driver Version: 550.54 |\n", "nvidia-smi"},
      {"timestamp, index, utilization.gpu [%]\n2025/03/01 10:00:00, 0, 98 %\n", "nvidia-smi"},
      {"# nThread 1 nGpus 8 minBytes 8\n", "nccl-tests"},
      {"INFO 03-01 10:00:00 metrics.py] Avg prompt throughput: 12.0 tokens/s\n", "vLLM"},
      {"# gpu    pwr  gtemp\n# Idx      W      C\n    0     70     30\n", "nvidia-smi (dmon)"},
      {"[1234.5] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n", "Xid"},
      {"[TRT-LLM] [I] iter = 12, global_rank = 0\n", "TensorRT-LLM"},
      {"I0301 1 grpc_server.cc:2463] Started GRPCInferenceService at 0.0.0.0:8001\n", "Triton"},
      {" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]\n", "perftest"},
      {"Fatal Python error: Segmentation fault\n", "died before its first step"},
      {"Sending build context\nStep 1/9 : FROM debian\n", "building a container"},
      {"Requirement already satisfied: torch in /usr/lib\n", "pip"},
      {"Loading\nTraceback (most recent call last):\n  File \"train.py\"\n", "died before its first step"},
      {"{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 0.1}\n", "losses and no times"},
      {"#!/bin/bash\npython pretrain_gpt.py --bf16\n", "a script"},
      {"{\"traceEvents\": []}\n", "JSON"},
      {"model:\n  num_layers: 32\ntrainer:\n  devices: 8\n", "YAML"},
      {"a,b,c\n1,2,3\n", "a table (CSV)"},
      {"SQLite format 3\x01\x01\x01\x01", "SQLite"},
      {"PK\x03\x04\x01\x01\x01", "zip"},
      {"\xff\xfei\x01t\x01", "UTF-16"},
      {"\x89PNG\x01\x01", "PNG"},
  };
  for (const Foreign& file : kFiles) {
    const auto log = parse_training_log(file.begin, "file");
    ASSERT_FALSE(log.ok()) << file.begin;
    EXPECT_THAT(log.error().message(), HasSubstr(file.what));
  }
}

}  // namespace
}  // namespace stepcast::framework_lines_test
