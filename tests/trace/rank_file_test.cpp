#include "stepcast/trace/rank_file.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/file.h"
#include "stepcast/trace/detail/columns.h"
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
  more.rank.names.intern("unused");
  EXPECT_EQ(bytes_of(more), bytes_of(file));
}

TEST(RankFile, IsRefusedWhereItEndsEarly) {
  const std::string bytes = bytes_of(small_file());
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{9}, std::size_t{20}, bytes.size() / 2, bytes.size() - 1})
    EXPECT_FALSE(parse_rank_file(bytes.substr(0, size), "cut.step").ok()) << size;
  EXPECT_THAT(parse_rank_file(bytes.substr(0, bytes.size() / 2), "cut.step"),
              AllOf(FailsWith("cut.step"), FailsWith("copy or download the file again")));
}

TEST(RankFile, IsRefusedWhereItWasChanged) {
  const std::string bytes = bytes_of(small_file());
  for (std::size_t at = 0; at < bytes.size(); at += 53) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    const Result<RankFile> read = parse_rank_file(changed, "r.step");
    EXPECT_TRUE(!read.ok() || bytes_of(*read) == bytes) << at;  // some bits of gzip mean nothing
  }
}

TEST(RankFile, IsRefusedWhereItIsOfAnotherKind) {
  EXPECT_THAT(parse_rank_file("{\"traceEvents\": []}", "k.step"),
              AllOf(FailsWith("k.step"), FailsWith("expected a rank file")));
  EXPECT_FALSE(parse_rank_file("", "nothing.step").ok());
  for (const std::string version : {"3", "5", "x"}) {
    EXPECT_THAT(parse_rank_file("stepcast-rank " + version + "\n\1\2\3", "old/r.step"),
                AllOf(FailsWith("old/r.step: version: found \"stepcast-rank " + version + "\""),
                      FailsWith("stepcast import TRACE -o old/r.step")));
  }
  EXPECT_THAT(parse_rank_file("stepcast-rank \xff\1", "r.step"), FailsWith(R"("stepcast-rank \xff\x01")"));
}

TEST(RankFile, KeepsTextsOfAnyBytes) {
  RankFile file = small_file();
  file.rank.schema = std::string{"zero \0, \n and \xff", 15};
  file.rank.cpu_ops[0].input_values = file.rank.names.intern("");
  const Result<RankFile> again = parse_rank_file(bytes_of(file), "r.step");
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->rank.schema, file.rank.schema);
  EXPECT_TRUE(again->rank.cpu_ops[0].input_values.valid());
}

// Content that is not compressed is the same file.
TEST(RankFile, IsReadWithoutCompression) {
  const std::string bytes = bytes_of(small_file());
  ByteSource source = ByteSource::from_memory(bytes, "r.step");
  std::string content(std::size_t{1} << 20U, '\0');
  std::size_t size = 0;
  while (const std::size_t n = source.read(content.data() + size, content.size() - size).value()) size += n;
  content.resize(size);
  const Result<RankFile> read = parse_rank_file(content, "r.step");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(bytes_of(*read), bytes);
  EXPECT_THAT(parse_rank_file(content + "x", "r.step"), FailsWith("bytes after the last column"));
}

// 20 MiB of zero bytes in 20 kB: the content of a small file ends earlier.
TEST(RankFile, DoesNotGrowWithoutBounds) {
  const Result<std::string> bomb = gzip_compress("stepcast-rank 4\n" + std::string(20U << 20U, '\0'));
  ASSERT_TRUE(bomb.ok());
  EXPECT_THAT(parse_rank_file(*bomb, "bomb.step"), FailsWith("more than 16777216 bytes of content"));
}

// A count of rows that columns of so few bytes cannot have is refused before memory is taken for them.
TEST(RankFile, IsRefusedWhereItPromisesRowsThatItDoesNotHold) {
  detail::Columns out;
  std::vector<std::int64_t> texts{0}, none{std::numeric_limits<std::int64_t>::min()}, zero{0},
      many{std::int64_t{1} << 40U};
  out.column("texts", detail::Coding::values, texts);
  out.column("file.step", detail::Coding::values, none);
  out.column("rank.schema", detail::Coding::values, zero);
  out.column("rank.rank", detail::Coding::values, none);
  out.column("rank.world_size", detail::Coding::values, none);
  out.column("rank.events", detail::Coding::values, zero);
  out.column("skipped", detail::Coding::values, many);
  EXPECT_THAT(parse_rank_file("stepcast-rank 4\n" + out.bytes(), "r.step"),
              FailsWith("numbers out of range in column `skipped`"));
}

// A thread, a collective or an order that is not there would be read out of bounds behind the reader.
TEST(RankFile, IsRefusedWhereItsPartsDoNotFit) {
  const auto refuses = [](const RankFile& file) { return !parse_rank_file(bytes_of(file), "r.step").ok(); };
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
