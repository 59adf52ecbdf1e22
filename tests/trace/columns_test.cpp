#include "stepcast/trace/detail/columns.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::columns_test {
namespace {

using detail::Coding;
using detail::Columns;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Values = std::vector<std::int64_t>;

std::string written(std::string_view name, Coding coding, Values values) {
  Columns out;
  out.column(name, coding, values);
  return out.bytes();
}

TEST(Columns, ReadBackWhatWasWritten) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                         kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<Values> lists{{},
                                  {0},
                                  {-1, -1, 7, -1},
                                  {kLeast, kMost, 0, kLeast},
                                  {1'700'000'000'000'000'000, 1'700'000'000'000'002'000},
                                  {256, 0, 255}};
  for (const Coding coding : {Coding::values, Coding::changes}) {
    Columns out;
    for (Values list : lists) out.column("a column", coding, list);
    Columns in{out.bytes()};
    for (const Values& list : lists) {
      Values read;
      in.column("a column", coding, read);
      EXPECT_EQ(read, list);
    }
    EXPECT_EQ(in.problem(), "");
    EXPECT_EQ(in.bytes_left(), 0U);
  }
}

// The layout that the header describes: microseconds in ns take a byte each behind the head.
TEST(Columns, AreDifferencesInTheirUnitByteByByte) {
  // The first value is 14,000 = 0x6d << 7 | 0x30, the unit 1,000 = 7 << 7 | 0x68.
  const std::string head{"\5start\1\3\xb0\x6d\0\xe8\7\1", 14};
  const std::string microseconds = written("start", Coding::changes, {14'000, 15'000, 17'000});
  EXPECT_EQ(microseconds, head + std::string("\0\1\2", 3));
  const std::string two_bytes = written("n", Coding::values, {1, 514, 3});
  EXPECT_EQ(two_bytes, std::string("\1n\0\3\0\1\1\2\0\1\2\0\2\0", 14));
}

TEST(Columns, AreSkippedWhereTheirNameSaysSo) {
  const std::string bytes = written("?new", Coding::values, {1, 2}) + written("old", Coding::values, {3});
  Columns in{bytes};
  Values read;
  in.column("old", Coding::values, read);
  EXPECT_EQ(read, Values{3});
  EXPECT_EQ(in.problem(), "");
}

TEST(Columns, AreSkippedBehindTheLastOneToo) {
  const std::string bytes = written("old", Coding::values, {3}) + written("?new", Coding::values, {1, 2});
  for (const std::string& more : {std::string{}, written("later", Coding::values, {1})}) {
    const std::string all = bytes + more;
    Columns in{all};
    Values read;
    in.column("old", Coding::values, read);
    in.skip_optional();
    EXPECT_EQ(in.bytes_left(), more.size());
  }
}

TEST(Columns, AreRefusedWhereTheyAreOthers) {
  const std::string bytes = written("later", Coding::values, {1}) + written("old", Coding::values, {3});
  Columns in{bytes};
  Values read;
  in.column("old", Coding::values, read);
  EXPECT_THAT(in.problem(), HasSubstr("\"later\" where `old` is expected"));
  in.column("old", Coding::values, read);
  EXPECT_THAT(read, IsEmpty());
}

// What a count promises is checked against the bytes that are there before memory is taken.
TEST(Columns, AreRefusedWhereTheirBytesDoNotHoldThem) {
  const std::string bytes = written("x", Coding::values, {1, 2, 300});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Columns in{std::string_view{bytes}.substr(0, size)};
    Values read;
    in.column("x", Coding::values, read);
    EXPECT_NE(in.problem(), "") << size;
    EXPECT_THAT(read, IsEmpty());
  }
  const std::string huge{"\1x\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\1\1.", 16};
  const std::string wide{"\1x\0\1\0\0\1\x9.........", 17}, coding{"\1x\2\1\0\0\1\1.", 9};
  const std::string no_width{"\1x\0\1\0\0\1\0", 8};
  for (const std::string& damaged : {huge, wide, coding, no_width}) {
    Columns in{damaged};
    Values read;
    in.column("x", Coding::values, read);
    EXPECT_THAT(in.problem(), HasSubstr("damaged header of column \"x\""));
  }
}

}  // namespace
}  // namespace stepcast::columns_test
