// XLA profiles as a recorded job: files in folders, ranks, steps and their programs.
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/sources/recorded_source.h"

#include "tests/support/fails_with.h"
#include "tests/support/trace_files.h"
#include "tests/support/xplane_text.h"

namespace stepcast::xla_source_test {
namespace {

using fixtures::TraceFolder;
using test::FailsWith;
using test::PlaneText;
using test::two_steps;
using test::xplane_file;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kUs = 1'000'000;  // picoseconds

// A GPU with two steps of 65 and 60 us: from the gemm to the end of the all-reduce, 10 to 75 and 110 to 170.
PlaneText gpu(std::uint64_t device) {
  PlaneText plane = two_steps(device);
  plane.line("Steps", {plane.event("1", 10 * kUs, 65 * kUs), plane.event("2", 110 * kUs, 60 * kUs)});
  return plane;
}

Result<std::unique_ptr<RecordedSource>> open(const std::filesystem::path& place,
                                             const TraceSetOptions& options = {}) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces({&place, 1}, {.ranks = options.ranks}));
  EXPECT_EQ(listing.kind(), SourceKindId::xla);
  return source_kind(listing.kind()).open(listing, options);
}

TEST(XlaSource, ReplaysTheDevicesOfAllHosts) {
  const TraceFolder folder;
  folder.write("a1.xplane.pb", xplane_file({gpu(0), gpu(1)}));
  folder.write("b2.xplane.pb", xplane_file({gpu(0)}));
  // The same recording for a viewer.
  folder.write("a1.trace.json",
               R"J({"traceEvents": [{"ph": "X", "name": "gemm", "args": {"hlo_op": "dot.1"}}]})J");
  const auto source = open(folder.path());
  ASSERT_TRUE(source.ok()) << source.error().message();
  EXPECT_THAT((*source)->steps(), ElementsAre(1, 2));
  ASSERT_EQ((*source)->traces().ranks.size(), 3U);
  const auto program = (*source)->program({.step = 1});
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_EQ(program->facts.size(), 3U);
  EXPECT_EQ(program->facts.front().step_number, 1);
  EXPECT_THAT(program->notes, Contains("steps are the line \"Steps\" of the device"));
  EXPECT_THAT(program->notes, Contains(HasSubstr("has its launch in the file")));
}

TEST(XlaSource, NumbersRanksByFileAndDevice) {
  const TraceFolder folder;
  folder.write("a1.xplane.pb", xplane_file({gpu(0), gpu(1)}));
  folder.write("b2.xplane.pb", xplane_file({gpu(0)}));
  const auto source = open(folder.path(), {.ranks = {2}});
  ASSERT_TRUE(source.ok()) << source.error().message();
  ASSERT_EQ((*source)->traces().ranks.size(), 1U);
  EXPECT_THAT((*source)->traces().ranks[0].file, HasSubstr("b2"));
  EXPECT_EQ((*source)->traces().ranks[0].rank, 2);
  EXPECT_THAT(open(folder.path(), {.ranks = {3}}), FailsWith("rank 3 does not exist: found ranks 0-2"));
}

TEST(XlaSource, FindsTheFolderThatJaxWrites) {
  const TraceFolder folder;
  folder.write("plugins/profile/2026_12_01_10_49_27/vm.xplane.pb", xplane_file({gpu(0)}));
  EXPECT_TRUE(open(folder.path()).ok());
  folder.write("plugins/profile/2026_12_02_10_49_27/vm.xplane.pb", xplane_file({gpu(0)}));
  EXPECT_THAT(list_traces({&folder.path(), 1}), FailsWith("2 recordings of the training"));
}

TEST(XlaSource, RefusesRequestsThatNeedShapes) {
  const TraceAsk ask = TraceAsk::batch;
  EXPECT_THAT(check_asks(source_kind(SourceKindId::xla), {}, {&ask, 1}),
              FailsWith("XLA profiles have no shapes and no sizes of transfers, but --batch needs them"));
}

}  // namespace
}  // namespace stepcast::xla_source_test
