// Inputs that are damaged or made to hurt: each gives one sentence that names the place and what to do,
// quickly and within bounded memory.
#include <string>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/trace/readers.h"

namespace stepcast::bad_input_test {
namespace {

using namespace std::string_view_literals;

std::string kineto_error(std::string_view content) {
  const auto rank = parse_kineto(content, "trace.json.gz");
  return rank.ok() ? "no error" : rank.error().message();
}

std::string et_error(std::string_view content) {
  const auto trace = parse_execution_trace(content, "et.json");
  return trace.ok() ? "no error" : trace.error().message();
}

std::string events(int count) {
  std::string text = R"J({"schemaVersion": 1, "traceEvents": [)J";
  for (int i = 0; i < count; ++i) {
    text += std::string(i == 0 ? "" : ", ") +
            R"J({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": )J" + std::to_string(i) +
            R"J(, "dur": 1, "args": {"stream": 7}})J";
  }
  return text + "]}";
}

TEST(BadInput, TruncatedGzip) {
  const auto whole = gzip_compress(events(1000));
  ASSERT_TRUE(whole.ok());
  const std::string half = whole->substr(0, whole->size() / 2);
  EXPECT_EQ(kineto_error(half),
            "trace.json.gz: compressed byte " + std::to_string(half.size()) +
                ": the gzip data ends early (a truncated file); copy or download the file again");
}

TEST(BadInput, HalfAJsonDocument) {
  const std::string whole = events(100);
  const std::string half = whole.substr(0, whole.size() / 2);
  const std::string message = kineto_error(half);
  EXPECT_NE(message.find("byte " + std::to_string(half.size()) + ": the JSON document ends early"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("the file is incomplete: copy it again, or let the profiler finish writing"),
            std::string::npos);
  // Cut anywhere: an error, never a shorter trace.
  for (std::size_t size = 0; size + 1 < whole.size(); size += 7) {
    ASSERT_FALSE(parse_kineto(std::string_view{whole}.substr(0, size), "x").ok()) << size;
  }
}

TEST(BadInput, LfsPointerInPlaceOfTheData) {
  constexpr std::string_view kPointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32\nsize "
      "12345\n";
  EXPECT_EQ(kineto_error(kPointer),
            "trace.json.gz: found a git-LFS pointer instead of the data, expected a trace in JSON; run `git "
            "lfs pull` where the file comes from");
  EXPECT_EQ(et_error(kPointer),
            "et.json: found a git-LFS pointer instead of the data, expected a trace in JSON; run `git lfs "
            "pull` where the file comes from");
}

TEST(BadInput, ChakraProtobuf) {
  EXPECT_EQ(et_error("\x08\x0a\x06"
                     "0.0.4 \x12\x08\x01"sv),
            "et.json: found a Chakra execution trace (protobuf), expected a trace in JSON; `stepcast "
            "inspect` shows its contents");
}

// One time that is none costs its event, which is counted, and not the file.
TEST(BadInput, TimesThatAreNone) {
  for (const std::string_view times :
       {R"("ts": 5, "dur": -0.5)", R"("ts": 5, "dur": NaN)", R"("ts": 5, "dur": "long")",
        R"("ts": 5, "dur": null)", R"("ts": 5, "dur": 1e30)", R"("ts": "soon", "dur": 1)",
        R"("ts": 1e300, "dur": 1)", R"("dur": 1)"}) {
    const auto rank = parse_kineto(
        R"J([{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, )J" + std::string{times} +
            R"J(}, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 3}])J",
        "x");
    ASSERT_TRUE(rank.ok()) << times << ": " << rank.error().message();
    EXPECT_EQ(rank->cpu_ops.size(), 0U) << times;
    EXPECT_EQ(rank->gpu_ops.size(), 1U) << times;
    EXPECT_EQ(rank->skipped.at(std::string{kBadTime}), 1U) << times;
  }
}

TEST(BadInput, DecompressionBomb) {
  // A gigabyte of spaces from a megabyte of file. The reader does not keep them.
  std::string bomb;
  const auto member = gzip_compress(std::string(std::size_t{1} << 26, ' '), 9);
  ASSERT_TRUE(member.ok());
  for (int i = 0; i < 16; ++i) bomb += *member;
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  const std::string message = kineto_error(bomb);
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_NE(message, "no error");
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100'000) << "KiB";
#endif
  // A single text that never ends stops at the limit of one value.
  const auto text = gzip_compress("[{\"name\": \"" + std::string(std::size_t{1} << 27, 'x'), 1);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(kineto_error(*text),
            "trace.json.gz: byte 1: found a value of more than 67108864 bytes, expected at most that many; "
            "the file is damaged or not a trace");
}

TEST(BadInput, ClaimsOfHugeSizes) {
  // Headers may claim anything: nothing is allocated for it.
  const auto rank = parse_kineto(
      R"J({"deviceProperties": [{"id": 99999999999, "name": "x", "totalGlobalMem": 107374182400000000000, "numSms": 1e30}],
      "distributedInfo": {"rank": 100000000000, "world_size": 107374182400}, "traceEvents": [
      {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy", "pid": 0, "tid": 1, "ts": 1, "dur": 1,
       "args": {"bytes": 107374182400, "stream": 99999999999999, "grid": [4294967295, 4294967295]}}]})J",
      "x");
  ASSERT_TRUE(rank.ok()) << rank.error().message();
  EXPECT_FALSE(rank->rank.has_value());
  EXPECT_FALSE(rank->world_size.has_value());
  EXPECT_EQ(rank->devices.at(0).memory_bytes, 0);
  EXPECT_EQ(rank->gpu_ops.at(0).bytes, 107374182400);
  EXPECT_EQ(rank->gpu_ops.at(0).stream, 0);
}

TEST(BadInput, RecursionBomb) {
  for (const std::string& open : {std::string("["), std::string("{\"a\":")}) {
    std::string bomb;
    for (int i = 0; i < 1'000'000; ++i) bomb += open;
    for (const std::string& message :
         {kineto_error("{\"traceEvents\": [" + bomb), et_error("{\"nodes\": [" + bomb), kineto_error(bomb)}) {
      EXPECT_NE(message.find("the JSON document is nested too deeply, found more than 256 levels, expected "
                             "at most that many"),
                std::string::npos)
          << message.substr(0, 200);
    }
  }
}

TEST(BadInput, MessagesAreOneLine) {
  const std::string message = kineto_error("[{\"ph\": \"X\", \"ts\" \x01\x02\n\r\t}]");
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_NE(message.find("\\x01\\x02\\x0a\\x0d\\x09"), std::string::npos) << message;
}

}  // namespace
}  // namespace stepcast::bad_input_test
