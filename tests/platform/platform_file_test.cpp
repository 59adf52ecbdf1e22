#include "stepcast/platform/platform_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::platform_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kDevice = R"("device": {"name": "G", "peak_fp32_TFLOPs": 10,
  "memory_bandwidth_GBps": 1000, "memory_GiB": 16})";

std::string file_with(std::string_view rest) {
  std::string text = "{\"stepcast_platform\": 1, \"name\": \"mine\",\n";
  text += kDevice;
  if (!rest.empty()) text += ",\n";
  text += rest;
  return text + "}";
}

Result<Platform> parse(std::string_view text) { return parse_platform(text, "my.json", {}); }

std::string message_of(std::string_view text) {
  const auto platform = parse(text);
  return platform.ok() ? "no error" : platform.error().message();
}

// A folder of files that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "stepcast_platform_XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream{path_ / name} << text;
    return path_ / name;
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Provenance fitted(std::string document, std::vector<std::uint32_t> hashes = {}) {
  Provenance p;
  p.source = FigureSource::fitted;
  p.document = std::move(document);
  p.date = "2024-05-31";
  p.software = "NCCL 2.23";
  p.n_rows = 21;
  p.row_hashes = RowHashes{std::move(hashes)};
  p.error = {{"mape_pct", 1.0 / 3}};
  p.range = {{"message_bytes_min", 4}, {"message_bytes_max", 4294967296.0}};
  return p;
}

CollectiveCurve curve_of(CollectiveOp op, std::uint32_t n) {
  CollectiveCurve curve;
  curve.collective = op;
  curve.dtype = DType::fp16;
  curve.gpus_per_node = curve.n_ranks = n;
  CurveFit& fit = curve.fit.edit();
  fit.published = {"three_region_sigmoid", {{"log2_m1", 14}, {"BWmax_GBps", 231.7}, {"t_s_us", 11.1}}};
  fit.improved = {"smooth", {{"a", 0.1}, {"b", -3e-7}}};
  fit.knots = {{1024, 10.5}, {4096, 11.25}, {1048576, 1.0 / 7}};
  fit.residuals = {{"all", 1024, 1048576, -0.05, 0.001, 0.07, 42}};
  fit.provenance = fitted("my log", {7, 0xffffffffU, 1});
  return curve;
}

