#include "stepcast/rollout/lengths.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::lengths_test {
namespace {

using test::FailsWith;

TEST(Lengths, OfALognormalFarBelowItsMaximum) {
  const Result<Lengths> lengths = Lengths::lognormal(1000, 1e7, 0.6);
  ASSERT_TRUE(lengths.ok()) << lengths.error().message();
  // The median of a lognormal is exp(mu), and its mean exp(mu + sigma^2 / 2).
  const double median = 1000 * std::exp(-0.18);
  EXPECT_NEAR(lengths->survival(median), 0.5, 1e-6);
  EXPECT_NEAR(lengths->survival(median * std::exp(0.6)), 0.158655, 1e-5);  // one sigma above
}

TEST(Lengths, KeepTheirMeanWhereTheMaximumCutsThem) {
  for (const double mean : {300.0, 3251.0, 4000.0}) {
    const Result<Lengths> lengths = Lengths::lognormal(mean, 4096, 0.6);
    ASSERT_TRUE(lengths.ok()) << lengths.error().message();
    double sum = 0;  // the integral of the survival function is the mean
    for (int t = 0; t < 4096; ++t) sum += lengths->survival(t + 0.5);
    EXPECT_NEAR(sum, mean, mean * 1e-3);
    EXPECT_EQ(lengths->survival(4096), 0);
  }
}

TEST(Lengths, OfAFile) {
  const Result<Lengths> lengths = Lengths::parse_csv("tokens\n100\n400\n200\n300\n", "x.csv");
  ASSERT_TRUE(lengths.ok()) << lengths.error().message();
  EXPECT_EQ(lengths->mean(), 250);
  EXPECT_EQ(lengths->max(), 400);
  EXPECT_EQ(lengths->survival(200), 0.5);
  EXPECT_THAT(Lengths::parse_csv("tokens\n", "x.csv"), FailsWith("x.csv: the rows: found none"));
  EXPECT_THAT(Lengths::parse_csv("tokens\n0\n", "x.csv"), FailsWith("x.csv"));
}

TEST(Lengths, OfWords) {
  const Result<Lengths> lengths = Lengths::read("mean=2k,max=8192");
  ASSERT_TRUE(lengths.ok()) << lengths.error().message();
  EXPECT_EQ(lengths->mean(), 2048);
  EXPECT_THAT(Lengths::read("mean=5000,max=4096"), FailsWith("the mean is above the maximum"));
  EXPECT_THAT(Lengths::read("mean=5000,max=4096"), FailsWith("nearest that works: max=5000"));
  EXPECT_THAT(Lengths::read("mean=5000,most=4096"), FailsWith("found `most=4096`"));
  EXPECT_THAT(Lengths::read("mean=x,max=4096"), FailsWith("found `mean=x`"));
  EXPECT_THAT(Lengths::read("mean=1000"), FailsWith("expected mean=TOKENS,max=TOKENS"));
  EXPECT_THAT(Lengths::read(""), FailsWith("found nothing"));
}

}  // namespace
}  // namespace stepcast::lengths_test
