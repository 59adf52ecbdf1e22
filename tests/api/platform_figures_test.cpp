// Every figure of a platform file acts: doubled and halved in a file that extends a shipped platform, it moves a forecast in the
// right direction, or the answer says why not.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/platform/platform_file.h"

#include "tests/support/rounds.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::platform_figures_test {
namespace {

constexpr std::array kPlatforms = {"dgx-h100",         "gb200-nvl72",        "8xmi300x", "azure-nd-a100-v4",
                                   "4xa100-pcie-80gb", "dgx-1-v100",         "tpu7x",    "dgx-a100",
                                   "dgx-b300",         "rtx-pro-6000-server"};
constexpr double kSameDigits = 1e-9;

struct Answer {
  std::vector<double> times;                    // of the steps of questions(), and what memory they have
  std::vector<std::vector<std::string>> notes;  // of each question
};

// Dense in 16 bits over two nodes, in 8 bits, in 32 bits, with experts, with the optimizer on the host, of a network of images.
std::vector<PredictRequest> questions(const Platform& base) {
  const std::int64_t in_node = std::min<std::int64_t>(base.node.gpus_per_node, 8);
  const std::int64_t n_gpus = base.node.network ? 2 * base.node.gpus_per_node : base.node.gpus_per_node;
  const auto request = [&](const char* model, auto set) {
    PredictRequest one{
        .job = {.model = model, .n_gpus = n_gpus}, .only_critical = true, .compares_types = false};
    JobSettings& s = one.job.settings;
    s.micro_batch_sequences = 1;
    s.global_batch_sequences = 2 * n_gpus;
    s.seq_len_tokens = 2048;
    s.tensor = s.pipeline = s.context = 1;
    s.dtype = base.device.peak(DType::bf16) ? DType::bf16 : DType::fp16;
    set(s);
    return one;
  };
  using S = JobSettings;
  std::vector<PredictRequest> all = {
      request("llama-3-8b", [&](S& s) { s.tensor = in_node; }),
      request("llama-3-8b", [](S& s) { s.fully_sharded = true; }),
      request("llama-3-8b", [](S& s) { s.fp8 = true; }),
      request("gpt2-xl", [](S& s) { s.dtype = DType::fp32; }),
      request("gpt2-xl", [](S& s) { s.dtype = DType::fp16; }),
      request("gpt2-xl", [](S& s) { s.optimizer_offload = true; }),
      request("mixtral-8x7b", [&](S& s) { s.expert = in_node; }),
  };
  return all;
}

std::optional<Answer> ask(const Session& session, const std::vector<PredictRequest>& requests,
                          const std::string& platform, std::string& why) {
  Answer answer;
  for (PredictRequest request : requests) {
    request.platform = platform;
    const Result<Forecast> f = session.predict(request);
    if (!f) why = f.error().message();
    answer.times.push_back(f ? f->step_time_ms : 0);
    answer.times.push_back(f && f->memory ? -f->memory->available_GiB : 0);
    answer.notes.push_back(f ? f->notes : std::vector<std::string>{});
  }
  if (std::ranges::all_of(answer.times, [](double t) { return t == 0; })) return std::nullopt;
  return answer;
}

// {"node": {"intra": {"latency_us": 3}}} of "node.intra.latency_us".
std::string file_text(std::string_view base, std::string_view path, double value) {
  std::string open, close;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    open += fmt::format("\"{}\": {{", path.substr(0, dot));
    close += "}";
    path.remove_prefix(dot + 1);
  }
  return fmt::format(R"({{"stepcast_platform": 1, "name": "changed", "extends": "{}", {}"{}": {}{}}})", base,
                     open, path, value, close);
}

// What more of makes nothing slower: 1; what makes nothing faster: -1; what both may do: 0.
int sign_of(std::string_view path) {
  if (path.ends_with("latency_us") || path.ends_with("floor_us") || path.ends_with("overhead_us")) return -1;
  for (const std::string_view rate : {"GBps", "Gbps", "TFLOPs", "GiB"})
    if (path.ends_with(rate)) return 1;
  return path == "node.network.nics_per_node" ? 1 : 0;
}

// What the answer says of the figure.
enum class Said : std::uint8_t { nothing, effect, no_effect };

Said said_of(const std::vector<std::string>& notes, const std::string& path) {
  for (const std::string& note : notes) {
    if (note.find("changed in the platform file: " + path) == std::string::npos) continue;
    return note.find("no effect on this step") != std::string::npos ? Said::no_effect : Said::effect;
  }
  return Said::nothing;
}

// Those that steps in 16 and 8 bits over two nodes are bound by.
bool must_act(std::string_view path, const Platform& platform) {
  if (path == "device.memory_bandwidth_GBps" || path == "node.intra.bandwidth_per_gpu_GBps") return true;
  // Transfers between slices of a torus are hidden.
  if (path == "node.network.nic_bandwidth_Gbps") return platform.node.intra.kind != LinkKind::torus;
  return path == (platform.device.peak(DType::bf16) ? "device.peak_bf16_TFLOPs" : "device.peak_fp16_TFLOPs");
}

