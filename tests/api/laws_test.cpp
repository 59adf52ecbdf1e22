// What no forecast may break, whatever is asked: pairs of random questions, all models that ship x layouts x platforms, that
// differ in one thing. `./dev nightly` draws 300 for each law.

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"

#include "tests/support/rounds.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::laws_test {
namespace {

// Sums of doubles in another order.
constexpr double kSameDigits = 1e-9;

constexpr std::array kPlatforms = {"dgx-h100",         "dgx-a100",         "dgx-b200",     "dgx-h200",
                                   "gb200-nvl72",      "8xmi300x",         "dgx-1-v100",   "tpu7x",
                                   "azure-nd-a100-v4", "8xa100-pcie-80gb", "cloud-8xh100", "8xh20"};

struct Answer {
  double step_ms = 0, memory_GiB = 0, attention_ms = 0;
};

Result<Answer> ask(const Session& session, PredictRequest request) {
  request.only_critical = true;
  request.compares_types = false;
  request.open_layout = OpenLayout::as_said;
  STEPCAST_ASSIGN(const Forecast f, session.predict(request));
  Answer answer{f.step_time_ms, f.memory ? f.memory->peak_memory_GiB : 0, 0};
  for (const auto& [name, ms] : f.critical().computation_by_class_ms)
    if (name == "attention") answer.attention_ms = ms;
  return answer;
}

// Random questions, and files of platforms in which one figure differs.
class Questions {
 public:
  explicit Questions(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return values.begin()[below(values.size())];
  }
  std::mt19937& random() { return random_; }

  PredictRequest draw() {
    const Preset& preset = presets()[below(presets().size())];
    PredictRequest request{.job = {.model = preset.model.name, .n_gpus = one_of({8, 16, 32, 64, 128})},
                           .platform = kPlatforms[below(kPlatforms.size())]};
    JobSettings& s = request.job.settings;
    s.tensor = one_of({1, 2, 4, 8});
    s.pipeline = one_of({1, 1, 2, 4});
    s.context = one_of({1, 1, 1, 2});
    if (preset.model.moe) s.expert = one_of({1, 2, 4, 8});
    s.micro_batch_sequences = one_of({1, 2});
    s.global_batch_sequences = *request.job.n_gpus * one_of({2, 4, 8});
    s.seq_len_tokens = one_of({1024, 2048, 4096, 8192});
    s.sequence_parallel = *s.tensor > 1 && below(2) == 0;
    s.recompute = std::array{Recompute::none, Recompute::selective, Recompute::full}[below(3)];
    s.sharding = std::array{Sharding::none, Sharding::zero1, Sharding::zero1, Sharding::zero3}[below(4)];
    if (below(3) == 0) s.virtual_stages = 2;
    return request;
  }

  // The platform `base` with `members` over it: one file for equal ones, so that a Session reads them once.
  std::string file(const std::string& base, std::string_view members) {
    const std::string text =
        fmt::format(R"({{"stepcast_platform": 1, "name": "changed", "extends": "{}", {}}})", base, members);
    std::string& path = files_[text];
    if (path.empty()) {
      path = (folder_.path() / fmt::format("{}.json", files_.size())).string();
      std::ofstream{path} << text;
    }
    return path;
  }

