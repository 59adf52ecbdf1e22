// Logs of frameworks in their own words, behind the prefixes of launchers, torn at either end and interleaved, with the truth in
// hand: nearly all are read, and none is read wrong without a word. `./dev nightly` takes every combination.

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/logs/logged_run.h"

#include "tests/support/rounds.h"

namespace stepcast::log_matrix_test {
namespace {

// A step as a framework knows it.
struct Made {
  int step = 0;
  double s = 0;        // it took
  double clock_s = 0;  // since the begin, at its end
  double mean_s = 0;   // of all steps until then
  double warm_s = 0;   // of all but the first, as Keras has it
};

std::string span(double seconds) {
  const int s = static_cast<int>(seconds);
  return s < 3600 ? fmt::format("{:02}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}
std::string time_of_day(double seconds) {
  const int s = static_cast<int>(seconds);
  return fmt::format("{:02}:{:02}:{:02}", 10 + s / 3600, s / 60 % 60, s % 60);
}
int millis(double seconds) { return static_cast<int>(seconds * 1e3) % 1000; }
std::string bar(const Made& m, const char* before, const char* behind, int of = 1000) {
  const std::string rate = m.s >= 1 ? fmt::format("{:5.2f}s/it", m.s) : fmt::format("{:5.2f}it/s", 1 / m.s);
  return fmt::format("{}{:3}%|#         | {}/{} [{}<{}, {}{}]", before, m.step * 100 / of, m.step, of,
                     span(m.clock_s), span((of - m.step) * m.s), rate, behind);
}

constexpr int kBatch = 64, kSequence = 4096, kGpus = 16;

struct Framework {
  const char* name;
  std::function<std::string(const Made&)> lines;  // of a step, with line breaks
  const char* begin = "";
  bool says_work = false;  // what a step is has to be said
};

using M = const Made&;
double tokens_per_gpu(M m) { return static_cast<double>(kBatch * kSequence) / kGpus / m.s; }

const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> kAll{
      {"Megatron-LM",
       [](M m) {
         return fmt::format(
             " [2026-03-01 {}.{:06}] iteration {:8}/    1000 | consumed samples: {:12} | elapsed time per "
             "iteration "
             "(ms): {:.1f} | throughput per GPU (TFLOP/s/GPU): 401.2 | learning rate: 1.500000E-06 | global "
             "batch "
             "size: {:5} | lm loss: 1.192634E+01 | loss scale: 1.0 | grad norm: 8.5 | number of skipped "
             "iterations: "
             "  0 | number of nan iterations:   0 |\n",
             time_of_day(m.clock_s), millis(m.clock_s) * 1000, m.step, m.step * kBatch, m.s * 1e3, kBatch);
       }},
      {"Megatron-Bridge",
       [](M m) {
         return fmt::format(
             "Step Time : {:.2f}s GPU utilization: 442.2MODEL_TFLOP/s/GPU\n iteration {:8}/    1000 "
             "| consumed samples: {:12} | elapsed time per iteration (ms): {:.1f} | learning rate: "
             "1.5E-06 | global batch size: {:5} | lm loss: 1.19E+01 |\n",
             m.s, m.step, m.step * kBatch, m.s * 1e3, kBatch);
       }},
      {"NeMo 2",
       [](M m) {
         return fmt::format(
             "Training epoch 0, iteration {}/999 | lr: 6.897e-06 | global_batch_size: {} | global_step: "
             "{} | reduced_train_loss: 11.96 | train_step_timing in s: {:.4g} | consumed_samples: {}\n",
             m.step, kBatch, m.step, m.s, m.step * kBatch);
       }},
      {"NeMo Automodel",
       [](M m) {
         return fmt::format(
             "2026-03-01 {} | INFO | root | step {} | epoch 0 | loss 1.2345 | grad_norm 2.1000 | lr "
             "1.00e-05 | mem 23.40 GiB | tps {:.2f}({:.2f}/gpu) | num_label_tokens {}\n",
             time_of_day(m.clock_s), m.step, tokens_per_gpu(m) * kGpus, tokens_per_gpu(m),
             kBatch * kSequence / 2);
       }},
      {"TorchTitan",
       [](M m) {
         return fmt::format(
             "[titan] 2026-03-01 {},{:03} - root - INFO - step: {:2}  loss: 11.8351  grad_norm:  9.6669 "
             " memory: 48.87GiB(51.44%)  tps: {:.0f}  tflops: 253.41  mfu: 25.62%\n",
             time_of_day(m.clock_s), millis(m.clock_s), m.step, tokens_per_gpu(m));
       },
       "", true},
      {"MaxText",
       [](M m) {
         return fmt::format(
             "I0301 {}.{:06} 139 metric_logger.py:120] completed step: {}, seconds: {:.3f}, "
             "TFLOP/s/device: 180.123, Tokens/s/device: {:.3f}, total_weights: 262144, loss: 9.123\n",
             time_of_day(m.clock_s), millis(m.clock_s) * 1000, m.step, m.s, tokens_per_gpu(m));
       }},
      {"DeepSpeed",
       [](M m) {
         return fmt::format(
             "[2026-03-01 {},{:03}] [INFO] [timer.py:260:stop] epoch=0/micro_step={}/global_step={}, "
             "RunningAvgSamplesPerSec={:.10f}, CurrSamplesPerSec={:.10f}, MemAllocated=4.32GB, "
             "MaxMemAllocated=38.49GB\n",
             time_of_day(m.clock_s), millis(m.clock_s), m.step, m.step, kBatch / m.mean_s, kBatch / m.s);
       },
       "[2026-03-01 10:00:00,000] [INFO] [config.py:955:print]   json = {\n    \"train_batch_size\": 64, \n  "
       "  "
       "\"train_micro_batch_size_per_gpu\": 4, \n    \"zero_optimization\": {\n        \"stage\": 2\n    "
       "}\n}\n",
       true},
      {"GPT-NeoX",
       [](M m) {
         return fmt::format("steps: {} loss: 2.3456 iter time (s): {:.3f} samples/sec: {:.3f}\n", m.step, m.s,
                            kBatch / m.s);
       }},
      {"Hugging Face",
       [](M m) {
         return bar(m, "", "") + (m.step % 10 == 0
                                      ? "\r                                \r{'loss': '2.31', 'grad_norm': "
                                        "'1.2', 'learning_rate': '1e-05', 'epoch': '0.1'}\n"
                                      : "\r");
       },
       "Loading checkpoint shards: 100%|##########| 30/30 [05:00<00:00, 10.00s/it]\n"
       "Map: 100%|##########| 52002/52002 [00:05<00:00, 10000.00 examples/s]\n"},
      {"Accelerate", [](M m) { return bar(m, "Steps: ", ", lr=1e-5, step_loss=0.103") + "\r"; },
       "Fetching 12 files: 100%|##########| 12/12 [01:00<00:00,  5.00s/it]\n"},
      {"TRL",
       [](M m) {
         return bar(m, "", "") +
                "\n{'loss': 0.01, 'rewards/mean': 0.5, 'step_time': " + fmt::format("{:.2f}", m.s) +
                ", 'epoch': 0.1}\n";
       }},
      {"Axolotl",
       [](M m) {
         return bar(m, "", "") + fmt::format(
                                     "\n[2026-03-01 {},{:03}] [INFO] [axolotl.utils.callbacks:120] [PID:12] "
                                     "[RANK:0] {{'loss': '1.2', 'memory/max_active (GiB)': '35.2', "
                                     "'tokens/train_per_sec_per_gpu': '{:.2f}', 'epoch': '0.1'}}\n",
                                     time_of_day(m.clock_s), millis(m.clock_s), tokens_per_gpu(m));
       }},
      {"LLaMA-Factory",
       [](M m) { return bar(m, "", "") + "\n{'loss': 0.9, 'learning_rate': 1e-05, 'epoch': 0.1}\n"; },
       "[INFO|2026-03-01 10:00:00] llamafactory.data.loader:143 >> Loading dataset alpaca.json...\n"
       "Running tokenizer on dataset: 100%|##########| 1000/1000 [00:20<00:00, 50.00 examples/s]\n"},
      {"ms-swift",
       [](M m) {
         if (m.step % 5 != 0) return std::string{};
         const int s = static_cast<int>(m.clock_s);
         return fmt::format(
             "{{'loss': 1.2345, 'token_acc': 0.7, 'grad_norm': 1.1, 'learning_rate': 1e-05, "
             "'memory(GiB)': 35.6, 'train_speed(iter/s)': {:.6f}, 'epoch': 0.1, "
             "'global_step/max_steps': '{}/1000', 'percentage': '1.00%', 'elapsed_time': '{}m {}s', "
             "'remaining_time': '1h 3m 0s'}}\n",
             1 / m.mean_s, m.step, s / 60, s % 60);
       }},
      {"Megatron-SWIFT",
       [](M m) {
         if (m.step % 5 != 0) return std::string{};
         return fmt::format(
             "{{'lm loss': 1.2345, 'grad_norm': 1.1, 'learning_rate': 1e-05, 'memory(GiB)': 35.6, "
             "'elapsed_time': '3m 20s', 'iteration': '{}/1000', 'train_speed(s/it)': {:.6f}}}\n",
             m.step, m.mean_s);
       }},
      {"XTuner on MMEngine",
       [](M m) {
         return fmt::format(
             "2026/03/01 {} - mmengine - INFO - Iter(train) [ {:3}/1000]  lr: 2.0000e-05  eta: 1:00:00  "
             "time: {:.4f}  data_time: 0.0100  memory: 12345  loss: 1.2345\n",
             time_of_day(m.clock_s), m.step, m.s);
       }},
      {"XTuner V1",
       [](M m) {
         return fmt::format(
             "[XTuner][RANK 0][2026-03-01 {}][INFO] Epoch 1 Step {}/1000 data_time: 0.0100 lr: 1.00e-05 "
             "time: {:.4f} text_tokens: 16384.0 reduced_llm_loss: 1.234 max_memory: 30.12 GB "
             "grad_norm: 1.100 tgs: {:.1f}\n",
             time_of_day(m.clock_s), m.step, m.s, tokens_per_gpu(m));
       }},
      {"torchtune", [](M m) { return bar(m, fmt::format("1|{}|Loss: 1.23: ", m.step).c_str(), "") + "\r"; }},
      {"LitGPT",
       [](M m) {
         return fmt::format(
             "Epoch 1 | iter {} step {} | loss train: 1.234, val: n/a | iter time: {:.2f} ms (step)\n",
             8 * m.step, m.step, m.s * 1e3 / 8);
       }},
      {"Lightning", [](M m) { return bar(m, "Epoch 0: ", ", v_num=0, train_loss=2.30") + "\r"; }},
      {"Nanotron",
       [](M m) {
         return fmt::format(
             "03/01/2026 {} [INFO|DP=0|PP=0|TP=0|host-1]: iteration: {} / 1000 | consumed_tokens: 1.05M "
             "| elapsed_time_per_iteration_ms: {} | tokens_per_sec: 262K | tokens_per_sec_per_gpu: 16.4K "
             "| global_batch_size: 64 | lm_loss: 11\n",
             time_of_day(m.clock_s), m.step,
             m.s >= 1 ? fmt::format("{:.3g}K", m.s) : fmt::format("{:.3g}", m.s * 1e3));
       }},
      {"OLMo-core",
       [](M m) {
         return fmt::format(
             "2026-03-01 {},{:03}\thost:0\tINFO\t[step={}/1000,epoch=1,eta=0:12:10]\n    train/CE "
             "loss=11.1\n    throughput/device/TPS={:.0f}\n    throughput/device/BPS={:.4g}\n",
             time_of_day(m.clock_s), millis(m.clock_s), m.step, tokens_per_gpu(m), 1 / m.s);
       }},
      {"nanoGPT",
       [](M m) {
         return fmt::format("iter {}: loss 3.2101, time {:.2f}ms, mfu 15.03%\n", m.step, m.s * 1e3);
       }},
      {"modded-nanogpt",
       [](M m) {
         return fmt::format("step:{}/1000 train_time:{:.0f}ms step_avg:{:.2f}ms\n", m.step,
                            m.mean_s * m.step * 1e3, m.mean_s * 1e3);
       }},
      {"LLM Foundry",
       [](M m) {
         return fmt::format(
             "[batch={}/1000]:\n\t Train time/batch: {}\n\t Train loss/train/total: 2.1\n\t Train "
             "throughput/batches_per_sec: {:.4f}\n\t Train throughput/samples_per_sec: {:.4f}\n\t Train "
             "throughput/device/tokens_per_sec: {:.4f}\n",
             m.step, m.step - 1, 1 / m.s, kBatch / m.s, tokens_per_gpu(m));
       }},
      {"fairseq",
       [](M m) {
         return fmt::format(
             "2026-03-01 {} | INFO | train_inner | epoch 001: {:6} / 5000 loss=9.123, nll_loss=8.1, "
             "ppl=301.2, wps={:.1f}, ups={:.2f}, wpb={}, bsz=64, num_updates={}, lr=1e-05, gnorm=1.2, "
             "loss_scale=128, train_wall={:.0f}, gb_free=10.1, wall={:.0f}\n",
             time_of_day(m.clock_s), m.step, kBatch * kSequence / m.s, 1 / m.s, kBatch * kSequence, m.step,
             m.s, m.clock_s);
       }},
      {"metaseq",
       [](M m) {
         return fmt::format(
             "2026-03-01 {} | INFO | train_inner | {{\"epoch\": 1, \"loss\": \"10.1\", \"wps\": "
             "\"{:.1f}\", \"ups\": \"{:.2f}\", \"wpb\": \"{}\", \"bsz\": \"64\", \"num_updates\": "
             "\"{}\", \"lr\": \"1e-05\", \"wall\": \"{:.0f}\"}}\n",
             time_of_day(m.clock_s), kBatch * kSequence / m.s, 1 / m.s, kBatch * kSequence, m.step,
             m.clock_s);
       }},
      {"MMDetection 3",
       [](M m) {
         return fmt::format(
             "03/01 {} - mmengine - INFO - Epoch(train)  [1][{:4}/7330]  lr: 1.9820e-03  eta: 1 day, "
             "0:24:31  time: {:.4f}  data_time: 0.0100  memory: 5432  loss: 1.2345\n",
             time_of_day(m.clock_s), m.step, m.s);
       }},
      {"MMDetection 2",
       [](M m) {
         return fmt::format(
             "2026-03-01 {},{:03} - mmdet - INFO - Epoch [1][{}/7330]\tlr: 1.978e-03, eta: 1 day, "
             "0:00:00, time: {:.3f}, data_time: 0.049, memory: 3900, loss: 1.2345\n",
             time_of_day(m.clock_s), millis(m.clock_s), m.step, m.s);
       }},
      {"Detectron2",
       [](M m) {
         return fmt::format(
             "[03/01 {} d2.utils.events]:  eta: 1:02:03  iter: {}  total_loss: 1.234  time: {:.4f}  "
             "last_time: {:.4f}  data_time: 0.2000  last_data_time: 0.1000  lr: 0.0002  max_mem: 5432M\n",
             time_of_day(m.clock_s), m.step, m.s, m.s);
       }},
      {"timm",
       [](M m) {
         return fmt::format(
             "Train: 0 [{:4}/1251 ( {:2}%)]  Loss: 6.912 (6.93)  Time: {:.3f}s, {:7.2f}/s  ({:.3f}s, "
             "{:7.2f}/s)  LR: 1.000e-06  Data: 0.010 (0.020)\n",
             m.step, m.step / 13, m.s, kBatch / m.s, m.mean_s, kBatch / m.mean_s);
       }},
      {"PyTorch's ImageNet",
       [](M m) {
         return fmt::format(
             "Epoch: [0][{:5}/5005]\tTime {:6.3f} ({:6.3f})\tData  0.010 ( 0.200)\tLoss 6.9e+00 "
             "(7.0e+00)\tAcc@1   0.00 (  0.10)\n",
             m.step, m.s, m.mean_s);
       }},
      {"Keras",
       [](M m) {
         const std::string own = m.warm_s >= 1 ? fmt::format("{:.0f}s/step", m.warm_s)
                                               : fmt::format("{:.0f}ms/step", m.warm_s * 1e3);
         return fmt::format(
             "\x1b[1m{:4}/1000\x1b[0m \x1b[32m\xE2\x94\x81\x1b[0m\x1b[37m\xE2\x94\x81\x1b[0m "
             "\x1b[1m{}\x1b[0m {} - accuracy: 0.1000 - loss: 2.3026\r",
             m.step, span((1000 - m.step) * m.warm_s), own);
       },
       "Epoch 1/5\n"},
      {"Levanter",
       [](M m) {
         return fmt::format(
             "2026-03-01T{} - 0 - tqdm_loggable - INFO :: Progress on:train {}it/9.16kit rate:{} "
             "remaining:5:00 elapsed:{} postfix:loss=3.5\n",
             time_of_day(m.clock_s), m.step,
             m.s >= 1 ? fmt::format("{:.1f}s/it", m.s) : fmt::format("{:.1f}it/s", 1 / m.s), span(m.clock_s));
       }},
      {"MLPerf",
       [](M m) {
         if (m.step % 5 != 0) return std::string{};
         return fmt::format(
             ":::MLLOG {{\"namespace\": \"\", \"time_ms\": {:.0f}, \"event_type\": \"POINT_IN_TIME\", "
             "\"key\": \"tracked_stats\", \"value\": {{\"throughput\": {}}}, \"metadata\": {{\"file\": "
             "\"callbacks.py\", \"lineno\": 149, \"step\": {}}}}}\n",
             1.74e12 + m.clock_s * 1e3, kBatch / m.s, m.step * kBatch);
       },
       ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1739999990000, \"event_type\": \"POINT_IN_TIME\", "
       "\"key\": "
       "\"global_batch_size\", \"value\": 64, \"metadata\": {}}\n:::MLLOG {\"namespace\": \"\", \"time_ms\": "
       "1739999999999, \"event_type\": \"INTERVAL_START\", \"key\": \"block_start\", \"value\": null, "
       "\"metadata\": "
       "{\"samples_count\": 0}}\n"},
      {"verl",
       [](M m) {
         return fmt::format(
             "(TaskRunner pid=1234) step:{} - global_seqlen/mean:81920.0 - actor/pg_loss:-0.01 - "
             "timing_s/gen:{:.3f} - timing_s/step:{:.3f} - timing_per_token_ms/gen:0.02 - "
             "perf/total_num_tokens:1310720 - perf/time_per_step:{:.3f} - perf/throughput:1234.5\n",
             m.step, m.s / 2, m.s, m.s);
       }},
      {"NeMo RL",
       [](M m) {
         return fmt::format(
             "\n========================= Step {}/100 =========================\n  \xE2\x80\xA2 Loss: "
             "0.0123\n\n\xE2\x8F\xB1\xEF\xB8\x8F  Timing:\n  \xE2\x80\xA2 Total step time: {:.2f}s\n  "
             "\xE2\x80\xA2 generation: {:.2f}s (50.0%)\n",
             m.step, m.s, m.s / 2);
       }},
      {"ColossalAI", [](M m) { return bar(m, "Epoch 0: ", ", Loss=1.2345") + "\n"; }},
      {"PaddleNLP",
       [](M m) {
         return fmt::format(
             "[2026-03-01 {},{:03}] [    INFO] - loss: 2.31, learning_rate: 1e-05, global_step: {}, "
             "current_memory_allocated: 25.1, max_memory_reserved: 38.2, interval_runtime: {:.4f}, "
             "interval_samples_per_second: {:.4f}, interval_tokens_per_second_per_device: {:.4f}, "
             "interval_steps_per_second: {:.4f}, progress_or_epoch: 0.1\n",
             time_of_day(m.clock_s), millis(m.clock_s), m.step, m.s, kBatch / m.s, tokens_per_gpu(m),
             1 / m.s);
       }},
      {"InternEvo",
       [](M m) {
         return fmt::format(
             "2026-03-01 {},{:03} INFO record_current_batch_training_metrics -- tflops=188.8,step={},"
             "loss=11.6,tgs (tokens/gpu/second)={:.2f},lr=4e-07,num_consumed_tokens=131072,fwd_bwd_time="
             "1.85\n",
             time_of_day(m.clock_s), millis(m.clock_s), m.step, tokens_per_gpu(m));
       }},
      {"llm.c",
       [](M m) {
         return fmt::format(
             "step {:4}/1000 | loss 11.009 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | {:.2f} ms | 42.6% "
             "bf16 MFU | 65536 tok/s\n",
             m.step, m.s * 1e3);
       }},
      {"a program of somebody",
       [](M m) { return fmt::format("step {} | loss 1.234 | {:.3f} s/iter | lr 1e-4\n", m.step, m.s); }},
      {"another one",
       [](M m) {
         return fmt::format(
             "2026-03-01 {} INFO train.py:120 iteration=12{} loss=1.2 data_time=0.2 seconds_per_iteration="
             "{:.3f}\n",
             time_of_day(m.clock_s), 100 + m.step, m.s);
       }},
      {"a third one",
       [](M m) {
         return fmt::format("INFO:2026-03-01 {}:train:step {}/1000, loss=2.1, {:.3f} sec/step\n",
                            time_of_day(m.clock_s), m.step, m.s);
       }},
      {"CSV with a clock",
       [](M m) { return fmt::format("{},2.5,{:.3f},{:.3f}\n", m.step, m.s, m.s + 0.001 * (m.step % 7)); },
       "step,loss,seconds_per_iteration,elapsed_time\n"},
      {"lines of JSON",
       [](M m) {
         return fmt::format("{{\"step\": {}, \"loss\": 2.5, \"timestamp\": {:.3f}, \"sec/iter\": {:.3f}}}\n",
                            m.step, 1.74e9 + m.clock_s, m.s);
       }},
  };
  return kAll;
}

// What is put before every line at a time of day; several ranks.
struct Prefix {
  const char* name;
  std::function<std::string(int rank, double clock_s)> text;
};

const std::vector<Prefix>& prefixes() {
  static const std::vector<Prefix> kAll{
      {"none", [](int, double) { return std::string{}; }},
      {"srun -l", [](int rank, double) { return fmt::format("{}: ", rank); }},
      {"mpirun --tag-output", [](int rank, double) { return fmt::format("[1,{}]<stdout>:", rank); }},
      {"torchrun", [](int rank, double) { return fmt::format("[default{}]:", rank); }},
      {"kubectl logs --timestamps --prefix",
       [](int rank, double s) {
         return fmt::format("[pod/train-worker-{}/pytorch] 2026-03-01T{}.{:03}123456Z ", rank, time_of_day(s),
                            millis(s));
       }},
      {"docker logs -t",
       [](int, double s) { return fmt::format("2026-03-01T{}.{:03}123456Z ", time_of_day(s), millis(s)); }},
      {"journald",
       [](int rank, double s) {
         return fmt::format("Mar 01 {} node-{} python[123]: ", time_of_day(s), rank);
       }},
      {"docker compose", [](int rank, double) { return fmt::format("worker-{}  | ", rank); }},
      {"colours", [](int, double) { return std::string{"\x1b[1;33m"}; }},
  };
  return kAll;
}

enum Damage { whole, cut_at_the_end, cut_at_the_begin, interleaved, n_damages };

// Every line behind the prefix; what a bar writes over itself is one line.
std::string prefixed(const std::string& text, const Prefix& prefix, int rank, double clock_s,
                     bool& at_line_begin) {
  std::string out;
  for (const char c : text) {
    if (at_line_begin) out += prefix.text(rank, clock_s);
    at_line_begin = c == '\n';
    out += c;
  }
  return out;
}

std::string made_log(const Framework& framework, const Prefix& prefix, Damage damage, double step_s,
                     int n_steps) {
  std::string text;
  bool at_line_begin = true;
  const int ranks = damage == interleaved && prefix.text(0, 0) != prefix.text(1, 0) ? 2 : 1;
  text += prefixed(framework.begin, prefix, 0, 0, at_line_begin);
  double clock_s = 3, trained_s = 0, warm_s = 0;
  for (int n = 1; n <= n_steps; ++n) {
    const double s = step_s * (n == 1 ? 3 : 1) * (1 + 0.002 * (n * 7 % 5 - 2));
    clock_s += s;
    trained_s += s;
    if (n > 1) warm_s += s;
    for (int rank = 0; rank < ranks; ++rank)
      text += prefixed(framework.lines({n, s, clock_s, trained_s / n, n > 1 ? warm_s / (n - 1) : s}), prefix,
                       rank, clock_s, at_line_begin);
  }
  if (damage == cut_at_the_end)
    return text.substr(0, text.size() * 3 / 4 + static_cast<std::size_t>(n_steps) % 13);
  if (damage == cut_at_the_begin) return text.substr(text.size() / 3);
  return text;
}

struct Reading {
  bool read = false, wrong = false;
  std::string what;
};

Reading reading_of(const std::string& text, const Framework& framework, double step_s) {
  const Result<TrainingLog> log = parse_training_log(text, "made.log");
  if (!log.ok()) return {false, false, log.error().message()};
  LoggedWork work;
  if (framework.says_work) {
    work.samples_per_step = kBatch;
    work.tokens_per_step = kBatch * kSequence;
    work.n_gpus = kGpus;
  }
  const Result<LoggedTimes> times = logged_times(*log, work);
  if (!times.ok()) return {false, false, times.error().message()};
  if (times->median_ms <= 0) return {false, false, times->why_no_time};
  const double error = times->median_ms / (1e3 * step_s) - 1;
  return {true, std::abs(error) > 0.025,
          fmt::format("{}: {:.1f} ms instead of {:.1f}", to_string(times->format), times->median_ms,
                      1e3 * step_s)};
}

TEST(LogMatrix, ReadsNearlyAllAndNoneWrong) {
  const bool all = test::rounds(0, 1) == 1;
  int n = 0, read = 0, wrong = 0, kind = 0;
  std::string failures;
  for (const Framework& framework : frameworks()) {
    for (const Prefix& prefix : prefixes()) {
      for (int damage = whole; damage < n_damages; ++damage) {
        // A fifth of the combinations unless all are wanted.
        if (!all && (kind++ + static_cast<int>(&framework - frameworks().data())) % 5 != 0) continue;
        for (const double step_s : {2.5, 0.74, 12.3}) {
          if (!all && step_s > 10) continue;
          const std::string text = made_log(framework, prefix, static_cast<Damage>(damage), step_s, 80);
          const Reading one = reading_of(text, framework, step_s);
          ++n;
          read += one.read ? 1 : 0;
          wrong += one.wrong ? 1 : 0;
          if (!one.read || one.wrong)
            failures += fmt::format("{} {}, {}, damage {}: {}\n", one.wrong ? "WRONG" : "not read",
                                    framework.name, prefix.name, damage, one.what);
        }
      }
    }
  }
  fmt::print("{} made logs of {} frameworks: {} read ({:.1f} %), {} wrong\n", n, frameworks().size(), read,
             100.0 * read / n, wrong);
  EXPECT_EQ(wrong, 0) << failures;
  EXPECT_GE(read, 0.95 * n) << failures;
}

}  // namespace
}  // namespace stepcast::log_matrix_test