// Rates are products without rounding (16 * 1e12), as they are after reading a file.
Platform full_platform() {
  Platform p;
  p.name = "full";
  p.description = "everything \"quoted\"\nand more";
  p.aliases = {"other name"};
  p.device.name = "G";
  p.device.vendor = "V";
  p.device.architecture = "a";
  p.device.aliases = {"GG", "G 2"};
  int i = 0;
  for (auto& peak : p.device.matrix_peak) peak.reset();
  for (const DType dtype :
       {DType::fp64, DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::fp8, DType::int8}) {
    p.device.matrix_peak[static_cast<std::size_t>(dtype)] = FlopsPerSecond{16e12 * ++i};
  }
  p.device.vector_peak[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond{0.125 * 1e12};
  p.device.memory_bandwidth = BytesPerSecond{1554.5 * 1e9};
  p.device.memory_size = Bytes{79.5 * 1073741824.0};
  p.device.sm_count = 108;
  p.device.clock_MHz = 1410.5;
  p.device.l2_size = Bytes{40 * 1048576.0};
  p.device.l2_bandwidth = BytesPerSecond{2270.5 * 1e9};
  p.device.host_link_bandwidth = BytesPerSecond{31.5 * 1e9};
  p.device.launch_overhead = Microseconds{4.1};
  p.device.kernel_floor = Microseconds{2.2};
  p.device.power_limit_W = 400;
  p.device.sources.set("memory_bandwidth_GBps", fitted("sheet"));
  p.device.sources.set("memory_GiB", Provenance{});
  p.node.gpus_per_node = 4;
  p.node.sources.set("gpus_per_node", fitted("sheet"));
  p.node.intra.kind = LinkKind::mixed;
  p.node.intra.bandwidth_per_gpu = BytesPerSecond{112.5 * 1e9};
  p.node.intra.latency = Microseconds{1.7};
  p.node.intra.pcie_bandwidth_per_gpu = BytesPerSecond{12.5 * 1e9};
  p.node.intra.gpus_per_pcie_domain = 2;
  p.node.intra.links = {{0, 1, BytesPerSecond{56.25 * 1e9}}, {2, 3, BytesPerSecond{56.25 * 1e9}}};
  p.node.intra.sources.set("links", fitted("topology"));
  p.node.network = Network{};
  p.node.network->kind = "IB";
  p.node.network->nics_per_node = 2;
  p.node.network->bandwidth_per_nic = BytesPerSecond{100 * 1e9 / 8};
  p.node.network->latency = Microseconds{3.3};
  p.node.network->rail_optimized = false;
  p.node.network->tiers = {{4, 1}, {16, 2.5}};
  p.node.network->sources.set("tiers", fitted("topology"));
  p.node.network->sources.set("kind", fitted("sheet"));
  p.set(curve_of(CollectiveOp::all_reduce, 4));
  p.set(curve_of(CollectiveOp::all_gather, 2));
  ModelRecord model;
  model.name = "gemm/bf16/forward";
  model.kind = "table";
  model.device = "G";
  model.parameters.add("weights", JsonValue::array().add(JsonValue{0.1}).add(JsonValue{-1e-17}));
  model.parameters.add("nested", JsonValue::object().add("on", JsonValue{true}));
  model.provenance = fitted("gemm.csv");
  p.set(model);
  OverheadRecord overhead;
  overhead.mean_us = 20.5;
  overhead.std_us = 0.1;
  overhead.p90_us = 41;
  overhead.n = 1234;
  p.set(overhead);
  overhead = {};
  overhead.type = OverheadType::t2;
  overhead.op = "aten::linear";
  overhead.mean_us = 7;
  overhead.outlier_us = 0.5;
  overhead.profiler_events = 2.25;
  p.set(overhead);
  return p;
}

TEST(PlatformFile, ReadsTheSmallestFile) {
  const auto p = parse(file_with(""));
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_EQ(p->name, "mine");
  EXPECT_EQ(p->device.memory_bandwidth, BytesPerSecond{1e12});
  EXPECT_EQ(p->device.memory_size, Bytes{16.0 * 1024 * 1024 * 1024});
  EXPECT_EQ(p->device.peak(DType::fp32), FlopsPerSecond{1e13});
  EXPECT_EQ(p->device.peak(DType::fp16), std::nullopt);
  EXPECT_EQ(p->node.gpus_per_node, 1U);
  EXPECT_FALSE(p->node.network);
}

TEST(PlatformFile, NetworkRatesAreBitsPerSecond) {
  const auto p = parse(file_with(R"("node": {"network": {"nics_per_node": 8, "nic_bandwidth_Gbps": 200}})"));
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_EQ(p->node.network->bandwidth_per_nic, BytesPerSecond{25e9});
  EXPECT_EQ(p->node.network->bandwidth_per_node(), BytesPerSecond{200e9});
}

TEST(PlatformFile, WritesWhatReadsBackEqualAndTheSameBytes) {
  const Platform p = full_platform();
  ASSERT_TRUE(p.check().ok()) << p.check().error().message();
  const std::string text = platform_json(p);
  const auto back = parse(text);
  ASSERT_TRUE(back.ok()) << back.error().message() << "\n" << text;
  EXPECT_TRUE(*back == p) << text << "\nagainst\n" << platform_json(*back);
  EXPECT_EQ(platform_json(*back), text);
}

TEST(PlatformFile, HashesOfRowsAreReadAsWrittenNowAndBefore) {
  const auto hashes_of = [](const std::string& hashes) {
    std::string text = file_with("");
    text.insert(text.find("\"memory_GiB\""),
                R"("sources": {"memory_GiB": {"source": "measured", "row_hashes": ")" + hashes + R"("}}, )");
    const auto platform = parse(text);
    EXPECT_TRUE(platform.ok()) << platform.error().message();
    return platform.ok() ? platform->device.sources.of("memory_GiB").row_hashes.all()
                         : std::vector<std::uint32_t>{};
  };
  const std::vector<std::uint32_t> expected{0x1a2b, 0x1a6a, 0xffffff};
  EXPECT_EQ(hashes_of("1a2b 3f ffe595"), expected);
  EXPECT_EQ(hashes_of("1a2b01 3eff ffe5959f"), expected);  // of 32 bits
  EXPECT_EQ(hashes_of("001a2b01001a6a00ffffff9f"), expected);
}

TEST(PlatformFile, AnExtensionSaysOnlyWhatDiffers) {
  const Folder folder;
  const Platform base = full_platform();
  folder.write("base.json", platform_json(base));
  Platform mine = base;
  mine.name = "mine";
  mine.description.clear();
  mine.aliases.clear();
  mine.device.memory_bandwidth = BytesPerSecond{900e9};
  mine.device.l2_bandwidth.reset();
  mine.node.network.reset();
  mine.node.intra.sources.erase("links");
  mine.curves[0].fit.edit().knots[0].time_us = 9;
  const std::string text = platform_extension_json(mine, base, "base");
  EXPECT_EQ(text.find("all_reduce"), std::string::npos) << text;
  EXPECT_EQ(text.find("peak_fp32"), std::string::npos) << text;
  const fs::path dirs[] = {folder.path()};
  const auto back = parse_platform(text, folder.path() / "mine.json", dirs);
  ASSERT_TRUE(back.ok()) << back.error().message() << "\n" << text;
  EXPECT_TRUE(*back == mine) << text << "\nagainst\n" << platform_json(*back);

  mine.curves.erase(mine.curves.begin());
  mine.models.clear();
  mine.overheads = {};
  const auto less =
      parse_platform(platform_extension_json(mine, base, "./base.json"), folder.path() / "mine.json", {});
  ASSERT_TRUE(less.ok()) << less.error().message();
  EXPECT_TRUE(*less == mine) << platform_json(*less);
}

TEST(PlatformFile, ExtendingOverridesFieldByFieldAndRecordByKey) {
  const Folder folder;
  folder.write("base.json", file_with(R"("description": "the base", "aliases": ["b"],
    "node": {"gpus_per_node": 2, "intra": {"kind": "pcie", "bandwidth_per_gpu_GBps": 16}},
    "collective_curves": [
      {"collective": "all_reduce", "gpus_per_node": 2, "knots": {"message_bytes": [8], "time_us": [5]}},
      {"collective": "all_gather", "gpus_per_node": 2, "knots": {"message_bytes": [8], "time_us": [6]}}])"));
  const auto p = parse_platform(R"({"stepcast_platform": 1, "extends": "base.json",
    "documents": {"mine": {"source": "measured", "document": "my bench", "date": "2026-01"}},
    "device": {"memory_bandwidth_GBps": 2000, "sources": {"default": "mine"}},
    "collective_curves": [
      {"collective": "all_reduce", "gpus_per_node": 2, "knots": {"message_bytes": [8], "time_us": [4]}}]})",
                                folder.path() / "mine.json", {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_EQ(p->name, "mine");  // from the file's name: names are not inherited
  EXPECT_EQ(p->description, "");
  EXPECT_THAT(p->aliases, ElementsAre());
  EXPECT_EQ(p->device.memory_bandwidth, BytesPerSecond{2e12});
  EXPECT_EQ(p->device.sources.of("memory_bandwidth_GBps").document, "my bench");
  EXPECT_EQ(p->device.sources.of("memory_GiB").document, "");
  EXPECT_EQ(p->device.name, "G");
  EXPECT_EQ(p->node.gpus_per_node, 2U);
  ASSERT_EQ(p->curves.size(), 2U);
  EXPECT_EQ(p->curves[0].key(), "all_gather/any/1x2/2");
  EXPECT_EQ(p->curves[0].fit->knots[0].time_us, 6);
  EXPECT_EQ(p->curves[1].key(), "all_reduce/any/1x2/2");
  EXPECT_EQ(p->curves[1].fit->knots[0].time_us, 4);
  EXPECT_THAT(p->files, ElementsAre(folder.path() / "mine.json", folder.path() / "base.json"));
}

TEST(PlatformFile, ASourceOfAFigureThatIsNotGivenIsDropped) {
  const auto p = parse_platform(R"({"stepcast_platform": 1, "device": {"name": "G", "peak_fp32_TFLOPs": 10,
    "memory_bandwidth_GBps": 1000, "memory_GiB": 16, "sources": {"l2_MiB": {"source": "measured"}}},
    "node": {"gpus_per_node": 2, "intra": {"kind": "pcie", "bandwidth_per_gpu_GBps": 16,
    "sources": {"links": {"source": "measured"}}}, "network": {"nics_per_node": 1, "nic_bandwidth_Gbps": 100,
    "sources": {"rail_optimized": {"source": "measured"}}}}})",
                                "m.json", {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  const auto back = parse_platform(platform_json(*p), "m.json", {});
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->device, p->device);
  EXPECT_EQ(back->node, p->node);
}

