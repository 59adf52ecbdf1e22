// What ships in platforms/ loads, is physically possible, and covers every machine of the measured data.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/platform/shipped_texts.h"

#include "tests/support/command.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::shipped_platforms_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<fs::path> dirs() { return {source_dir() / "platforms"}; }

const std::vector<Platform>& shipped() {
  static const std::vector<Platform> kAll = [] {
    std::vector<Platform> all;
    const PlatformListings listing = list_platforms(dirs());
    EXPECT_TRUE(listing.unreadable.empty()) << listing.unreadable.front();
    for (const PlatformListing& entry : listing.platforms) {
      auto platform = load_platform(entry.file.string(), dirs());
      if (platform.ok()) all.push_back(*std::move(platform));
    }
    return all;
  }();
  return kAll;
}

Platform load(std::string_view name, std::string_view device = {}) {
  auto platform = load_platform(name, dirs(), device);
  if (!platform.ok()) ADD_FAILURE() << platform.error().message();
  return platform.ok() ? *std::move(platform) : Platform{};
}

TEST(ShippedPlatforms, AllLoadAndHaveTheNameOfTheirFile) {
  ASSERT_GE(shipped().size(), 60U);
  for (const Platform& p : shipped()) {
    EXPECT_EQ(p.name, p.files.front().stem().string());
    EXPECT_THAT(p.description, Not(IsEmpty())) << p.name;
  }
}

// A program that is older than its platforms reads them as it reads any other file.
TEST(ShippedPlatforms, AreKnownByTheirContent) {
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator{test::source_dir() / "platforms"}) {
    if (entry.path().extension() != ".json") continue;
    Result<std::string> text = read_file(entry.path());
    ASSERT_TRUE(text.ok());
    EXPECT_TRUE(shipped_text(*text)) << entry.path();
    text->back() = ' ';
    EXPECT_FALSE(shipped_text(*text)) << entry.path();
  }
}

