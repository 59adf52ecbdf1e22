#include "tests/support/log_generator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"

namespace stepcast::test {
namespace {

constexpr std::int64_t kBatch = 256, kSequence = 4096, kGpus = 64;

// What a format prints of a step, and the time that its digits then say.
struct Printed {
  std::string text;
  double time_ms = 0;
};

std::string with_thousands(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string clock(double seconds) {
  const auto whole = static_cast<int>(seconds);
  return fmt::format("2026-03-{:02} {:02}:{:02}:{:02}", 1 + whole / 86400, whole / 3600 % 24, whole / 60 % 60,
                     whole % 60);
}

struct Format {
  const char* name;
  std::function<std::string()> begin;
  std::function<Printed(std::uint32_t, double, double)> step;  // number, time, time of day in seconds
  bool bar = false;                                            // carriage returns instead of lines
  bool may_repeat = true;                                      // several ranks may print it
};

double rounded(double value, double unit) { return std::round(value / unit) * unit; }

Format format_of(std::uint64_t kind) {
  const auto nothing = [] { return std::string{}; };
  switch (kind) {
    case 0:
      return {
          "megatron", nothing, [](std::uint32_t n, double ms, double at) {
            return Printed{
                fmt::format(" [{}] iteration {:8d}/   10000 | consumed samples: {:12d} | elapsed time per "
                            "iteration (ms): {:.1f} | throughput per GPU (TFLOP/s/GPU): {:.1f} | learning "
                            "rate: 1.500000E-06 | global batch size: {:5d} | lm loss: 1.1E+01 |",
                            clock(at), n, n * kBatch, ms, 3e6 / ms, kBatch),
                rounded(ms, 0.1)};
          }};
    case 1:
      return {
          "megatron", nothing, [](std::uint32_t n, double ms, double) {
            return Printed{
                fmt::format(" iteration {:8d}/   10000 | consumed samples: {} | consumed tokens: {} | "
                            "elapsed time per iteration (ms): {:.1f} | gloabl batch size: {} | samples per "
                            "second: {:.3f} | TFLOPs: {:.2f} |",
                            n, n * kBatch, n * kBatch * kSequence, ms, kBatch, 1e3 * kBatch / ms, 3e6 / ms),
                rounded(ms, 0.1)};
          }};
    case 2:
      return {
          "megatron", nothing, [](std::uint32_t n, double ms, double at) {
            return Printed{
                fmt::format("Step Time : {:.2f}s GPU utilization: 442.2MODEL_TFLOP/s/GPU\n [{}] iteration "
                            "{:8d}/   10000 | elapsed time per iteration (ms): {:.1f}/{:.1f} | global batch "
                            "size:   256 |",
                            ms / 1e3, clock(at), n, ms, 2 * ms),
                rounded(ms, 0.1)};
          }};
    case 3:
      return {
          "nemo", nothing, [](std::uint32_t n, double ms, double) {
            return Printed{
                fmt::format("Training epoch 0, iteration {}/9999 | lr: 6.897e-06 | global_batch_size: 256 | "
                            "global_step: {} | max_memory_reserved: 127785762816 | reduced_train_loss: 11.96 "
                            "| train_step_timing in s: {:.4} | consumed_samples: 5888",
                            n, n, ms / 1e3),
                std::stod(fmt::format("{:.4}", ms / 1e3)) * 1e3};
          }};
    case 4:
      return {"torchtitan",
              [] {
                return std::string{
                    "[titan] 2026-03-01 00:00:00,000 - root - INFO - CUDA capacity: NVIDIA H100 with "
                    "95.00GiB memory\n"
                    "[titan] 2026-03-01 00:00:00,000 - root - INFO - Building 2-D device mesh with "
                    "['dp_shard', 'tp'], "
                    "[8, 8]\n"
                    "[titan] 2026-03-01 00:00:00,000 - root - INFO - Model llama3 8B size: 8,030,261,248 "
                    "total parameters\n"
                    "[titan] 2026-03-01 00:00:01,000 - root - INFO - Trainer is initialized with local batch "
                    "size 32, "
                    "global batch size 256, gradient accumulation steps 1, sequence length 4096, total steps "
                    "10000\n"};
              },
              [](std::uint32_t n, double ms, double at) {
                const double tps = std::round(1e3 * kBatch * kSequence / kGpus / ms);
                return Printed{
                    fmt::format("[titan] {},123 - root - INFO - \x1b[31mstep: {:2}  \x1b[32mloss: 11.83506  "
                                "\x1b[34mtps: {}  \x1b[36mtflops: 253.41  \x1b[35mmfu: 25.62%\x1b[39m",
                                clock(at), n, with_thousands(static_cast<std::int64_t>(tps))),
                    1e3 * kBatch * kSequence / kGpus / tps};
              }};
    case 5:
      return {"deepspeed",
              [] {
                return std::string{
                    "[2026-03-01 00:00:00,000] [INFO] [config.py:955:print]   json = {\n    "
                    "\"train_batch_size\": 256, \n"
                    "    \"train_micro_batch_size_per_gpu\": 4, \n    \"zero_optimization\": {\n        "
                    "\"stage\": 2\n    "
                    "}\n}\n"};
              },
              [](std::uint32_t n, double ms, double at) {
                const std::string rate = fmt::format("{:.12f}", 1e3 * kBatch / ms);
                return Printed{
                    fmt::format("[{},714] [INFO] [timer.py:260:stop] epoch=0/micro_step={}/global_step={}, "
                                "RunningAvgSamplesPerSec=25.025771473496132, CurrSamplesPerSec={}, "
                                "MemAllocated=4.32GB, MaxMemAllocated=38.49GB",
                                clock(at), n, n, rate),
                    1e3 * kBatch / std::stod(rate)};
              }};
    case 6:
      return {"deepspeed_pipeline", nothing, [](std::uint32_t n, double ms, double) {
                return Printed{fmt::format("steps: {} loss: 2.3456 iter time (s): {:.3f} samples/sec: {:.3f}",
                                           n, ms / 1e3, 1e3 * kBatch / ms),
                               rounded(ms, 1)};
              }};
    case 7:
      return {.name = "composer",
              .begin = nothing,
              .step =
                  [](std::uint32_t n, double ms, double) {
                    const std::string rate = fmt::format("{:.4f}", 1e3 / ms);
                    return Printed{fmt::format("[batch={}/10000]:\n\t Train time/batch: {}\n\t Train "
                                               "throughput/batches_per_sec: {}\n\t Train "
                                               "throughput/device/tokens_per_sec: 1255.1776",
                                               n, n - 1, rate),
                                   1e3 / std::stod(rate)};
                  },
              .may_repeat = false};
    case 8:
      return {.name = "huggingface",
              .begin = nothing,
              .step =
                  [](std::uint32_t n, double ms, double at) {
                    const int s = static_cast<int>(at);
                    return Printed{
                        fmt::format("{:3}%|##        | {}/10000 [{}:{:02}:{:02}<9:20:00, {:5.2f}s/it]",
                                    n / 100, n, s / 3600, s / 60 % 60, s % 60, ms / 1e3),
                        rounded(ms, 10)};
                  },
              .bar = true,
              .may_repeat = false};
    default:
      return {.name = "csv",
              .begin = [] { return std::string{"Step,loss,iteration-time\n"}; },
              .step =
                  [](std::uint32_t n, double ms, double) {
                    return Printed{fmt::format("{},2.5,{:.6f}", n, ms / 1e3), rounded(ms, 0.001)};
                  },
              .may_repeat = false};
  }
}

}  // namespace

MadeLog made_log(std::uint64_t seed) {
  constexpr std::uint64_t kFormats = 10;
  std::mt19937_64 draw{seed};
  const auto uniform = [&] { return static_cast<double>(draw() >> 11U) * 0x1p-53; };
  const auto one_of = [&](std::uint32_t n) { return static_cast<std::uint32_t>(uniform() * n); };
  const Format format = format_of(seed % kFormats);
  const std::uint64_t round = seed / kFormats;
  const bool is_csv = format.name == std::string_view{"csv"};
  const bool restarts = round % 2 == 1, repeats = format.may_repeat && round % 3 != 0,
             prefixes = repeats && round % 3 == 2, broken = !is_csv && round % 2 == 0,
             returns = !format.bar && !is_csv && round % 3 == 1,
             colours = !format.bar && !is_csv && round % 3 == 2;

  MadeLog log;
  log.framework = format.name;
  log.what = fmt::format("{} (seed {}{}{}{}{}{})", format.name, seed, restarts ? ", restart" : "",
                         repeats ? ", repeated" : "", prefixes ? ", ranks" : "",
                         broken ? ", broken lines" : "", colours ? ", colours" : "");
  const double base_ms = 900 + 8000 * uniform();
  const std::uint32_t n_steps = 200 + one_of(200), restart_at = restarts ? 100 + one_of(60) : 0;
  std::vector<std::uint32_t> spikes;
  while (spikes.size() < 4) {
    const std::uint32_t at = 20 + one_of(n_steps - 30);
    const bool near_restart = restarts && at + 25 > restart_at && at < restart_at + 10;
    const bool near_other = std::any_of(spikes.begin(), spikes.end(),
                                        [&](std::uint32_t s) { return (s > at ? s - at : at - s) < 5; });
    if (!near_restart && !near_other) spikes.push_back(at);
  }
  const auto line = [&](std::string text, int rank) {
    if (colours) text = "\x1b[1;33m" + text + "\x1b[0m";
    std::string out;
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t end = std::min(text.find('\n', from), text.size());
      if (prefixes) out += seed % 2 == 0 ? fmt::format("[rank{}]:", rank) : fmt::format("{}: ", rank);
      out += text.substr(from, end - from);
      out += format.bar ? "\r" : returns ? "\r\n" : "\n";
      from = end + 1;
    }
    log.text += out;
  };
  std::vector<double> steady;
  double at = 1;
  log.text = format.begin();
  const auto run = [&](std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t n = first; n <= last; ++n) {
      const bool warm_up = n < first + 2;
      const bool spike = !warm_up && std::find(spikes.begin(), spikes.end(), n) != spikes.end();
      // Noise that sums four uniforms, +-0.6 % at most.
      double ms = base_ms * (1 + 0.003 * (uniform() + uniform() + uniform() + uniform() - 2));
      if (warm_up) ms *= 3 + 2 * uniform();
      if (spike) {
        ms *= 2 + 4 * uniform();
        log.stalls.push_back(n);
        if (!is_csv && !format.bar)
          line(n % 2 == 0 ? "  successfully saved checkpoint from iteration 10 to /data"
                          : " validation loss at iteration 10",
               0);
      }
      at += ms / 1e3;
      const Printed printed = format.step(n, ms, at);
      if (!warm_up && !spike) steady.push_back(printed.time_ms);
      const int ranks = repeats ? 4 : 1;
      for (int rank = 0; rank < ranks; ++rank) line(printed.text, rank);
      if (broken && n % 37 == 0) line(" iteration   77/ 10000 | consumed sam", 0);
      if (n % 11 == 0 && !is_csv) line("some rank says something else about tokens_per_sec", 0);
    }
  };
  if (restarts) {
    run(1, restart_at);
    log.restarts.push_back(restart_at - 19);
    run(restart_at - 19, n_steps);
  } else {
    run(1, n_steps);
  }
  std::sort(log.stalls.begin(), log.stalls.end());
  log.stalls_are_told = !is_csv && !format.bar;
  log.median_ms = median(std::move(steady));
  return log;
}

}  // namespace stepcast::test
