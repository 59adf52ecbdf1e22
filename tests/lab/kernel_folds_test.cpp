#include "lab/kernel_folds.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/data.h"

namespace stepcast::kernel_folds_test {
namespace {

KernelMeasurement row(std::string label, Operation operation, std::int64_t hidden_size = 0,
                      std::int64_t sequence_length = 0) {
  KernelMeasurement m;
  m.operation = operation;
  m.gpu = "X";
  m.label = std::move(label);
  m.time = Microseconds{10};
  m.hidden_size = hidden_size;
  m.sequence_length = sequence_length;
  return m;
}

// Products of layers of several widths, batches and lengths: m = batch x length, so shapes repeat.
std::vector<KernelMeasurement> layers() {
  std::vector<KernelMeasurement> rows;
  for (const std::int64_t width : {1024, 2048, 3072, 4096, 5120}) {
    for (const std::int64_t length : {512, 1024, 2048, 4096}) {
      for (const std::int64_t batch : {1, 2, 4}) {
        for (const Direction direction : {Direction::forward, Direction::backward}) {
          rows.push_back(row("up",
                             gemm({.m = batch * length, .n = 4 * width, .k = width}, DType::fp16, direction),
                             width, length));
        }
      }
    }
  }
  return rows;
}

// Operations (without direction) that are in more than one fold.
std::size_t leaks(const std::vector<KernelMeasurement>& rows, const KernelSplit& split) {
  std::map<std::string, std::set<int>> folds;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Operation operation = rows[i].operation;
    operation.direction = Direction::forward;
    folds[describe(operation)].insert(split.fold[i]);
  }
  std::size_t n = 0;
  for (const auto& [unused, of_one] : folds) n += of_one.size() > 1 ? 1U : 0U;
  return n;
}

TEST(KernelFolds, NoShapeIsInTwoFoldsAndEveryRowIsTestedOnce) {
  const auto rows = layers();
  const KernelSplit split = split_by_shape(rows, 5, 42);
  ASSERT_EQ(split.fold.size(), rows.size());
  EXPECT_EQ(leaks(rows, split), 0U);
  std::map<int, int> sizes;
  for (const int fold : split.fold) {
    EXPECT_GE(fold, 0);
    EXPECT_LT(fold, 5);
    ++sizes[fold];
  }
  EXPECT_EQ(sizes.size(), 5U);
}

TEST(KernelFolds, SplitsByRowTearTwinsApartButKeepRepeatsTogether) {
  auto rows = layers();
  EXPECT_GT(leaks(rows, split_by_row(rows, 5, 42)), 10U);
  // The same parameters again, with another time: no news for a model that saw the first.
  const std::size_t n = rows.size();
  for (std::size_t i = 0; i < n; ++i) rows.push_back(rows[i]);
  const KernelSplit split = split_by_row(rows, 5, 42);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(split.fold[i], split.fold[i + n]);
}

TEST(KernelFolds, TheSeedAndTheOrderDecideNothingElse) {
  const auto rows = layers();
  EXPECT_EQ(split_by_shape(rows, 5, 42).fold, split_by_shape(rows, 5, 42).fold);
  EXPECT_NE(split_by_shape(rows, 5, 42).fold, split_by_shape(rows, 5, 43).fold);
}

TEST(KernelFolds, WholeValuesAreHeldOutTogether) {
  auto rows = layers();
  rows.push_back(row("softmax", {SoftmaxShape{.rows = 8, .cols = 512}, DType::fp16}, 0, 512));
  const KernelSplit by_width = split_by_value(rows, HeldOutValue::hidden_size, 5, 42);
  std::map<std::int64_t, std::set<int>> folds;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) folds[rows[i].hidden_size].insert(by_width.fold[i]);
  EXPECT_EQ(folds.size(), 5U);
  for (const auto& [width, of_one] : folds) EXPECT_EQ(of_one.size(), 1U) << width;
  EXPECT_EQ(by_width.fold.back(), kNotTested);  // it has no width
  EXPECT_NE(split_by_value(rows, HeldOutValue::sequence_length, 5, 42).fold.back(), kNotTested);
  const std::vector<KernelMeasurement> one{rows.front()};
  EXPECT_EQ(split_by_value(one, HeldOutValue::hidden_size, 5, 42).fold.front(), kNotTested);
}

TEST(KernelFolds, TheLargestAreWidthsOrTheTenthWithMostWork) {
  auto rows = layers();
  const std::size_t n_layers = rows.size();
  for (std::int64_t i = 1; i <= 100; ++i) {
    rows.push_back(row("gemm", gemm({.m = i, .n = 64, .k = 64}, DType::bf16)));
    rows.push_back(row(
        "add", elementwise({.function = ElementwiseFunction::add, .elements = i, .reads = 2}, DType::fp32)));
  }
  const KernelSplit split = split_largest(rows);
  std::size_t gemms = 0, adds = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool tested = split.fold[i] == 0;
    if (i < n_layers) {
      EXPECT_EQ(tested, rows[i].hidden_size > 4096) << rows[i].hidden_size;
    } else if (tested) {
      (rows[i].label == "gemm" ? gemms : adds) += 1;
      EXPECT_GT((i - n_layers) / 2 + 1, 89U);
    }
  }
  EXPECT_EQ(gemms, 10U);
  EXPECT_EQ(adds, 10U);
}

TEST(KernelFolds, NoShapeOfTheMeasuredDataIsInTwoFolds) {
  SKIP_WITHOUT_DATA();
  const auto measured =
      read_kernel_measurements(*test::measured_data() / "kernels" / "operators_fwd_bwd_gh200.csv");
  ASSERT_TRUE(measured.ok()) << measured.error().message();
  EXPECT_EQ(leaks(measured->rows, split_by_shape(measured->rows, 5, 42)), 0U);
  EXPECT_GT(leaks(measured->rows, split_by_row(measured->rows, 5, 42)), 1000U);
}

}  // namespace
}  // namespace stepcast::kernel_folds_test