// The same files with a blank at their end are read as those of a user: all of them, and at once.
TEST(ShippedPlatforms, AreReadAsThoseOfAUser) {
  const TemporaryFolder folder;
  const fs::path copy = folder.path() / "platforms";
  fs::copy(source_dir() / "platforms", copy, fs::copy_options::recursive);
  std::set<fs::path> open;  // files with records that no platform so far was read from
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator{copy}) {
    if (entry.path().extension() != ".json") continue;
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
    std::ofstream{entry.path(), std::ios::app} << ' ';
    if (entry.path().parent_path() != copy) open.insert(fs::relative(entry.path(), copy));
  }
  for (const Platform& p : shipped()) {
    std::size_t fresh = 0;
    for (const fs::path& file : p.files) fresh += open.erase(fs::relative(file, source_dir() / "platforms"));
    if (fresh == 0) continue;
    const std::vector<fs::path> here{copy};
    const auto users = load_platform(p.name, here);
    ASSERT_TRUE(users.ok()) << users.error().message();
    EXPECT_TRUE(*users == p) << p.name;
    EXPECT_FALSE(users->overheads.is_later()) << p.name;
  }
  open.erase("hosts/v100-dgx-station.json");  // that platforms of users may extend
  EXPECT_THAT(open, IsEmpty());

  const std::string tool = stepcast_executable().string();
  const auto predict = [&](const std::string& platforms) {
    const auto run = run_command({"/usr/bin/env", "STEPCAST_PLATFORMS=" + platforms, tool, "predict",
                                  "--model", "gpt3-175b", "--platform", "dgx-a100", "--gpus", "512", "--tp",
                                  "8", "--pp", "8", "--gbs", "1536", "--json"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  EXPECT_EQ(predict(copy.string()), predict((source_dir() / "platforms").string()));
}

TEST(ShippedPlatforms, RoundTripExactly) {
  for (const Platform& p : shipped()) {
    const auto back = parse_platform(platform_json(p), "x.json", {});
    ASSERT_TRUE(back.ok()) << p.name << ": " << back.error().message();
    EXPECT_TRUE(*back == p) << p.name;
  }
}

TEST(ShippedPlatforms, EveryFigureSaysWhereItIsFrom) {
  for (const Platform& p : shipped()) {
    for (const PlatformFigure& figure : platform_figures(p)) {
      if (figure.path == "node.gpus_per_node" && p.node.gpus_per_node == 1) continue;
      EXPECT_THAT(figure.provenance.document, Not(IsEmpty())) << p.name << " " << figure.path;
    }
  }
}

TEST(ShippedPlatforms, HoldNoMoreThanSmoothedKnots) {
  for (const Platform& p : shipped()) {
    for (const CollectiveCurve& curve : p.curves)
      EXPECT_LE(curve.fit->knots.size(), kMaxShippedKnots) << p.name;
  }
}

TEST(ShippedPlatforms, ArePhysicallyPossible) {
  const auto between = [](double x, double low, double high) { return x >= low && x <= high; };
  for (const Platform& p : shipped()) {
    SCOPED_TRACE(p.name);
    const Device& d = p.device;
    const auto peak = [&](DType t) { return d.peak(t) ? d.peak(t)->value() * 1e-12 : 0.0; };
    const auto vector = [&](DType t) { return d.vector(t) ? d.vector(t)->value() * 1e-12 : 0.0; };
    EXPECT_TRUE(between(d.memory_bandwidth.value() * 1e-9, 100, 20000));
    EXPECT_TRUE(between(d.memory_size.value() / 1073741824.0, 4, 512));
    // Narrower types are at least as fast, where the device has them.
    const DType ladder[] = {DType::fp64, DType::fp32, DType::tf32, DType::fp16, DType::fp8};
    double before = 0;
    for (const DType t : ladder) {
      if (!d.peak(t)) continue;
      EXPECT_GE(peak(t), 0.999 * before) << to_string(t);  // 19.492 and 19.5 are one figure rounded twice
      before = peak(t);
    }
    if (d.peak(DType::bf16) && d.peak(DType::fp16)) {
      EXPECT_LE(peak(DType::bf16), peak(DType::fp16));
    }
    if (d.peak(DType::int8)) {
      EXPECT_GE(peak(DType::int8), peak(DType::fp16));
    }
    if (d.vector(DType::fp32)) {
      EXPECT_LE(vector(DType::fp32), peak(DType::fp32));
    }
    if (d.vector(DType::fp16) && d.peak(DType::fp16)) {
      EXPECT_LE(vector(DType::fp16), peak(DType::fp16));
    }
    ASSERT_TRUE(d.launch_overhead && d.kernel_floor);
    EXPECT_TRUE(between(d.launch_overhead->value(), 1, 20));
    EXPECT_TRUE(between(d.kernel_floor->value(), 0.5, 10));
    // Sheets of other accelerators say no more than this.
    if (p.node.intra.kind != LinkKind::torus) {
      EXPECT_TRUE(between(peak(DType::fp32), 1, 1000));
      ASSERT_TRUE(d.sm_count && d.clock_MHz && d.l2_size && d.host_link_bandwidth);
      EXPECT_TRUE(between(*d.sm_count, 10, 400));
      // Between 64 and 256 operations per unit and cycle: 32 to 128 lanes, a multiply-add each, at most
      // doubled.
      EXPECT_TRUE(between(vector(DType::fp32) * 1e6 / (*d.sm_count * *d.clock_MHz), 60, 300));
      EXPECT_TRUE(between(d.l2_size->value() / 1048576.0, 1, 300));
      if (d.l2_bandwidth) {
        EXPECT_GT(*d.l2_bandwidth, d.memory_bandwidth);
      }
      EXPECT_LT(*d.host_link_bandwidth, d.memory_bandwidth);
    }

    const IntraNode& intra = p.node.intra;
    if (p.node.gpus_per_node > 1) {
      EXPECT_TRUE(between(intra.bandwidth_per_gpu.value() * 1e-9, 8, 2000));
      EXPECT_LT(intra.bandwidth_per_gpu, d.memory_bandwidth);
      ASSERT_TRUE(intra.latency);
      EXPECT_TRUE(between(intra.latency->value(), 0.3, 20));
    }
    if (intra.kind == LinkKind::pcie) {
      EXPECT_EQ(intra.bandwidth_per_gpu, *d.host_link_bandwidth);
    }
    // The links of a GPU together are what the GPU can send, or more where they are unequal and rings use the thin ones.
    if (!intra.links.empty()) {
      std::vector<double> sum(p.node.gpus_per_node, 0.0);
      for (const Link& link : intra.links) {
        sum[link.gpu_a] += link.bandwidth.value();
        sum[link.gpu_b] += link.bandwidth.value();
      }
      const double can_send = intra.bandwidth_per_gpu.value();
      for (const double s : sum)
        EXPECT_TRUE(between(s / can_send, 1 - 1e-9, intra.kind == LinkKind::xgmi_mesh ? 2 : 1 + 1e-9));
    }
    if (p.node.network) {
      EXPECT_TRUE(between(p.node.network->bandwidth_per_nic.value() * 8e-9, 10, 1600));
      const double per_gpu = p.node.network->bandwidth_per_node().value() / p.node.gpus_per_node;
      if (p.node.gpus_per_node > 1) {
        EXPECT_LE(per_gpu, intra.bandwidth_per_gpu.value());
      }
      ASSERT_TRUE(p.node.network->latency);
      EXPECT_TRUE(between(p.node.network->latency->value(), 1, 100));
    }
  }
}

TEST(ShippedPlatforms, HaveNoNameTwice) {
  // One alias may belong to several platforms only if their devices tell them apart.
  std::set<std::pair<std::string, std::string>> seen;
  for (const Platform& p : shipped()) {
    for (const std::string& alias : p.aliases) {
      EXPECT_TRUE(seen.emplace(alias, p.device.name).second) << alias;
      for (const Platform& other : shipped())
        EXPECT_TRUE(&other == &p || !same_name(other.name, alias)) << alias;
    }
  }
}

TEST(ShippedPlatforms, CoverTheFamiliesThatTheDocumentationNames) {
  EXPECT_EQ(load("dgx-1-v100").node.gpus_per_node, 8U);
  EXPECT_EQ(load("dgx-2-v100").node.gpus_per_node, 16U);
  EXPECT_EQ(load("dgx-a100").node.network->bandwidth_per_node(), BytesPerSecond{200e9});
  EXPECT_EQ(load("dgx-h100").node.network->bandwidth_per_node(), BytesPerSecond{400e9});
  EXPECT_EQ(load("cloud-8xa100").node.network->bandwidth_per_node(), BytesPerSecond{50e9});
  EXPECT_EQ(load("hpc-4xa100").node.gpus_per_node, 4U);
  EXPECT_EQ(load("gh200-1gpu").node.gpus_per_node, 1U);
  for (const char* name :
       {"V100",         "A100",  "A100-40GB", "a100_pcie", "H100",   "h100_pcie", "H200",   "b200",
        "GB200",        "GH200", "L40S",      "P100",      "P4",     "T4",        "MI250X", "MI300X",
        "rtx_pro_6000", "B300",  "GB300",     "MI325X",    "MI350X", "MI355X",    "H20",    "H800"}) {
    const auto device = load_device(name, dirs());
    EXPECT_TRUE(device.ok()) << device.error().message();
  }
  EXPECT_EQ(load("dgx-a100-40gb").device.memory_size, Bytes{40 * 1073741824.0});
}

// The cells of a CSV file, which may be quoted.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

// Different values of two columns; the second may be missing.
std::set<std::pair<std::string, std::string>> values_of(const fs::path& file, const std::string& a,
                                                        const std::string& b) {
  std::ifstream in{file};
  std::string line;
  std::getline(in, line);
  const auto header = cells_of(line);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  std::set<std::pair<std::string, std::string>> values;
  while (std::getline(in, line)) {
    const auto cells = cells_of(line);
    const auto cell = [&](std::size_t i) { return i < cells.size() ? cells[i] : std::string{}; };
    if (column(a) < header.size()) values.emplace(cell(column(a)), cell(column(b)));
  }
  return values;
}

TEST(ShippedPlatforms, EveryMachineOfTheMeasuredDataIsKnown) {
  SKIP_WITHOUT_DATA();
  int names = 0;
  const auto expect_known = [&](const fs::path& file) {
    for (const auto& [platform, gpu] : values_of(file, "platform", "gpu")) {
      const auto loaded = load_platform(platform, dirs(), gpu);
      EXPECT_TRUE(loaded.ok()) << platform << ", " << gpu << ": " << loaded.error().message();
      if (loaded.ok() && !gpu.empty()) {
        EXPECT_TRUE(loaded->device.matches_name(gpu)) << platform << ", " << gpu;
      }
      ++names;
    }
  };
  for (const auto& entry : fs::directory_iterator(*measured_data() / "collectives")) {
    if (entry.path().extension() == ".csv") expect_known(entry.path());
  }
  EXPECT_GE(names, 6);
}

TEST(ShippedPlatforms, EveryGpuOfTheMeasuredKernelsIsKnown) {
  SKIP_WITHOUT_DATA();
  std::vector<fs::path> files{*measured_data() / "iterations" / "dlrm_runs.csv"};
  for (const auto& entry : fs::directory_iterator(*measured_data() / "kernels")) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  for (const fs::path& file : files) {
    for (const auto& [gpu, unused] : values_of(file, "gpu", "")) {
      const auto device = load_device(gpu, dirs());
      EXPECT_TRUE(device.ok()) << file << ": " << device.error().message();
    }
  }
}

TEST(PlatformsVerb, ListsAndShows) {
  const std::string tool = stepcast_executable().string();
  const auto list = run_command({tool, "platforms", "--details"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("dgx-a100"));
  const auto one = run_command({tool, "platforms", "dgx-a100", "--details"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("device.memory_bandwidth_GBps"));
  EXPECT_THAT(one.out, HasSubstr("data_sheet ["));
  const auto json = run_command({tool, "platforms", "dgx-a100", "--json"});
  const auto back = parse_platform(json.out, "x.json", {});
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->name, "dgx-a100");
  const auto listing = run_command({tool, "platforms", "--json"});
  EXPECT_TRUE(parse_json(listing.out, "out").ok());
  const auto unknown = run_command({tool, "platforms", "dgx-a1000"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean `dgx-a100`"));
}

}  // namespace
}  // namespace stepcast::test::shipped_platforms_test
