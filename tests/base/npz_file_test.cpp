#include "stepcast/base/npz_file.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/npz_archive.h"

namespace stepcast::npz_file_test {
namespace {

using test::npy;
using test::zip_archive;
using test::ZipMember;
using Values = std::vector<std::int64_t>;

Result<Values> read_all(const std::string& archive, const std::string& array) {
  STEPCAST_ASSIGN(NpzFile file, NpzFile::from_memory(archive, "a.npz"));
  STEPCAST_ASSIGN(NpzArray found, file.array(array));
  Values values(found.count());
  STEPCAST_TRY(found.read(values));
  return values;
}

std::string refusal(const ZipMember& member) {
  const Result<Values> values = read_all(zip_archive({member}), "x");
  return values.ok() ? "read" : values.error().message();
}

bool contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  ADD_FAILURE() << text << "\nlacks: " << part;
  return false;
}

TEST(NpzFile, ReadsStoredAndDeflatedArraysOfAllWidths) {
  const Values values{0, 1, -1, 127, -128, 5, 6, 7};
  for (const bool deflated : {false, true}) {
    for (const std::string type : {"<i8", "<i4", "<i2", "|i1"}) {
      const std::string archive =
          zip_archive({{.name = "other.npy", .content = npy({1}, "()")},
                       {.name = "x.npy", .content = npy(values, "(2, 4)", type), .deflated = deflated}});
      const Result<Values> read = read_all(archive, "x");
      ASSERT_TRUE(read.ok()) << read.error().message();
      EXPECT_EQ(*read, values) << type;
    }
  }
  EXPECT_EQ(*read_all(zip_archive({{.name = "x.npy", .content = npy({200, 255}, "(2,)", "|u1")}}), "x"),
            (Values{200, 255}));
}

TEST(NpzFile, ReadsInPiecesBeyondOneBlock) {
  Values values;
  for (std::int64_t i = 0; i < 100'000; ++i) values.push_back(i * i % 1'000'003);
  for (const bool deflated : {false, true}) {
    const std::string archive =
        zip_archive({{.name = "x.npy", .content = npy(values, "(100000,)"), .deflated = deflated}});
    const Result<NpzFile> file = NpzFile::from_memory(archive, "a.npz");
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file->arrays(), std::vector<std::string>{"x"});
    Result<NpzArray> array = file->array("x");
    ASSERT_TRUE(array.ok());
    EXPECT_EQ(array->shape, Values{100'000});
    Values all, part;
    for (const std::size_t n : {1U, 70'000U, 29'999U}) {
      part.resize(n);
      ASSERT_TRUE(array->read(part).ok());
      all.insert(all.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, values);
    part.resize(1);
    EXPECT_FALSE(array->read(part).ok());
  }
}

TEST(NpzFile, RefusesAbsurdClaims) {
  const std::string good = npy({1, 2, 3}, "(3,)");
  contains(refusal({.name = "x.npy", .content = npy({1, 2, 3}, "(4,)")}),
           "24 bytes for 4 elements of 8 bytes");
  contains(refusal({.name = "x.npy", .content = npy({1}, "(99999999999, 99999999999)")}),
           "at most 68719476736 elements");
  contains(refusal({.name = "x.npy", .content = npy({1}, "(-1,)")}), "the extent -1");
  contains(refusal({.name = "x.npy", .content = good, .deflated = true, .claimed_size = 4'000'000'000}),
           "a size that these can hold");
  contains(refusal({.name = "x.npy", .content = good, .claimed_size = 200}), "a size that these can hold");
  contains(refusal({.name = "x.npy", .content = good, .flags = 1}), "encryption");
  contains(refusal({.name = "x.npy", .content = good, .wrong_crc = true}), "a wrong checksum");
  contains(refusal({.name = "x.npy", .content = npy({1}, "(1,)", "<f8")}), "elements of type `<f8`");
  contains(refusal({.name = "x.npy", .content = npy({1}, "(1,)", ">i8")}), "big-endian");
  contains(refusal({.name = "x.npy", .content = npy({1}, "(1, 1)", "<i8", "True")}), "columns first");
  contains(refusal({.name = "x.npy", .content = "no header at all, but long enough"}), "no .npy data");
  contains(refusal({.name = "y.npy", .content = good}), "no array x");
}

TEST(NpzFile, RefusesEveryArchiveThatWasCutOff) {
  const std::string archive =
      zip_archive({{.name = "x.npy", .content = npy({1, 2, 3}, "(3,)"), .deflated = true}});
  for (std::size_t size = 0; size < archive.size(); ++size) {
    EXPECT_FALSE(NpzFile::from_memory(archive.substr(0, size), "a.npz").ok()) << size;
    EXPECT_FALSE(read_all(archive.substr(archive.size() - size), "x").ok()) << size;
  }
}

TEST(NpzFile, ReadsNothingWrongFromDamagedArchives) {
  const std::string archive =
      zip_archive({{.name = "x.npy", .content = npy({1, 2, 3}, "(3,)"), .deflated = true}});
  for (std::size_t at = 0; at < archive.size(); ++at) {
    std::string damaged = archive;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    const Result<Values> values = read_all(damaged, "x");
    // Where it is read what was changed did not matter, a date say.
    if (values.ok()) {
      EXPECT_EQ(*values, (Values{1, 2, 3})) << at;
    }
  }
}

}  // namespace
}  // namespace stepcast::npz_file_test