TEST(PlatformFile, AnOverriddenFigureDoesNotKeepItsOldSource) {
  const Folder folder;
  folder.write("base.json", R"({"stepcast_platform": 1, "device": {"name": "G", "peak_fp32_TFLOPs": 10,
    "memory_bandwidth_GBps": 1000, "memory_GiB": 16, "sources": {"default": {"source": "data_sheet"}}}})");
  const auto p =
      parse_platform(R"({"stepcast_platform": 1, "extends": "./base.json", "device": {"memory_GiB": 32}})",
                     folder.path() / "m.json", {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_EQ(p->device.sources.of("memory_GiB").source, FigureSource::assumed);
  EXPECT_EQ(p->device.sources.of("memory_bandwidth_GBps").source, FigureSource::data_sheet);
}

// Platform files of 0.1.0 may hold kernel times that nothing reads any more.
TEST(PlatformFile, RefusesCorrectionsThatAreNoLongerRead) {
  for (const char* kind : {"perceptron", "table"}) {
    Platform p = full_platform();
    ModelRecord model{.name = "softmax/bf16/forward", .kind = "kernel_time"};
    model.parameters.add("corrections",
                         JsonValue::array().add(JsonValue::object().add("kind", JsonValue{kind})));
    p.set(model);
    const Status status = p.check();
    ASSERT_FALSE(status.ok());
    const std::string text = status.error().message();
    EXPECT_THAT(text, HasSubstr("softmax/bf16/forward"));
    EXPECT_THAT(text, HasSubstr(std::string{"`"} + kind + "`, as 0.1.0 wrote them"));
    EXPECT_THAT(text, HasSubstr("run `stepcast calibrate kernels` again"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("\n")));
  }
}

TEST(PlatformFile, ADeviceComesWithTheModelsThatWereFittedOnIt) {
  const Folder folder;
  const auto device = [](const std::string& name) {
    return R"({"stepcast_platform": 1, "device": {"name": ")" + name + R"(", "peak_fp32_TFLOPs": 10,
      "memory_bandwidth_GBps": 1000, "memory_GiB": 16}, "models": [
      {"name": "gemm", "kind": "k", "device": ")" +
           name + R"("},
      {"name": "only )" +
           name + R"(", "kind": "k", "device": ")" + name + R"("},
      {"name": "any", "kind": "k"}]})";
  };
  folder.write("a.json", device("A"));
  folder.write("b.json", device("B"));
  folder.write("node.json", R"({"stepcast_platform": 1, "extends": "a.json", "node": {"gpus_per_node": 2,
    "intra": {"kind": "pcie", "bandwidth_per_gpu_GBps": 16}}})");
  const auto p =
      parse_platform(R"({"stepcast_platform": 1, "extends": "node.json", "device": {"extends": "b.json"}})",
                     folder.path() / "m.json", {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_EQ(p->device.name, "B");
  EXPECT_EQ(p->node.gpus_per_node, 2U);
  std::vector<std::string> models;
  for (const ModelRecord& m : p->models) models.push_back(m.name + " of " + m.device);
  EXPECT_THAT(models, ElementsAre("any of ", "gemm of B", "only B of B"));
}

TEST(PlatformFile, InheritedRecordsCanBeLeftBehind) {
  const Folder folder;
  folder.write("base.json", platform_json(full_platform()));
  const auto p = parse_platform(R"({"stepcast_platform": 1, "extends": "base.json",
    "inherit_curves": false, "inherit_models": false, "inherit_overheads": false,
    "overheads": [{"type": "T4", "mean_us": 4}]})",
                                folder.path() / "m.json", {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_TRUE(p->curves.empty());
  EXPECT_TRUE(p->models.empty());
  ASSERT_EQ(p->overheads->size(), 1U);
  EXPECT_EQ(p->overheads->front().mean_us, 4);
}

TEST(PlatformFile, ATorusReadsBackAndCanBeCutDown) {
  Platform p = full_platform();
  p.node.gpus_per_node = 9216;
  p.node.intra.kind = LinkKind::torus;
  p.node.intra.axes = {16, 24, 12};
  p.node.intra.devices_per_chip = 2;
  p.node.intra.ring_chips = 4;
  p.node.intra.sources.set("axes", fitted("sheet"));
  const auto back = parse(platform_json(p));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_TRUE(*back == p);
  Platform smaller = p;
  smaller.node.gpus_per_node = 128;
  smaller.node.intra.axes = {4, 4, 4};
  const std::string difference = platform_extension_json(smaller, p, "p");
  EXPECT_THAT(difference, AllOf(HasSubstr("axes"), ::testing::Not(HasSubstr("ring_chips"))));
}

TEST(PlatformFile, CirclesOfExtendsAreNamed) {
  const Folder folder;
  folder.write("a.json", R"({"stepcast_platform": 1, "extends": "b.json"})");
  folder.write("b.json", R"({"stepcast_platform": 1, "extends": "./c.json"})");
  folder.write("c.json", "{\"stepcast_platform\": 1,\n\"device\": {\"extends\": \"a.json\"}}");
  const auto p = load_platform((folder.path() / "a.json").string(), {}, "");
  ASSERT_FALSE(p.ok());
  EXPECT_THAT(p.error().message(), AllOf(HasSubstr("c.json: line 2: device.extends"), HasSubstr("circle"),
                                         HasSubstr("a.json -> b.json -> c.json -> a.json")));
  folder.write("self.json", R"({"stepcast_platform": 1, "extends": "self.json"})");
  EXPECT_THAT(load_platform((folder.path() / "self.json").string(), {}, ""), test::FailsWith("circle"));
}

TEST(PlatformFile, LongChainsAndWideTreesOfExtendsEnd) {
  const Folder folder;
  for (int i = 0; i < 30; ++i) {
    const std::string next = "\"" + std::to_string(i + 1) + ".json\"";
    folder.write(std::to_string(i) + ".json", R"({"stepcast_platform": 1, "extends": )" + next +
                                                  R"(, "device": {"extends": )" + next +
                                                  R"(}, "node": {"extends": )" + next + "}}");
  }
  const auto p = load_platform((folder.path() / "0.json").string(), {}, "");
  ASSERT_FALSE(p.ok());
  EXPECT_THAT(p.error().message(), HasSubstr("too many files"));
  // 12 levels do not exceed the chain, but 3^12 files exceed what one platform may read.
  folder.write("12.json", file_with(""));
  const auto wide = load_platform((folder.path() / "0.json").string(), {}, "");
  ASSERT_FALSE(wide.ok());
  EXPECT_THAT(wide.error().message(), HasSubstr("too many files"));
}

TEST(PlatformFile, NamesAndAliasesAreFound) {
  const Folder folder;
  const fs::path dirs[] = {folder.path()};
  folder.write("dgx-one.json",
               R"({"stepcast_platform": 1, "name": "dgx-one", "aliases": ["cluster", "only one"],
    "device": {"name": "GPU-A", "aliases": ["gpu a 80GB"], "peak_fp32_TFLOPs": 1, "memory_bandwidth_GBps": 1, "memory_GiB": 1}})");
  folder.write("dgx-two.json", R"({"stepcast_platform": 1, "name": "dgx-two", "aliases": ["cluster"],
    "device": {"name": "GPU-B", "peak_fp32_TFLOPs": 1, "memory_bandwidth_GBps": 1, "memory_GiB": 1}})");
  const auto name_of = [&](std::string_view name, std::string_view hint = "") {
    const auto p = load_platform(name, dirs, hint);
    return p.ok() ? p->name : p.error().message();
  };
  EXPECT_EQ(name_of("dgx-one"), "dgx-one");
  EXPECT_EQ(name_of("DGX_One"), "dgx-one");
  EXPECT_EQ(name_of("only one"), "dgx-one");
  EXPECT_EQ(name_of("gpu_b"), "dgx-two");
  EXPECT_EQ(name_of("cluster", "GPU-B"), "dgx-two");
  EXPECT_EQ(name_of("cluster", "gpu a 80gb"), "dgx-one");
  EXPECT_THAT(name_of("cluster"), AllOf(HasSubstr("several"), HasSubstr("dgx-one"), HasSubstr("dgx-two")));
  EXPECT_THAT(name_of("cluster", "GPU-C"), HasSubstr("GPU-C"));
  EXPECT_THAT(name_of("dgxtow"), HasSubstr("did you mean `dgx-two`"));
  EXPECT_THAT(name_of("8xtwo"), HasSubstr("did you mean `dgx-two`"));
  EXPECT_THAT(name_of("nothing.json"), HasSubstr("no such file"));
  EXPECT_THAT(name_of(folder.path().string() + "/"), HasSubstr("no platform"));
  EXPECT_FALSE(load_platform("", dirs).ok());
  const auto device = load_device("GPU a-80GB", dirs);
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_EQ(device->name, "dgx-one");
  EXPECT_FALSE(load_device("cluster", dirs).ok());
  const auto all = list_platforms(dirs);
  EXPECT_EQ(all.platforms.size(), 2U);
  EXPECT_TRUE(all.unreadable.empty());
}

