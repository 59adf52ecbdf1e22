#include "stepcast/trace/rank_file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/trace/detail/adaptive_coder.h"
#include "stepcast/trace/readers.h"

#include "tests/support/fails_with.h"
#include "tests/support/trace_files.h"

namespace stepcast::rank_file_test {
namespace {

using test::FailsWith;
using ::testing::AllOf;

RankFile small_file() {
  test::GeneratorOptions options;
  options.ranks = 2;
  const test::GeneratedJob job = test::generate_job(options);
  Result<ExecutionTrace> trace = parse_execution_trace(job.ranks[1].execution_trace, "et.json");
  EXPECT_TRUE(trace.ok());
  return {.step = 3, .rank = job.ranks[1].recorded, .execution_trace = std::move(trace).value()};
}

std::string bytes_of(const RankFile& file) {
  const Result<std::string> bytes = rank_file_bytes(file);
  EXPECT_TRUE(bytes.ok());
  return bytes.ok() ? *bytes : std::string{};
}

TEST(RankFile, ReadsBackWhatWasWritten) {
  const RankFile file = small_file();
  const Result<RankFile> again = parse_rank_file(bytes_of(file), "r.step");
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->step, 3);
  EXPECT_EQ(again->rank.file, "r.step");
  EXPECT_EQ(again->rank.rank, file.rank.rank);
  ASSERT_FALSE(file.rank.cpu_ops.empty());
  ASSERT_EQ(again->rank.cpu_ops.size(), file.rank.cpu_ops.size());
  for (std::size_t i = 0; i < file.rank.cpu_ops.size(); ++i) {
    const CpuOp &a = file.rank.cpu_ops[i], &b = again->rank.cpu_ops[i];
    EXPECT_EQ(a.start, b.start);
    EXPECT_EQ(a.duration, b.duration);
    EXPECT_EQ(a.external_id, b.external_id);
    EXPECT_EQ(a.order, b.order);
    EXPECT_EQ(a.thread, b.thread);
    EXPECT_EQ(file.rank.names.text(a.name), again->rank.names.text(b.name));
    EXPECT_EQ(file.rank.names.text(a.input_shapes), again->rank.names.text(b.input_shapes));
  }
  ASSERT_EQ(again->rank.gpu_ops.size(), file.rank.gpu_ops.size());
  for (std::size_t i = 0; i < file.rank.gpu_ops.size(); ++i) {
    EXPECT_EQ(file.rank.gpu_ops[i].correlation, again->rank.gpu_ops[i].correlation);
    EXPECT_EQ(file.rank.gpu_ops[i].blocks_per_sm, again->rank.gpu_ops[i].blocks_per_sm);
    EXPECT_EQ(file.rank.gpu_ops[i].collective, again->rank.gpu_ops[i].collective);
  }
  ASSERT_TRUE(again->execution_trace);
  EXPECT_EQ(again->execution_trace->nodes.size(), file.execution_trace->nodes.size());
  EXPECT_EQ(again->execution_trace->tensors.size(), file.execution_trace->tensors.size());
  // Equal content, equal bytes; names that nothing uses are left out.
  EXPECT_EQ(bytes_of(*again), bytes_of(file));
  RankFile more = file;
  more.rank.names.intern("used by nobody");
  EXPECT_EQ(bytes_of(more), bytes_of(file));
}

TEST(RankFile, IsRefusedWhereItEndsEarly) {
  const std::string bytes = bytes_of(small_file());
  for (const std::size_t size :
       {std::size_t{15}, std::size_t{20}, std::size_t{40}, bytes.size() / 2, bytes.size() - 1})
    EXPECT_FALSE(parse_rank_file(bytes.substr(0, size), "cut.step").ok()) << size;
  EXPECT_THAT(parse_rank_file(bytes.substr(0, bytes.size() / 2), "cut.step"),
              AllOf(FailsWith("cut.step"), FailsWith("copy the file again")));
}

TEST(RankFile, IsRefusedWhereItWasChanged) {
  const std::string bytes = bytes_of(small_file());
  std::size_t refused = 0, tried = 0;
  for (std::size_t at = 16; at < bytes.size(); at += at < 33 ? 1U : 97U) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    const Result<RankFile> read = parse_rank_file(changed, "r.step");
    ++tried;
    refused += read.ok() ? 0U : 1U;
  }
  EXPECT_EQ(refused, tried);
  std::string version = bytes;
  version[15] = '\x8a';
  EXPECT_THAT(parse_rank_file(version, "r.step"), FailsWith("found `stepcast-rank 3?"));
}