TEST(PlatformFigures, EachActsOrTheAnswerSaysWhyNot) {
  const test::TemporaryFolder folder;
  const auto n_platforms = static_cast<std::size_t>(test::rounds(3, static_cast<int>(kPlatforms.size())));
  std::size_t acting = 0;
  for (std::size_t p = 0; p < n_platforms; ++p) {
    const std::string base = kPlatforms[p];
    const Result<Platform> platform = load_platform(base);
    ASSERT_TRUE(platform.ok()) << platform.error().message();
    const std::vector<PredictRequest> all = questions(*platform);
    const Session session;
    std::string why;
    const std::optional<Answer> before = ask(session, all, base, why);
    ASSERT_TRUE(before) << base << ": " << why;
    for (const PlatformFigure& figure : platform_figures(*platform)) {
      char* end = nullptr;
      const double value = std::strtod(figure.value.c_str(), &end);
      if (end == nullptr || *end != '\0') continue;  // no number
      bool moved = false;
      for (const double times : {2.0, 0.5}) {
        SCOPED_TRACE(fmt::format("{} {} x {}", base, figure.path, times));
        const std::string file =
            (folder.path() / fmt::format("{}{}{}.json", base, figure.path, times)).string();
        std::ofstream{file} << file_text(base, figure.path, value * times);
        const std::optional<Answer> after = ask(session, all, file, why);
        if (!after) continue;  // refused: sides of a torus that do not come to its GPUs
        const int sign = sign_of(figure.path) * (times > 1 ? 1 : -1);
        for (std::size_t i = 0; i < after->times.size(); ++i) {
          const double was = before->times[i], is = after->times[i];
          if (was == 0 || is == 0) continue;
          const double change = (is - was) / std::abs(was);
          if (std::abs(change) > kSameDigits) moved = true;
          if (i % 2 == 0) {
            const Said said = said_of(after->notes[i / 2], figure.path);
            EXPECT_EQ(said, std::abs(change) > kSameDigits ? Said::effect : Said::no_effect)
                << "question " << i / 2;
          }
          if (sign != 0) {
            EXPECT_LE(change * sign, kSameDigits) << "question " << i / 2 << ": " << was << " became " << is;
          }
        }
      }
      acting += moved ? 1 : 0;
      if (must_act(figure.path, *platform)) {
        EXPECT_TRUE(moved) << base << " " << figure.path;
      }
    }
  }
  EXPECT_GT(acting, 10 * n_platforms);
}

// Links and adapters so many times as fast are one question, asked by a file or by --what-if.
TEST(PlatformFigures, AFileAndAWhatIfAgree) {
  const test::TemporaryFolder folder;
  struct Pair {
    std::string_view path, what_if;
  };
  for (const char* base : kPlatforms) {
    const Result<Platform> platform = load_platform(base);
    ASSERT_TRUE(platform.ok()) << platform.error().message();
    if (platform->node.intra.pcie_bandwidth_per_gpu || !platform->node.intra.links.empty())
      continue;  // links are several figures there
    const Session session;
    for (const auto& [path, what_if] : {Pair{"node.intra.bandwidth_per_gpu_GBps", "nvlink"},
                                        Pair{"node.network.nic_bandwidth_Gbps", "network"}}) {
      for (const PlatformFigure& figure : platform_figures(*platform)) {
        if (figure.path != path) continue;
        for (const double times : {0.5, 2.0, 3.0}) {
          SCOPED_TRACE(fmt::format("{} {} x {}", base, path, times));
          const std::string file = (folder.path() / fmt::format("{}{}{}.json", base, path, times)).string();
          std::ofstream{file} << file_text(base, path, std::strtod(figure.value.c_str(), nullptr) * times);
          for (PredictRequest request : questions(*platform)) {
            request.platform = base;
            request.what_if = {fmt::format("{}={}x", what_if, times)};
            const Result<Forecast> by_what_if = session.predict(request);
            request.what_if.clear();
            request.platform = file;
            const Result<Forecast> by_file = session.predict(request);
            ASSERT_EQ(by_what_if.ok(), by_file.ok());
            if (!by_file) continue;
            EXPECT_NEAR(by_file->step_time_ms / by_what_if->step_time_ms, 1, 1e-6) << request.job.model;
          }
        }
      }
    }
  }
}

// What was measured with the new figures is not scaled.
TEST(PlatformFigures, OwnMeasurementsStay) {
  const Result<Platform> base = load_platform("dgx-h100");
  ASSERT_TRUE(base.ok()) << base.error().message();
  const std::vector<std::filesystem::path> dirs = platform_search_dirs();
  const auto parsed = [&](std::string_view text) { return parse_platform(text, "made.json", dirs); };
  const Result<Platform> half = parsed(file_text("dgx-h100", "node.intra.bandwidth_per_gpu_GBps", 225));
  ASSERT_TRUE(half.ok()) << half.error().message();
  ASSERT_FALSE(half->curves.empty());
  EXPECT_EQ(half->curves.front().measured_with.at("node.intra.bandwidth_per_gpu_GBps"), 450);
  ASSERT_EQ(half->changed.size(), 1U);
  EXPECT_EQ(half->changed.front().before, 450);
  // A file that holds all of it says the same.
  const Result<Platform> whole = parsed(platform_json(*half));
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  EXPECT_TRUE(*whole == *half);
  const Result<Platform> dropped = parsed(
      R"({"stepcast_platform": 1, "extends": "dgx-h100", "inherit_curves": false,
          "node": {"intra": {"bandwidth_per_gpu_GBps": 225}}})");
  ASSERT_TRUE(dropped.ok()) << dropped.error().message();
  EXPECT_TRUE(dropped->curves.empty());
}

}  // namespace
}  // namespace stepcast::platform_figures_test