TEST(PlatformFile, ReadsOnlyRegularFiles) {
  const Folder folder;
  fs::create_symlink("/dev/zero", folder.path() / "zero.json");
  const auto extending = [&](const std::string& base) {
    return parse_platform(R"({"stepcast_platform": 1, "extends": ")" + base + R"("})", "m.json", {});
  };
  const auto endless = extending((folder.path() / "zero.json").string());
  ASSERT_FALSE(endless.ok());
  EXPECT_THAT(endless.error().message(), HasSubstr("not a regular file"));
  const auto other = extending("/etc/passwd");
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message(), HasSubstr("expected a path that ends in .json"));
}

TEST(PlatformFile, APlatformThatCannotBeIsAnError) {
  Platform p = full_platform();
  p.device.memory_bandwidth = BytesPerSecond{-1};
  const auto status = p.check();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("device.memory_bandwidth_GBps"));
}

struct BadFile {
  const char* what;
  std::string text;
  std::vector<std::string> message_parts;
};

class BadPlatformFile : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadPlatformFile, IsNamedInOneSentence) {
  const std::string message = message_of(GetParam().text);
  EXPECT_NE(message, "no error");
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_THAT(message, HasSubstr("my.json"));
  for (const std::string& part : GetParam().message_parts) EXPECT_THAT(message, HasSubstr(part));
}

