#include "stepcast/cost/families/measured_values.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/json_value.h"

namespace stepcast::measured_values_test {
namespace {

using ::testing::HasSubstr;

const std::span<const KernelFeature> kNames = kernel_features_of(KernelFeatureSet::matrix);

std::size_t index_of(std::string_view name) {
  for (std::size_t f = 0; f < kNames.size(); ++f) {
    if (kNames[f].name == name) return f;
  }
  ADD_FAILURE() << name;
  return 0;
}
const std::size_t kLayout = index_of("layout"), kWork = index_of("log_multiplications");
constexpr auto kTn = static_cast<float>(GemmLayout::tn);
constexpr auto kNn = static_cast<float>(GemmLayout::nn);
constexpr auto kNt = static_cast<float>(GemmLayout::nt);

// Rows of products, of which nothing counts here but layout and work.
struct Rows {
  std::vector<float> x, weight;
  // `n` rows from 10^from to 10^to multiplications.
  void add(float layout, int n, double from, double to) {
    for (int i = 0; i < n; ++i) {
      std::vector<float> row(kNames.size(), 0.0F);
      row[kLayout] = layout;
      row[kWork] = static_cast<float>((from + (to - from) * i / (n - 1)) * std::log(10.0));
      x.insert(x.end(), row.begin(), row.end());
      weight.push_back(1);
    }
  }
  [[nodiscard]] MeasuredValues values() const {
    return MeasuredValues::of_rows(KernelFeatureSet::matrix, x, weight);
  }
};

// The layout whose times an operation of 10^log10_work multiplications gets.
float answered_with(const MeasuredValues& values, float layout, double log10_work) {
  std::vector<float> row(kNames.size(), 0.0F);
  row[kLayout] = layout;
  row[kWork] = static_cast<float>(log10_work * std::log(10.0));
  const bool replaced = values.replace(row);
  EXPECT_EQ(replaced, row[kLayout] != layout);
  return row[kLayout];
}

TEST(MeasuredValues, FewRowsOfAValueDoNotAnswer) {
  Rows rows;
  rows.add(kTn, 3000, 4, 12);
  rows.add(kNn, 19, 4, 8);
  const MeasuredValues values = rows.values();
  EXPECT_EQ(answered_with(values, kTn, 10), kTn);
  EXPECT_EQ(answered_with(values, kNn, 6), kTn);  // also where its rows lie
  EXPECT_EQ(answered_with(values, kNn, 11), kTn);
  EXPECT_EQ(answered_with(values, kNt, 11), kTn);  // none at all
}

TEST(MeasuredValues, AValueAnswersForTheWorkItWasMeasuredOn) {
  Rows rows;
  rows.add(kTn, 3000, 4, 12);
  rows.add(kNn, 61, 7, 9.5);
  rows.add(kNt, 61, 7, 8.5);  // less than two decades
  const MeasuredValues values = rows.values();
  EXPECT_EQ(answered_with(values, kNn, 8), kNn);
  EXPECT_EQ(answered_with(values, kNn, 6.9), kTn);
  EXPECT_EQ(answered_with(values, kNn, 9.6), kTn);
  EXPECT_EQ(answered_with(values, kNt, 8), kTn);
}

// What neighbours say reaches no farther than they are: few rows of a value answer, and rows of none do not.
TEST(MeasuredValues, AnswerForEachWhereNeighboursCorrect) {
  Rows rows;
  rows.add(kTn, 30, 4, 12);
  rows.add(kNn, 3, 4, 5);
  MeasuredValues values = rows.values();
  EXPECT_EQ(answered_with(values, kNn, 11), kTn);
  values.answer_for_each();
  EXPECT_EQ(answered_with(values, kNn, 11), kNn);
  EXPECT_EQ(answered_with(values, kNt, 5), kTn);
}

// Where a value reaches to the edge of all rows it goes on beyond it, as all rows do.
TEST(MeasuredValues, EdgesOfAllRowsAreNotEdgesOfAValue) {
  Rows rows;
  rows.add(kTn, 100, 7, 8);
  rows.add(kNn, 61, 7.1, 8);
  const MeasuredValues values = rows.values();
  EXPECT_EQ(answered_with(values, kNn, 7.5), kNn);  // one decade, but it is all there is
  EXPECT_EQ(answered_with(values, kNn, 12), kNn);
  EXPECT_EQ(answered_with(values, kNn, 4), kNn);
}

TEST(MeasuredValues, ReadWhatTheyWrite) {
  Rows rows;
  rows.add(kTn, 300, 4, 12);
  rows.add(kNn, 61, 7, 9.5);
  const MeasuredValues values = rows.values();
  const auto back = MeasuredValues::read(KernelFeatureSet::matrix, values.write());
  ASSERT_TRUE(back.ok()) << back.error().message();
  ASSERT_EQ(back->values().size(), 4U);  // no bias, nothing accumulates, two layouts
  for (const double work : {6.0, 8.0, 11.0}) {
    EXPECT_EQ(answered_with(*back, kNn, work), answered_with(values, kNn, work));
  }
}

TEST(MeasuredValues, RefuseWhatCannotBe) {
  const auto message = [](const char* text) {
    const auto json = parse_json(text, "record");
    EXPECT_TRUE(json.ok()) << text;
    const auto read = MeasuredValues::read(KernelFeatureSet::matrix, *json);
    return read.ok() ? std::string{} : read.error().message();
  };
  EXPECT_THAT(message("{}"), HasSubstr("must be an array"));
  EXPECT_THAT(message("[3]"), HasSubstr("must hold objects"));
  EXPECT_THAT(message(R"([{"value": 1}])"), HasSubstr("`feature` is missing"));
  EXPECT_THAT(message(R"([{"feature": "log_m", "value": 1}])"),
              HasSubstr("`log_m` is not a discrete feature"));
  EXPECT_THAT(message(R"([{"feature": "layout", "value": 1, "n_rows": -1}])"), HasSubstr("`n_rows` is -1"));
  EXPECT_THAT(message(R"([{"feature": "layout", "value": 1, "n_rows": 3, "log_least_work": 2,
                           "log_most_work": 1}])"),
              HasSubstr("`log_least_work` is above"));
}

TEST(MeasuredValues, NoneAnswerForEverything) {
  const MeasuredValues none;
  EXPECT_EQ(answered_with(none, kNt, 11), kNt);
}

}  // namespace
}  // namespace stepcast::measured_values_test
