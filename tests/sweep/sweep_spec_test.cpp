#include "stepcast/sweep/sweep_spec.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::sweep_spec_test {
namespace {

using test::FailsWith;
using ::testing::ElementsAre;

std::vector<std::string> points_of(const std::string& text) {
  const Result<SweepSpec> spec = parse_sweep(text, "s.toml");
  if (!spec.ok()) return {spec.error().message()};
  std::vector<std::string> all;
  for (const SweepPoint& point : spec->points) all.push_back(point.json());
  return all;
}

TEST(SweepSpec, MultipliesListsInTheirOrder) {
  EXPECT_THAT(points_of("model = [\"a\", \"b\"]\ngpus = [8, 16]\ngbs = 32\n"),
              ElementsAre(R"({"mode":"predict","gbs":32,"gpus":8,"model":"a"})",
                          R"({"mode":"predict","gbs":32,"gpus":16,"model":"a"})",
                          R"({"mode":"predict","gbs":32,"gpus":8,"model":"b"})",
                          R"({"mode":"predict","gbs":32,"gpus":16,"model":"b"})"));
}

TEST(SweepSpec, KeepsValuesOfTablesTogether) {
  EXPECT_THAT(points_of("model = \"a\"\nlayouts = [{ tp = 8, pp = [1, 2] }, { tp = 4, cp = 2 }]\n"),
              ElementsAre(R"({"mode":"predict","model":"a","pp":1,"tp":8})",
                          R"({"mode":"predict","model":"a","pp":2,"tp":8})",
                          R"({"mode":"predict","cp":2,"model":"a","tp":4})"));
}

TEST(SweepSpec, SpellsKeysOneWay) {
  const auto point = R"({"mode":"predict","gbs":32,"model":"a","tp":8,"use_distributed_optimizer":true})";
  EXPECT_THAT(points_of("model = \"a\"\nglobal-batch-size = 32\ntensor_model_parallel_size = 8\n"
                        "use-distributed-optimizer = true\nsequence-parallel = false\nwhat-if = \"\"\n"),
              ElementsAre(point));
  EXPECT_THAT(points_of(R"({"model": "a", "gbs": 32, "tp": 8, "use_distributed_optimizer": true})"),
              ElementsAre(point));
}

TEST(SweepSpec, TakesListsInListsAsOneValue) {
  EXPECT_THAT(
      points_of("mode = \"plan\"\nmodel = \"a\"\ngpus = 8\ntp = [[4, 8], 2]\nwhat_if = [\"\", "
                "[\"nvlink=2x\", \"network=2x\"]]\n"),
      ElementsAre(R"({"mode":"plan","gpus":8,"model":"a","tp":"4,8"})",
                  R"({"mode":"plan","gpus":8,"model":"a","tp":"4,8","what_if":"nvlink=2x,network=2x"})",
                  R"({"mode":"plan","gpus":8,"model":"a","tp":2})",
                  R"({"mode":"plan","gpus":8,"model":"a","tp":2,"what_if":"nvlink=2x,network=2x"})"));
}

TEST(SweepSpec, AnIdIsOfTheContentAlone) {
  const SweepSpec one = *parse_sweep("model = \"llama-3-8b\"\ngpus = [8, 16]\n", "s.toml");
  const SweepSpec other = *parse_sweep("gpus = [4, 16]\nmodel = [\"x\", \"llama-3-8b\"]\n", "t.toml");
  EXPECT_EQ(one.points[1].id, other.points[3].id);
  EXPECT_NE(one.hash, other.hash);
  // Results of years have these in them: they must never change.
  EXPECT_EQ(one.points[0].id, "b1fa4ae66fe0a4d2");
  // A point is a spec of itself.
  const SweepSpec again = *parse_sweep(one.points[1].json(), "point");
  ASSERT_EQ(again.points.size(), 1U);
  EXPECT_EQ(again.points[0].id, one.points[1].id);
}

TEST(SweepSpec, IdsOfFilesChangeWithTheirContent) {
  const test::TemporaryFolder folder;
  const auto id = [&](const std::string& content) {
    std::ofstream{folder.path() / "mine.json"} << content;
    std::ofstream{folder.path() / "s.toml"} << "model = \"llama-3-8b\"\nplatform = \"mine.json\"\ngpus = 8\n";
    const Result<SweepSpec> spec = read_sweep(folder.path() / "s.toml");
    return spec.ok() ? spec->points[0].id : spec.error().message();
  };
  const std::string first = id("{}"), second = id("{ }");
  EXPECT_NE(first, second);
  EXPECT_EQ(first, id("{}"));
  // Found beside the spec, wherever the program runs.
  EXPECT_EQ(read_sweep(folder.path() / "s.toml")->points[0].file("mine.json"),
            (folder.path() / "mine.json").string());
}

TEST(SweepSpec, CountsRepeatedPointsOnce) {
  const SweepSpec spec = *parse_sweep("model = \"a\"\nlayouts = [{tp = [1, 2]}, {tp = [2, 4]}]\n", "s.toml");
  EXPECT_EQ(spec.points.size(), 3U);
  EXPECT_EQ(spec.n_repeated, 1U);
}

TEST(SweepSpec, SaysWhatIsWrong) {
  const auto parse = [](const char* text) { return parse_sweep(text, "s.toml"); };
  EXPECT_THAT(parse("modle = [\"a\"]\n"),
              FailsWith("s.toml: line 1: modle: unknown key; did you mean model?"));
  EXPECT_THAT(parse("model = \"a\"\nobjective = \"memory\"\n"), FailsWith("it belongs to mode = \"plan\""));
  EXPECT_THAT(parse("model = \"a\"\ngpus = []\n"), FailsWith("s.toml: line 2: gpus: an empty list"));
  EXPECT_THAT(parse("model = \"a\"\ngpus = [64, [\"a\", \"b\"]]\n"),
              FailsWith("s.toml: line 2: gpus: found a list"));
  EXPECT_THAT(parse("model = \"a\"\ntp = 2\nlayouts = [{ tp = 4 }]\n"), FailsWith("tp is set in two places"));
  EXPECT_THAT(parse("mode = \"guess\"\n"), FailsWith("expected \"predict\" or \"plan\""));
  EXPECT_THAT(parse("mode = \"plan\"\n"), FailsWith("no settings"));
  EXPECT_THAT(parse(""), FailsWith("found nothing"));
  EXPECT_THAT(parse("model = {a = 1}\n"), FailsWith("a list of tables"));
  EXPECT_THAT(parse("layouts = [{tp = 1}, 3]\n"), FailsWith("expected a table"));
  EXPECT_THAT(parse("layouts = [{inner = [{tp = 1}]}]\n"), FailsWith("tables are allowed at the top only"));
  EXPECT_THAT(parse("{\"model\": null}"), FailsWith("found null"));
  std::string long_list = "[1";
  for (int i = 2; i <= 2000; ++i) long_list += "," + std::to_string(i);
  long_list += "]";
  EXPECT_THAT(parse(("gpus = " + long_list + "\ngbs = " + long_list + "\n").c_str()),
              FailsWith("too many points"));
}

}  // namespace
}  // namespace stepcast::sweep_spec_test