 private:
  std::mt19937 random_;
  test::TemporaryFolder folder_;
  std::map<std::string, std::string> files_;  // [text]
};

using Check = std::function<std::string(const Answer& before, const Answer& after)>;

std::string no_slower(const Answer& before, const Answer& after) {
  if (after.step_ms <= before.step_ms * (1 + kSameDigits)) return {};
  return fmt::format("{:.6f} ms became {:.6f}", before.step_ms, after.step_ms);
}
std::string no_faster(const Answer& before, const Answer& after) { return no_slower(after, before); }
std::string no_more_memory(const Answer& before, const Answer& after) {
  if (after.memory_GiB <= before.memory_GiB * (1 + kSameDigits)) return {};
  return fmt::format("{:.6f} GiB became {:.6f}", before.memory_GiB, after.memory_GiB);
}
std::string no_less_memory(const Answer& before, const Answer& after) {
  return no_more_memory(after, before);
}
std::string neither(const Answer& before, const Answer& after) {
  return no_slower(before, after) + no_more_memory(before, after);
}
std::string equal(const Answer& before, const Answer& after) {
  return no_slower(before, after) + no_faster(before, after) + no_more_memory(before, after) +
         no_less_memory(before, after);
}

struct Law {
  std::string name;
  // Makes the second question of the first, or changes both. False: it is no question of this law.
  std::function<bool(Questions&, PredictRequest& before, PredictRequest& after)> change;
  Check check;
};

Law what_if(std::string name, const std::string& faster) {
  return {std::move(name),
          [faster](Questions&, PredictRequest&, PredictRequest& after) {
            after.what_if = {faster};
            return true;
          },
          no_slower};
}

// The figure of a shipped platform at so many times what it is.
Law figure(std::string name, const std::string& section, const std::string& key, double times,
           Check check = no_slower) {
  return {std::move(name),
          [=](Questions& questions, PredictRequest&, PredictRequest& after) {
            const Result<Platform> platform = load_platform(after.platform);
            if (!platform) return false;
            const std::string path = section + "." + key;
            for (const PlatformFigure& one : platform_figures(*platform)) {
              if (one.path != path) continue;
              std::string open = fmt::format("\"{}\": {}", key, std::stod(one.value) * times);
              std::string_view rest = section;
              for (std::size_t dot = rest.rfind('.'); !rest.empty(); dot = rest.rfind('.')) {
                open = fmt::format("\"{}\": {{{}}}", rest.substr(dot + 1), open);
                rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(0, dot);
              }
              after.platform = questions.file(after.platform, open);
              return true;
            }
            return false;
          },
          std::move(check)};
}

template <class Set>
Law setting(std::string name, Set set, Check check) {
  return {std::move(name),
          [set](Questions&, PredictRequest& before, PredictRequest& after) {
            return set(before.job.settings, after.job.settings);
          },
          std::move(check)};
}

std::vector<Law> laws_of_machines() {
  return {what_if("links inside nodes twice as fast", "nvlink=2x"),
          what_if("network twice as fast", "network=2x"),
          what_if("transfers twice as fast", "communication=2x"),
          what_if("products twice as fast", "gemm=2x"),
          what_if("attention twice as fast", "attention=2x"),
          what_if("memory-bound kernels twice as fast", "memory_bound=2x"),
          what_if("host twice as fast", "host=2x"),
          figure("16-bit peak twice as high", "device", "peak_bf16_TFLOPs", 2),
          figure("memory twice as fast", "device", "memory_bandwidth_GBps", 2),
          figure("memory twice as large", "device", "memory_GiB", 2, equal),
          figure("clock twice as high", "device", "clock_MHz", 2),
          figure("less latency inside nodes", "node.intra", "latency_us", 0.5),
          figure("less latency between nodes", "node.network", "latency_us", 0.5),
          figure("adapters twice as fast", "node.network", "nic_bandwidth_Gbps", 2),
          figure("links inside nodes of a file", "node.intra", "bandwidth_per_gpu_GBps", 2),
          {"twice as many GPUs behind one switch",
           [](Questions& questions, PredictRequest&, PredictRequest& after) {
             const Result<Platform> platform = load_platform(after.platform);
             if (!platform || platform->node.intra.kind != LinkKind::nvswitch || !platform->node.network)
               return false;
             const std::uint32_t n = platform->node.gpus_per_node;
             after.platform = questions.file(
                 after.platform,
                 fmt::format(R"("node": {{"gpus_per_node": {}, "network": {{"nics_per_node": {}}}}})", 2 * n,
                             2 * platform->node.network->nics_per_node));
             return true;
           },
           [](const Answer& before, const Answer& after) {
             // Eight adapters and a switch are as fast within the error of both forecasts.
             constexpr double kAsFast = 1.01;
             return no_slower({before.step_ms * kAsFast, before.memory_GiB, before.attention_ms}, after);
           }},
          {"a lower power limit",
           [](Questions& questions, PredictRequest& before, PredictRequest& after) {
             const Result<Platform> platform = load_platform(after.platform);
             if (!platform || !platform->device.power_limit_W) return false;
             const double limit = *platform->device.power_limit_W;
             before.power_limit_W = limit * (questions.below(2) == 0 ? 1 : 0.8);
             after.power_limit_W = limit * 0.65;
             return true;
           },
           no_faster},
          {"a what-if of 1",
           [](Questions& questions, PredictRequest&, PredictRequest& after) {
             constexpr std::array kParts = {"gemm",   "attention", "memory_bound", "communication",
                                            "nvlink", "network",   "host",         "gpu"};
             after.what_if = {fmt::format("{}=1x", kParts[questions.below(kParts.size())])};
             return true;
           },
           equal},
          {"what-ifs in another order",
           [](Questions&, PredictRequest& before, PredictRequest& after) {
             before.what_if = {"nvlink=2x", "gemm=1.5x", "host=3x"};
             after.what_if = {"host=3x", "nvlink=2x", "gemm=1.5x"};
             return true;
           },
           equal}};
}

std::vector<Law> laws_of_jobs() {
  using S = JobSettings;
  constexpr std::int64_t kQuarter = 4;
  return {
      setting(
          "more recomputation",
          [](S& before, S& after) {
            after.recompute = Recompute::full;
            // From selective on it is no law yet: scores that it writes out for a moment are not counted.
            before.recompute = Recompute::none;
            return true;
          },
          no_more_memory),
      setting(
          "a distributed optimizer",
          [](S& before, S& after) {
            before.sharding = Sharding::none;
            after.sharding = Sharding::zero1;
            return true;
          },
          no_more_memory),
      setting(
          "all sharded over the optimizer alone",
          [](S& before, S& after) {
            before.pipeline = after.pipeline = 1;
            before.virtual_stages.reset();
            after.virtual_stages.reset();
            before.sharding = Sharding::zero1;
            after.sharding = Sharding::zero3;
            return true;
          },
          no_more_memory),
      setting(
          "twice the batch",
          [](S& before, S& after) {
            after.global_batch_sequences = 2 * *before.global_batch_sequences;
            return true;
          },
          [](const Answer& before, const Answer& after) {
            Answer twice = before;
            twice.step_ms *= 2;
            return no_faster(before, after) + no_slower(twice, after) + no_less_memory(before, after);
          }),
      setting(
          "twice the sequence",
          [](S& before, S& after) {
            after.seq_len_tokens = 2 * *before.seq_len_tokens;
            return true;
          },
          [](const Answer& before, const Answer& after) {
            return no_faster(before, after) + no_less_memory(before, after);
          }),
      {"twice a long sequence",  // shorter ones do not fill a GPU, images and windows stay
       [](Questions&, PredictRequest& before, PredictRequest& after) {
         const Result<Transformer> model = find_preset(before.job.model);
         before.job.settings.seq_len_tokens = 16384;
         after.job.settings.seq_len_tokens = 32768;
         return model.ok() && model->tower == nullptr && model->sliding_window_tokens == 0;
       },
       [](const Answer& before, const Answer& after) -> std::string {
         if (after.attention_ms >= 2 * before.attention_ms * (1 - kSameDigits)) return {};
         return fmt::format("attention: {:.6f} ms became {:.6f}", before.attention_ms, after.attention_ms);
       }},
      setting(
          "packed with whole sequences",
          [](S& before, S& after) {
            after.packed_mean_tokens = static_cast<double>(*before.seq_len_tokens);
            return true;
          },
          equal),
      setting(
          "packed with shorter ones",
          [](S& before, S& after) {
            before.packed_mean_tokens = static_cast<double>(*before.seq_len_tokens);
            after.packed_mean_tokens = static_cast<double>(*before.seq_len_tokens) / kQuarter;
            return true;
          },
          neither),
      // Of its memory nothing: Megatron's was measured to keep fp32 logits beside the others (loss_bytes_per_logit).
      setting(
          "a fused loss",
          [](S& before, S& after) {
            before.fuse_cross_entropy = false;
            after.fuse_cross_entropy = true;
            return true;
          },
          no_slower),
      setting(
          "twice the micro-batch",
          [](S& before, S& after) {
            // As many micro-batches: of fewer a pipeline holds fewer.
            after.global_batch_sequences = 2 * *before.global_batch_sequences;
            after.micro_batch_sequences = 2 * *before.micro_batch_sequences;
            return true;
          },
          no_less_memory),
      setting(
          "gradients in 16 bits",
          [](S& before, S& after) {
            before.gradient_dtype = DType::fp32;
            after.gradient_dtype = DType::bf16;
            return true;
          },
          no_more_memory),
      setting(
          "16 bits in place of 32",
          [](S& before, S& after) {
            before.dtype = DType::fp32;
            after.dtype = DType::fp16;
            return true;
          },
          no_slower),
      setting(
          "weights that do not change",
          [](S&, S& after) {
            after.frozen_base = true;
            after.lora_rank = 8;
            return true;
          },
          no_more_memory),
      setting(
          "adapters of a larger rank",
          [](S& before, S& after) {
            before.lora_rank = 8;
            after.lora_rank = 64;
            return true;
          },
          no_less_memory),  // 8 columns are no faster than 64
      setting(
          "frozen weights in four bits",
          [](S& before, S& after) {
            before.lora_rank = after.lora_rank = 8;
            after.lora_base_weights = "nf4";
            return true;
          },
          no_more_memory),
      setting(
          "frozen weights in four bits, which no rank gathers",
          [](S& before, S& after) {
            before.lora_rank = after.lora_rank = 8;
            after.lora_base_weights = "nf4";
            return before.sharding != Sharding::zero3;
          },
          no_faster),
      setting(
          "scales of frozen weights in eight bits",
          [](S& before, S& after) {
            before.lora_rank = after.lora_rank = 8;
            before.lora_base_weights = "nf4";
            after.lora_base_weights = "nf4-double";
            return true;
          },
          no_more_memory),
      setting(
          "dropout of adapters",
          [](S& before, S& after) {
            before.lora_rank = after.lora_rank = 8;
            before.lora_dropout = 0.1;
            return true;
          },
          neither),
      {"twice the data-parallel ranks",
       [](Questions&, PredictRequest&, PredictRequest& after) {
         after.job.n_gpus = 2 * *after.job.n_gpus;
         return true;
       },
       no_more_memory},
      {"a model by another spelling",
       [](Questions&, PredictRequest&, PredictRequest& after) {
         for (char& c : after.job.model)
           c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
         return true;
       },
       equal},
      {"flags of a script in another order",
       [](Questions& questions, PredictRequest& before, PredictRequest& after) {
         const std::string flags = megatron_flags_of(before.job.settings);
         std::vector<std::string> words;
         for (std::size_t at = flags.find("--"); at != std::string::npos;) {
           const std::size_t next = flags.find(" --", at);
           words.push_back(flags.substr(at, next == std::string::npos ? next : next - at));
           at = next == std::string::npos ? next : next + 1;
         }
         before.job.settings = after.job.settings = {};
         before.job.command_line = "torchrun pretrain_gpt.py " + flags;
         std::shuffle(words.begin(), words.end(), questions.random());
         after.job.command_line = fmt::format("torchrun pretrain_gpt.py {}", fmt::join(words, " "));
         return true;
       },
       equal}};
}

std::string text_of(const PredictRequest& r) {
  const JobSettings& s = r.job.settings;
  return fmt::format("{} on {} {}: {} recompute {} sharding {} {}", r.job.model, r.job.n_gpus.value_or(0),
                     r.platform, megatron_flags_of(s), s.recompute ? static_cast<int>(*s.recompute) : -1,
                     s.sharding ? static_cast<int>(*s.sharding) : -1, r.job.command_line.value_or(""));
}

void expect_kept(const std::vector<Law>& laws) {
  const int n_questions = test::rounds(6, 300);
  for (std::size_t l = 0; l < laws.size(); ++l) {
    const Law& law = laws[l];
    const Session session;
    Questions questions{static_cast<std::uint32_t>(l + 1)};
    int asked = 0;
    std::vector<std::string> broken;
    for (int drawn = 0; asked < n_questions && drawn < 40 * n_questions; ++drawn) {
      PredictRequest before = questions.draw(), after = before;
      const std::string words = text_of(before);
      if (!law.change(questions, before, after)) continue;
      const Result<Answer> was = ask(session, before);
      if (!was) continue;  // a layout that cannot run
      const Result<Answer> is = ask(session, after);
      if (!is) continue;
      ++asked;
      if (std::string what = law.check(*was, *is); !what.empty()) broken.push_back(words + ": " + what);
    }
    EXPECT_EQ(asked, n_questions) << law.name;
    EXPECT_TRUE(broken.empty()) << law.name << ": " << broken.size() << " of " << asked << "\n  "
                                << fmt::format("{}", fmt::join(broken, "\n  "));
  }
}

TEST(Laws, OfMachinesHold) { expect_kept(laws_of_machines()); }

TEST(Laws, OfJobsHold) { expect_kept(laws_of_jobs()); }

}  // namespace
}  // namespace stepcast::laws_test
