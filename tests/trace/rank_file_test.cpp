#include "stepcast/trace/rank_file.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/trace/detail/shared_bytes.h"
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
  const RankFile file = small_file();
  const std::string bytes = bytes_of(file);
  std::size_t refused = 0, tried = 0;
  for (std::size_t at = 16; at < bytes.size(); at += 97) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    const Result<RankFile> read = parse_rank_file(changed, "r.step");
    // Some bits mean nothing: of the frame of gzip, and from where an equal run of bytes is copied.
    ++tried;
    refused += read.ok() ? 0U : 1U;
    if (read.ok()) {
      EXPECT_EQ(rank_file_content(*read), rank_file_content(file)) << at;
    }
  }
  EXPECT_GE(refused, tried - 5);
}

TEST(RankFile, IsRefusedWhereItIsOfAnotherKind) {
  EXPECT_THAT(parse_rank_file("{\"traceEvents\": []}", "k.step"),
              AllOf(FailsWith("k.step"), FailsWith("expected a rank file")));
  EXPECT_FALSE(parse_rank_file("", "nothing.step").ok());
  std::string newer = bytes_of(small_file());
  newer[14] = '3';
  EXPECT_THAT(parse_rank_file(newer, "n.step"), AllOf(FailsWith("stepcast-rank 3"), FailsWith("newer")));
}

TEST(RankFile, SaysOnceWhatAnotherOneSaysToo) {
  test::GeneratorOptions options;
  options.ranks = 2;
  const test::GeneratedJob job = test::generate_job(options);
  const RankFile first{.step = {}, .rank = job.ranks[0].recorded, .execution_trace = {}};
  const RankFile second{.step = {}, .rank = job.ranks[1].recorded, .execution_trace = {}};
  const RankBase base{"there/rank0.step", rank_file_content(first)};
  const Result<std::string> alone = rank_file_bytes(second), like = rank_file_bytes(second, &base);
  ASSERT_TRUE(alone.ok() && like.ok());
  EXPECT_LT(like->size(), 0.7 * static_cast<double>(alone->size()));
  const Result<RankFile> again = parse_rank_file(*like, "rank1.step", &base);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(rank_file_content(*again), rank_file_content(second));

  EXPECT_THAT(parse_rank_file(*like, "rank1.step"),
              AllOf(FailsWith("rank1.step"), FailsWith("no `rank0.step` next to it")));
  const RankBase other{"rank0.step", rank_file_content(second)};
  EXPECT_THAT(parse_rank_file(*like, "rank1.step", &other), FailsWith("another `rank0.step`"));
  // Copies of what is not there: cut, and of another base with the hash of the right one.
  for (std::size_t at = 66; at + 8 < like->size(); at += 61) {
    std::string changed = *like;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    const Result<RankFile> read = parse_rank_file(changed, "r.step", &base);
    if (read.ok()) {
      EXPECT_EQ(rank_file_content(*read), rank_file_content(second)) << at;
    }
  }
}

TEST(SharedBytes, AreTakenFromTheBaseAndPutBack) {
  std::uint64_t state = 7;
  const auto random = [&state] {
    return (state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 33U;
  };
  for (int n = 0; n < 300; ++n) {
    std::string base, bytes;
    for (std::uint64_t i = random() % 200; i > 0; --i) base += static_cast<char>('a' + random() % 3);
    while (bytes.size() < random() % 300) {
      const std::size_t from = base.empty() ? 0 : random() % base.size();
      bytes += base.substr(from, random() % 60) + static_cast<char>(random() % 256);
    }
    const std::string own = detail::bytes_without(base, bytes);
    EXPECT_EQ(detail::bytes_with(base, own, bytes.size()), bytes);
    EXPECT_FALSE(detail::bytes_with(base, own, bytes.size() + 1));
    // Whatever is read, nothing outside of the base is.
    std::string noise = own;
    for (char& c : noise)
      if (random() % 4 == 0) c = static_cast<char>(random() % 256);
    static_cast<void>(detail::bytes_with(base, noise, bytes.size()));
  }
  EXPECT_LT(detail::bytes_without(std::string(1000, 'x') + "yz", std::string(900, 'x') + "yz").size(), 12U);
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
