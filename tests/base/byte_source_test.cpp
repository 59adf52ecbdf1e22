#include "stepcast/base/byte_source.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"

#include "tests/support/temporary_folder.h"

namespace stepcast::byte_source_test {
namespace {

// Text that compresses well but not to nothing.
std::string sample_text(std::size_t size) {
  std::string text;
  std::uint32_t state = 1;
  while (text.size() < size) {
    state = state * 1664525U + 1013904223U;
    text += "{\"name\": \"op" + std::to_string(state >> 24) + "\", \"ts\": " + std::to_string(state) + "},\n";
  }
  text.resize(size);
  return text;
}

std::string gzip(std::string_view text) {
  auto compressed = gzip_compress(text);
  EXPECT_TRUE(compressed.ok());
  return compressed.ok() ? *compressed : std::string{};
}

Result<std::string> read_all(std::string_view content, std::size_t step, InflateEngine engine,
                             std::uint64_t max_bytes = UINT64_MAX) {
  ByteSource::Options options;
  options.engine = engine;
  options.max_bytes = max_bytes;
  ByteSource source = ByteSource::from_memory(content, "memory", options);
  std::string all;
  std::string block(step, '\0');
  for (;;) {
    auto n = source.read(block.data(), block.size());
    if (!n) return std::move(n).error();
    if (*n == 0) return all;
    all.append(block.data(), *n);
  }
}

class ByteSourceTest : public ::testing::TestWithParam<InflateEngine> {};

INSTANTIATE_TEST_SUITE_P(Engines, ByteSourceTest,
                         ::testing::Values(InflateEngine::automatic, InflateEngine::zlib),
                         [](const auto& tested) {
                           return tested.param == InflateEngine::zlib ? "zlib" : "automatic";
                         });

TEST_P(ByteSourceTest, GivesPlainContentAsItIs) {
  for (const std::string_view text : {"", "x", "\x1f", "\x1fz", "plain text"}) {
    const auto all = read_all(text, 3, GetParam());
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(*all, text);
  }
}

TEST_P(ByteSourceTest, InflatesGzipInStepsOfAnySize) {
  const std::string text = sample_text(300'000);
  const std::string compressed = gzip(text);
  ASSERT_LT(compressed.size(), text.size() / 2);
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{1} << 20}) {
    const auto all = read_all(compressed, step, GetParam());
    ASSERT_TRUE(all.ok()) << all.error().message();
    EXPECT_TRUE(*all == text) << step;
  }
}

TEST_P(ByteSourceTest, JoinsGzipMembersAndIgnoresZeroPadding) {
  const std::string content = gzip("first, ") + gzip("") + gzip("second") + std::string(1000, '\0');
  const auto all = read_all(content, 5, GetParam());
  ASSERT_TRUE(all.ok()) << all.error().message();
  EXPECT_EQ(*all, "first, second");
}

TEST_P(ByteSourceTest, SaysWhereTruncatedGzipEnds) {
  const std::string compressed = gzip(sample_text(100'000));
  for (const std::size_t size :
       {std::size_t{2}, std::size_t{9}, compressed.size() / 2, compressed.size() - 1}) {
    const auto all = read_all(std::string_view{compressed}.substr(0, size), 4096, GetParam());
    ASSERT_FALSE(all.ok());
    EXPECT_EQ(all.error().message(), "memory: compressed byte " + std::to_string(size) +
                                         ": the gzip data ends early (a truncated file); "
                                         "copy or download the file again");
  }
}

TEST_P(ByteSourceTest, RejectsDamagedGzip) {
  std::string damaged = gzip(sample_text(100'000));
  for (std::size_t i = damaged.size() / 2; i < damaged.size() / 2 + 40; ++i) damaged[i] = '\xff';
  const auto all = read_all(damaged, 4096, GetParam());
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.error().message().find("the gzip data is corrupt: "), std::string::npos)
      << all.error().message();

  std::string wrong_checksum = gzip("text");
  wrong_checksum[wrong_checksum.size() - 8] ^= 1;
  EXPECT_FALSE(read_all(wrong_checksum, 4096, GetParam()).ok());

  const auto trailing = read_all(gzip("text") + "more", 4096, GetParam());
  ASSERT_FALSE(trailing.ok());
  EXPECT_NE(trailing.error().message().find("followed by bytes that are not gzip data"), std::string::npos);
}

TEST_P(ByteSourceTest, StopsDecompressionBombs) {
  const std::string bomb = gzip(std::string(std::size_t{1} << 23, ' '));
  ASSERT_LT(bomb.size(), 20'000U);
  const auto all = read_all(bomb, 1 << 16, GetParam(), 1'000'000);
  ASSERT_FALSE(all.ok());
  EXPECT_NE(
      all.error().message().find("found more than 1000000 bytes of content, expected at most that many"),
      std::string::npos)
      << all.error().message();
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = std::filesystem::temp_directory_path() / ("stepcast_base_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

TEST(ByteSourceFile, ReadsFilesAndReportsProgress) {
  const TemporaryFolder folder;
  const std::string text = sample_text(5'000'000);
  ASSERT_TRUE(write_file(folder.file("plain.json"), text).ok());
  ASSERT_TRUE(write_file(folder.file("packed.json"), gzip(text)).ok());  // told by content, not by name
  for (const char* name : {"plain.json", "packed.json"}) {
    const auto size = std::filesystem::file_size(folder.file(name));
    std::vector<std::uint64_t> done;
    ByteSource::Options options;
    options.progress = [&](std::uint64_t bytes, std::uint64_t total) {
      done.push_back(bytes);
      EXPECT_EQ(total, size);
    };
    auto source = ByteSource::open(folder.file(name), options);
    ASSERT_TRUE(source.ok());
    std::string all;
    std::string block(1 << 16, '\0');
    for (;;) {
      auto n = source->read(block.data(), block.size());
      ASSERT_TRUE(n.ok());
      if (*n == 0) break;
      all.append(block.data(), *n);
    }
    EXPECT_TRUE(all == text);
    EXPECT_EQ(source->compressed(), std::string_view{name} == "packed.json");
    ASSERT_FALSE(done.empty());
    EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
    EXPECT_EQ(done.back(), size);
  }
}

// Wherever a member ends in relation to the blocks in which a file is read.
TEST(ByteSourceFile, JoinsManyMembers) {
  const TemporaryFolder folder;
  std::string content;
  std::string expected;
  std::uint32_t state = 3;
  while (content.size() < 2'000'000) {
    state = state * 1664525U + 1013904223U;
    const std::string part = sample_text((state >> 16) % 60);
    content += gzip(part);
    expected += part;
  }
  ASSERT_TRUE(write_file(folder.file("many.gz"), content).ok());
  for (const InflateEngine engine : {InflateEngine::automatic, InflateEngine::zlib}) {
    ByteSource::Options options;
    options.engine = engine;
    auto source = ByteSource::open(folder.file("many.gz"), options);
    ASSERT_TRUE(source.ok());
    std::string all;
    std::string block(10'000, '\0');
    for (;;) {
      auto n = source->read(block.data(), block.size());
      ASSERT_TRUE(n.ok()) << n.error().message();
      if (*n == 0) break;
      all.append(block.data(), *n);
    }
    EXPECT_TRUE(all == expected);
  }
}

TEST(ByteSourceFile, NamesWhatCannotBeOpened) {
  const TemporaryFolder folder;
  const auto missing = ByteSource::open(folder.file("none"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message(),
            folder.file("none").string() + ": cannot open: No such file or directory");
  const auto directory = ByteSource::open(folder.file("."));
  ASSERT_FALSE(directory.ok());
  EXPECT_NE(directory.error().message().find("found a directory, expected a file"), std::string::npos);
}

TEST(File, ReadsUpToItsLimit) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("big"), std::string(1000, 'x')).ok());
  EXPECT_TRUE(read_file(folder.file("big"), 1000).ok());
  EXPECT_FALSE(read_file(folder.file("big"), 999).ok());
}

TEST(File, CompressesReproducibly) {
  const std::string text = sample_text(100'000);
  EXPECT_EQ(gzip(text), gzip(text));
  const auto back = read_all(gzip(text), 1 << 16, InflateEngine::automatic);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(*back == text);
}

TEST(ByteSource, PeeksWithoutTakingAndLeavesErrorsToReading) {
  ByteSource plain = ByteSource::from_memory("abcdef", "memory");
  EXPECT_EQ(*plain.peek(4), "abcd");
  EXPECT_EQ(*plain.peek(2), "ab");
  EXPECT_EQ(*plain.peek(100), "abcdef");
  char block[100];
  EXPECT_EQ(*plain.read(block, sizeof block), 6U);
  EXPECT_EQ(*plain.peek(1), "");
  const std::string whole = gzip(sample_text(100'000));
  ByteSource cut = ByteSource::from_memory(std::string_view{whole}.substr(0, whole.size() / 2), "memory");
  ASSERT_GT(cut.peek(10)->size(), 0U);
  std::string all(200'000, '\0');
  EXPECT_TRUE(cut.peek(all.size()).ok());
  Result<std::size_t> got = cut.read(all.data(), all.size());
  ASSERT_TRUE(got.ok());
  EXPECT_GT(*got, 1000U);
  EXPECT_FALSE(cut.read(all.data(), all.size()).ok());
  ByteSource nothing = ByteSource::from_memory(std::string_view{whole}.substr(0, 5), "memory");
  EXPECT_FALSE(nothing.peek(1).ok());
}

TEST(ByteSource, SkipsInPlainFilesAndInPacked) {
  const test::TemporaryFolder folder;
  const std::string text = sample_text(1'000'000);
  for (const std::string& content : {text, gzip(text)}) {
    ASSERT_TRUE(write_file(folder.path() / "a", content).ok());
    Result<ByteSource> source = ByteSource::open(folder.path() / "a");
    ASSERT_TRUE(source.ok());
    char block[10];
    ASSERT_EQ(*source->read(block, sizeof block), sizeof block);
    EXPECT_EQ(*source->skip(700'000), 700'000U);
    ASSERT_EQ(*source->read(block, sizeof block), sizeof block);
    EXPECT_EQ((std::string_view{block, sizeof block}), text.substr(700'010, 10));
    EXPECT_EQ(*source->skip(10'000'000), 1'000'000U - 700'020U);
    EXPECT_EQ(*source->read(block, sizeof block), 0U);
  }
}

}  // namespace
}  // namespace stepcast::byte_source_test