TEST(RankFile, IsRefusedWhereItIsOfAnotherKind) {
  EXPECT_THAT(parse_rank_file("{\"traceEvents\": []}", "k.step"),
              AllOf(FailsWith("k.step"), FailsWith("expected a rank file")));
  EXPECT_FALSE(parse_rank_file("", "nothing.step").ok());
  std::string newer = bytes_of(small_file());
  newer[14] = '4';
  EXPECT_THAT(parse_rank_file(newer, "n.step"), AllOf(FailsWith("stepcast-rank 4"), FailsWith("newer")));
  newer[14] = '2';
  EXPECT_THAT(parse_rank_file(newer, "o.step"),
              AllOf(FailsWith("stepcast-rank 2"), FailsWith("import the trace")));
}

TEST(RankFile, SaysOnceWhatAnotherOneSaysToo) {
  test::GeneratorOptions options;
  options.ranks = 2;
  const test::GeneratedJob job = test::generate_job(options);
  const RankFile first{.step = {}, .rank = job.ranks[0].recorded, .execution_trace = {}};
  const RankFile second{.step = {}, .rank = job.ranks[1].recorded, .execution_trace = {}};
  const RankBase base = rank_base_of(first, "there/rank0.step");
  const Result<std::string> alone = rank_file_bytes(second), like = rank_file_bytes(second, &base);
  ASSERT_TRUE(alone.ok() && like.ok());
  EXPECT_LT(like->size(), 0.7 * static_cast<double>(alone->size()));
  const Result<RankFile> again = parse_rank_file(*like, "rank1.step", &base);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(rank_file_content(*again), rank_file_content(second));

  EXPECT_THAT(parse_rank_file(*like, "rank1.step"),
              AllOf(FailsWith("rank1.step"), FailsWith("no `rank0.step` next to it")));
  const RankBase other = rank_base_of(second, "rank0.step");
  EXPECT_THAT(parse_rank_file(*like, "rank1.step", &other), FailsWith("another `rank0.step`"));
}

// Whatever is written is read back, and costs little where it was foreseen.
TEST(AdaptiveCoder, ReadsBackWhatWasWritten) {
  constexpr std::array<std::int64_t, 9> kNumbers{0,
                                                 1,
                                                 -1,
                                                 63,
                                                 -64,
                                                 1'000'000'007,
                                                 std::int64_t{1} << 62U,
                                                 std::numeric_limits<std::int64_t>::max(),
                                                 std::numeric_limits<std::int64_t>::min()};
  const std::array<std::string, 4> texts{"aten::mm", std::string{"zero \0 and \1 one", 16}, "",
                                         "void kernel<float>(float)"};
  const auto walk = [&](detail::AdaptiveCoder& coder, bool check) {
    for (int round = 0; round < 300; ++round) {
      for (const std::int64_t n : kNumbers) {
        const std::int64_t a = coder.number(3, check ? 0 : n), b = coder.symbol(4, check ? 0 : n, 1, 2),
                           c = coder.difference(5, check ? 0 : n, 7, 8);
        EXPECT_EQ(coder.flag(6, 0, !check && n > 0), n > 0);
        EXPECT_EQ(a, n);
        EXPECT_EQ(b, n);
        EXPECT_EQ(c, n);
      }
      for (const std::string& text : texts) {
        EXPECT_EQ(coder.text(0, check ? "" : text), text);
      }
      EXPECT_EQ(coder.name(7, 0, check ? "" : "a name", !check, 1, 2), 1U);
    }
  };
  detail::AdaptiveCoder out, in;
  out.start_writing();
  walk(out, false);
  const std::string bytes = out.finish();
  in.start_reading(bytes);
  walk(in, true);
  EXPECT_FALSE(in.failed());
  // What was learned stays.
  out.start_writing();
  walk(out, false);
  EXPECT_LT(out.finish().size(), bytes.size());
  out.start_writing();
  for (int i = 0; i < 10'000; ++i) out.symbol(9, 5, 1, 1);
  EXPECT_LT(out.finish().size(), 300U);
}

// A thread, a collective or an order that is not there would be read out of bounds behind the reader.
TEST(RankFile, IsRefusedWhereItsPartsDoNotFit) {
  const auto refuses = [](const RankFile& file) {
    return !parse_rank_file_content(rank_file_content(file), "r.step").ok();
  };
  RankFile file = small_file();
  EXPECT_FALSE(refuses(file));
  file.rank.cpu_ops[0].thread = ThreadId{file.rank.threads.size()};
  EXPECT_TRUE(refuses(file));
  file = small_file();
  file.rank.gpu_ops[0].collective = static_cast<std::int32_t>(file.rank.collective_infos.size());
  EXPECT_TRUE(refuses(file));
  file = small_file();
  std::swap(file.rank.cpu_ops.front().start, file.rank.cpu_ops.back().start);
  EXPECT_TRUE(refuses(file));
  file = small_file();
  file.execution_trace->nodes[0].end_output = 1U << 30U;
  EXPECT_TRUE(refuses(file));
}

}  // namespace
}  // namespace stepcast::rank_file_test