std::string with_curve(const std::string& rest) {
  return file_with("\"collective_curves\": [\n{\"collective\": \"all_reduce\", \"gpus_per_node\": 8" + rest +
                   "}]");
}

INSTANTIATE_TEST_SUITE_P(
    PlatformFile, BadPlatformFile,
    ::testing::Values(
        BadFile{"no object", "[]", {"an object"}},
        BadFile{"no version", "{\"name\": \"x\"}", {"stepcast_platform", "missing"}},
        BadFile{"new version", "{\"stepcast_platform\": 2}", {"line 1", "found 2", "1"}},
        BadFile{"text version", "{\"stepcast_platform\": \"1\"}", {"`1`"}},
        BadFile{"no device", "{\"stepcast_platform\": 1}", {"device.name", "missing"}},
        BadFile{
            "no bandwidth",
            R"({"stepcast_platform": 1, "device": {"name": "G", "peak_fp32_TFLOPs": 1, "memory_GiB": 1}})",
            {"device.memory_bandwidth_GBps", "missing"}},
        BadFile{
            "no peak",
            R"({"stepcast_platform": 1, "device": {"name": "G", "memory_bandwidth_GBps": 1, "memory_GiB": 1}})",
            {"peak"}},
        BadFile{"negative bandwidth",
                "{\"stepcast_platform\": 1,\n\"device\": {\n\"memory_bandwidth_GBps\": -3}}",
                {"line 3", "device.memory_bandwidth_GBps", "-3", "above 0"}},
        BadFile{"zero bandwidth",
                "{\"stepcast_platform\": 1, \"device\": {\"memory_bandwidth_GBps\": 0}}",
                {"found 0", "above 0"}},
        BadFile{"bytes instead of GB",
                "{\"stepcast_platform\": 1, \"device\": {\"memory_bandwidth_GBps\": 2039e9}}",
                {"at most", "unit"}},
        BadFile{"NaN",
                "{\"stepcast_platform\": 1,\n\"device\": {\"memory_bandwidth_GBps\": NaN}}",
                {"line 2", "NaN"}},
        BadFile{"overflow",
                "{\"stepcast_platform\": 1,\n\"device\": {\"memory_bandwidth_GBps\": 1e400}}",
                {"line 2"}},
        BadFile{"text for a number",
                "{\"stepcast_platform\": 1, \"device\": {\"memory_GiB\": \"80\"}}",
                {"device.memory_GiB", "`80`", "a number"}},
        BadFile{"null for what is required",
                "{\"stepcast_platform\": 1, \"device\": {\"memory_GiB\": null}}",
                {"device.memory_GiB", "null"}},
        BadFile{"a torus whose axes do not multiply",
                file_with(R"("node": {"gpus_per_node": 128, "intra": {"kind": "torus",
                  "bandwidth_per_gpu_GBps": 100, "axes": [4, 4, 4]}})"),
                {"node.intra.axes", "4 x 4 x 4 = 64 chips of 1", "128", "so that they agree"}},
        BadFile{"a torus without axes",
                file_with(R"("node": {"gpus_per_node": 64, "intra": {"kind": "torus",
                  "bandwidth_per_gpu_GBps": 100}})"),
                {"node.intra.axes", "missing", "[4, 4, 8]"}},
        BadFile{"part of a chip",
                file_with(R"("node": {"intra": {"kind": "torus", "axes": [4, 2.5]}})"),
                {"node.intra.axes", "[4,2.5]", "1 to 4 axes"}},
        BadFile{"too many axes",
                file_with(R"("node": {"intra": {"kind": "torus", "axes": [2, 2, 2, 2, 2]}})"),
                {"node.intra.axes", "1 to 4 axes"}},
        BadFile{"axes without a torus",
                file_with(R"("node": {"gpus_per_node": 8, "intra": {"kind": "nvswitch",
                  "bandwidth_per_gpu_GBps": 100, "axes": [8]}})"),
                {"node.intra.axes", "not of a torus", "remove axes"}},
        BadFile{"a node of thousands without a torus",
                file_with(R"("node": {"gpus_per_node": 4096, "intra": {"kind": "nvswitch",
                  "bandwidth_per_gpu_GBps": 100}})"),
                {"node.gpus_per_node", "4096", "1 to 1024"}},
        BadFile{"part of an SM",
                "{\"stepcast_platform\": 1, \"device\": {\"sm_count\": 10.5}}",
                {"whole number"}},
        BadFile{"unknown key", file_with("\"nods\": {}"), {"unknown key", "nods", "did you mean `node`?"}},
        BadFile{"unknown figure",
                "{\"stepcast_platform\": 1, \"device\": {\"memory_bandwith_GBps\": 1}}",
                {"did you mean `memory_bandwidth_GBps`?"}},
        BadFile{"key without relatives", file_with("\"qwertzuiopasdfgh\": {}"), {"unknown key", "remove it"}},
        BadFile{
            "source without document",
            R"({"stepcast_platform": 1, "device": {"memory_GiB": 1, "sources": {"memory_GiB": "sheet"}}})",
            {"device.sources.memory_GiB", "`sheet`", "documents"}},
        BadFile{"source of what is no figure",
                file_with(R"("node": {"sources": {"gpus": {"source": "assumed"}}})"),
                {"node.sources.gpus", "no such figure"}},
        BadFile{"guessed source",
                file_with(R"("documents": {"x": {"source": "guess"}})"),
                {"documents.x.source", "`guess`", "data_sheet"}},
        BadFile{"hash of a wrong length",
                file_with(R"("documents": {"x": {"source": "fitted", "row_hashes": "0123456789ab"}})"),
                {"row_hashes", "`89ab`", "hexadecimal"}},
        BadFile{"hash of too many digits",
                file_with(R"("documents": {"x": {"source": "fitted", "row_hashes": "1 123456789"}})"),
                {"row_hashes", "`123456789`", "hexadecimal"}},
        BadFile{"hash without digits",
                file_with(R"("documents": {"x": {"source": "fitted", "row_hashes": "1  2"}})"),
                {"row_hashes", "hexadecimal"}},
        BadFile{"hash of wrong digits",
                file_with(R"("documents": {"x": {"source": "fitted", "row_hashes": "abcdefgh"}})"),
                {"row_hashes", "`abcdefgh`", "hexadecimal"}},
        BadFile{"GPUs that cannot talk",
                file_with(R"("node": {"gpus_per_node": 8})"),
                {"node.intra.kind", "nvswitch"}},
        BadFile{"no GPUs", file_with(R"("node": {"gpus_per_node": 0})"), {"node.gpus_per_node", "found 0"}},
        BadFile{"unknown kind of link",
                file_with(R"("node": {"intra": {"kind": "nvlink"}})"),
                {"`nvlink`", "nvlink_mesh"}},
        BadFile{"switch without bandwidth",
                file_with(R"("node": {"gpus_per_node": 2, "intra": {"kind": "nvswitch"}})"),
                {"node.intra.bandwidth_per_gpu_GBps", "missing"}},
        BadFile{
            "mixed without links",
            file_with(
                R"("node": {"gpus_per_node": 2, "intra": {"kind": "mixed", "bandwidth_per_gpu_GBps": 1}})"),
            {"node.intra.links", "missing"}},
        BadFile{
            "link to nobody",
            file_with(
                R"("node": {"gpus_per_node": 2, "intra": {"kind": "nvlink_mesh", "bandwidth_per_gpu_GBps": 1,
                  "links": [{"gpus": [0, 2], "bandwidth_GBps": 25}]}})"),
            {"node.intra.links[0]", "0 and 2"}},
        BadFile{
            "a link twice",
            file_with(
                R"("node": {"gpus_per_node": 2, "intra": {"kind": "nvlink_mesh", "bandwidth_per_gpu_GBps": 1,
                  "links": [{"gpus": [0, 1], "bandwidth_GBps": 25}, {"gpus": [1, 0], "bandwidth_GBps": 25}]}})"),
            {"node.intra.links[1]", "second link"}},
        BadFile{"link without bandwidth",
                file_with(R"("node": {"intra": {"links": [{"gpus": [0, 1]}]}})"),
                {"links[0].bandwidth_GBps"}},
        BadFile{"link of one",
                file_with(R"("node": {"intra": {"links": [{"gpus": [0], "bandwidth_GBps": 25}]}})"),
                {"links[0].gpus", "two GPU numbers"}},
        BadFile{"network without bandwidth",
                file_with(R"("node": {"network": {"nics_per_node": 1}})"),
                {"node.network.nic_bandwidth_Gbps", "missing"}},
        BadFile{"missing base", file_with("\"extends\": \"nowhere.json\""), {"extends", "no such file"}},
        BadFile{"missing name", file_with("\"extends\": \"dgx-none\""), {"no platform named `dgx-none`"}},
        BadFile{"extends two",
                file_with("\"extends\": [\"a\", \"b\"]"),
                {"extends", "a list", "name of a platform"}},
        BadFile{"curve of nothing", with_curve(""), {"collective_curves[0]", "no curve"}},
        BadFile{"unknown collective",
                file_with(R"("collective_curves": [{"collective": "all_the_things"}])"),
                {"collective_curves[0].collective", "all_the_things"}},
        BadFile{"unknown dtype", with_curve(R"(, "dtype": "fp7")"), {"collective_curves[0].dtype", "fp7"}},
        BadFile{"too many ranks",
                with_curve(R"(, "n_ranks": 9)"),
                {"collective_curves[0].n_ranks", "from 1 to 8"}},
        BadFile{"knots that fall",
                with_curve(R"(, "knots": {"message_bytes": [8, 4], "time_us": [1, 2]})"),
                {"line 5", "knots.message_bytes", "4 behind 8", "increase"}},
        BadFile{"knots that stay",
                with_curve(R"(, "knots": {"message_bytes": [8, 8], "time_us": [1, 2]})"),
                {"8 behind 8"}},
        BadFile{"a knot without time",
                with_curve(R"(, "knots": {"message_bytes": [8], "time_us": [0]})"),
                {"knots.time_us", "found 0"}},
        BadFile{"more sizes than times",
                with_curve(R"(, "knots": {"message_bytes": [8, 9], "time_us": [1]})"),
                {"1 times", "2 in total"}},
        BadFile{"formula without name",
                with_curve(R"(, "improved": {"parameters": {"a": 1}})"),
                {"improved.form"}},
        BadFile{"parameter of text",
                with_curve(R"(, "improved": {"form": "x", "parameters": {"a": "1"}})"),
                {"improved.parameters.a", "a number"}},
        BadFile{
            "quantiles in disorder",
            with_curve(
                R"(, "improved": {"form": "x"}, "residuals": [{"log_p10": 1, "log_p50": 0, "log_p90": 2}])"),
            {"residuals[0]", "log_p10 <= log_p50"}},
        BadFile{"a curve twice",
                file_with(R"("collective_curves": [{"collective": "all_reduce", "improved": {"form": "x"}},
                  {"collective": "allreduce", "improved": {"form": "y"}}])"),
                {"collective_curves[1]", "second `all_reduce/any/1x1/1`"}},
        BadFile{
            "model without kind", file_with(R"("models": [{"name": "x"}])"), {"models[0].kind", "missing"}},
        BadFile{"overhead without type",
                file_with(R"("overheads": [{"mean_us": 1}])"),
                {"overheads[0].type", "T1"}},
        BadFile{"overhead T6", file_with(R"("overheads": [{"type": "T6", "mean_us": 1}])"), {"`T6`"}},
        BadFile{
            "overhead without time", file_with(R"("overheads": [{"type": "T4"}])"), {"overheads[0].mean_us"}},
        BadFile{"negative overhead", file_with(R"("overheads": [{"type": "T4", "mean_us": -1}])"), {"-1"}},
        BadFile{"negative profiler events",
                file_with(R"("overheads": [{"type": "T2", "op": "x", "mean_us": 1, "profiler_events": -2}])"),
                {"overheads[0].profiler_events", "-2"}}),
    [](const ::testing::TestParamInfo<BadFile>& param_info) {
      std::string name = param_info.param.what;
      for (char& c : name) {
        if (c == ' ') c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace stepcast::platform_file_test
