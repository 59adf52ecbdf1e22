#include "stepcast/retrace/step_edit.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/retrace/trace_prediction.h"

#include "tests/support/fails_with.h"
#include "tests/support/paths.h"
#include "tests/support/trace_generator.h"

namespace stepcast::step_edit_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

Platform example(const char* file) {
  return value_of(load_platform((test::source_dir() / "examples" / "platforms" / file).string()));
}

class TraceChanges : public ::testing::Test {
 protected:
  TraceChanges() {
    test::GeneratorOptions options;
    options.collective_metadata = true;
    job = test::generate_job(options);
    for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
    how.recorded_on = &v100;
  }
  // Predicted over recorded time of all GPU work of a rank that `counts`.
  template <class Counts>
  static std::vector<double> ratios(const TracePrediction& p, std::size_t rank, Counts counts) {
    const BlockId id = p.recorded.program.rank_class(RankClassId{rank}).instances.front().block;
    const Block& block = p.recorded.program.block(id);
    std::vector<double> all;
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (counts(block.tasks()[t]) && block.duration_us()[t] > 0)
        all.push_back(p.costs.duration_us(id)[t] / block.duration_us()[t]);
    }
    return all;
  }
  static bool is_transfer(const TaskInfo& task) {
    return task.kind == TaskKind::collective || task.kernel_class == KernelClass::communication;
  }
  static bool is_kernel(const TaskInfo& task) { return task.kind == TaskKind::kernel && !is_transfer(task); }

  Platform v100 = value_of(load_platform("dgx-1-v100-32gb"));
  test::GeneratedJob job;
  std::vector<RecordedInput> inputs;
  TracePredictionOptions how;
};

// Without execution traces and shapes a kernel of no known operation moves with the memory bandwidth, a product with
// the fp16 peak: rank 2 by those of the FPGA-like card, rank 1 by those of the TPU-like one, which states bf16 that
// the V100 does not, so fp32; the others not at all.
TEST_F(TraceChanges, RanksComputeOnDevicesOfTheirOwn) {
  const Platform fpga = example("fpga-like.json"), tpu = example("tpu-like.json");
  how.rank_platforms = {{2, &fpga}, {1, &tpu}};
  const TracePrediction p = value_of(predict_trace(inputs, how));
  const auto memory = [&](const Platform& platform) {
    return v100.device.memory_bandwidth.value() / platform.device.memory_bandwidth.value();
  };
  const auto unknown = [&](std::size_t rank) {
    return ratios(p, rank, [&](const TaskInfo& task) {
      return is_kernel(task) && p.recorded.program.works.operation(task.work) == nullptr &&
             task.kernel_class != KernelClass::gemm && task.kernel_class != KernelClass::attention;
    });
  };
  ASSERT_FALSE(unknown(2).empty());
  for (const double ratio : unknown(2)) EXPECT_NEAR(ratio, memory(fpga), 1e-9);
  for (const double ratio : unknown(1)) EXPECT_NEAR(ratio, memory(tpu), 1e-9);
  for (const std::size_t rank : {std::size_t{0}, std::size_t{3}}) {
    for (const double ratio : ratios(p, rank, is_kernel)) EXPECT_DOUBLE_EQ(ratio, 1);
  }
  for (const double ratio : ratios(p, 2, is_transfer)) EXPECT_DOUBLE_EQ(ratio, 1) << "the links stay";
  EXPECT_THAT(p.notes, Contains(HasSubstr("rank 2 computes on FPGA-like (fpga-like)")));
  TracePredictionOptions plain;
  EXPECT_GT(p.step.time, value_of(predict_trace(inputs, plain)).step.time) << "everybody waits for rank 2";
}

TEST_F(TraceChanges, TransfersTakeOtherLinks) {
  const Platform pcie = value_of(load_platform("8xv100-pcie-32gb"));
  how.links = &pcie;
  const TracePrediction p = value_of(predict_trace(inputs, how));
  for (const double ratio : ratios(p, 0, is_kernel)) EXPECT_DOUBLE_EQ(ratio, 1);
  const std::vector<double> transfers = ratios(p, 0, is_transfer);
  ASSERT_FALSE(transfers.empty());
  EXPECT_GT(*std::max_element(transfers.begin(), transfers.end()), 1.5) << "PCIe instead of NVLink";
  EXPECT_THAT(p.notes, Contains(HasSubstr("transfers use the links of 8xv100-pcie-32gb (pcie")));
}

TEST_F(TraceChanges, SayWhatIsWrong) {
  how.rank_platforms = {{9, &v100}};
  EXPECT_THAT(predict_trace(inputs, how), test::FailsWith("--rank-platform: found rank 9"));
  how.recorded_on = nullptr;
  EXPECT_THAT(predict_trace(inputs, how), test::FailsWith("no platform represents the recording machine"));
  const RecordedProgram recorded = value_of(rebuild_program(inputs));
  EXPECT_THAT(predict_between(recorded, recorded, {}),
              test::FailsWith("are for the prediction of another batch"));
}

// The list says what is made, in which order, and only that.
TEST(StepEdits, AreMadeInTheirOrder) {
  std::vector<std::string_view> names;
  for (const StepEdit& edit : step_edits()) {
    names.push_back(edit.name);
    EXPECT_FALSE(edit.what.empty()) << edit.name;
  }
  EXPECT_THAT(names, ::testing::ElementsAre("bucket-size", "recompute", "overlap", "platform",
                                            "rank-platforms", "links", "between-batches", "work", "delays",
                                            "host", "barrier", "median-ranks"));
  const auto asked = [](const TracePredictionOptions& options) {
    std::vector<std::string_view> made;
    for (const StepEdit& edit : step_edits())
      if (edit.asked(options)) made.push_back(edit.name);
    return made;
  };
  TracePredictionOptions options;
  EXPECT_THAT(asked(options), ::testing::ElementsAre("platform", "delays"));
  EXPECT_FALSE(changes_gpu_times(options));
  options.median_ranks = true;
  options.change.batch = BatchChange{32, 64};
  options.overlap = OverlapChange::none;
  EXPECT_THAT(asked(options),
              ::testing::ElementsAre("overlap", "platform", "work", "delays", "median-ranks"));
  EXPECT_TRUE(changes_gpu_times(options));
  const Costs between{Program{}};
  options.between_batches = &between;  // the batch needs no models then
  EXPECT_THAT(asked(options),
              ::testing::ElementsAre("overlap", "platform", "between-batches", "delays", "median-ranks"));
}

}  // namespace
}  // namespace stepcast::step_edit_test
