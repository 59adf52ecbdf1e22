#include "stepcast/formats/megatron_writer.h"

#include <vector>

#include <gtest/gtest.h>

#include "stepcast/formats/megatron.h"
#include "stepcast/workload/layer_words.h"

namespace stepcast::megatron_writer_test {
namespace {

TEST(MegatronWriter, WritesOneFlagPerSetting) {
  JobSettings s;
  s.tensor = 8;
  s.sequence_parallel = true;
  s.fp8 = true;
  s.dtype = DType::bf16;
  s.recompute = Recompute::full;
  s.recompute_by_block = false;
  s.recompute_layers = 1;
  s.fully_sharded = true;
  s.sharding = Sharding::zero3;
  const std::string flags = megatron_flags_of(s);
  EXPECT_EQ(
      flags,
      "--tensor-model-parallel-size 8 --bf16 --fp8-format hybrid --sequence-parallel --recompute-granularity "
      "full --recompute-method uniform --recompute-num-layers 1 --data-parallel-sharding-strategy "
      "optim_grads_params --use-megatron-fsdp");
  const Result<MegatronWords> read = parse_megatron_command_line(flags);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->settings, s);
}

TEST(MegatronWriter, WritesStagesThatItsReaderReadsBack) {
  const std::vector<std::vector<std::int64_t>> all = {
      {2, 3, 3, 3, 2}, {0, 4, 4, 0}, {1}, {7, 8, 8, 7}, {2, 1, 1, 1, 2, 2, 1, 0}, {5, 4, 3}, {4, 4, 4, 4}};
  for (const std::vector<std::int64_t>& layers : all) {
    for (const std::int64_t more : {0, 1, 2}) {
      const std::string text = pipeline_layout_string(layers, more);
      const auto read = parse_pipeline_layout(text);
      ASSERT_TRUE(read.ok()) << text;
      EXPECT_EQ(*read, layers) << text;
    }
  }
  EXPECT_EQ(pipeline_layout_string(std::vector<std::int64_t>{2, 3, 3, 3, 2}, 0), "Et*2|(t*3|)*3,t*2L");
  EXPECT_EQ(pipeline_layout_string(std::vector<std::int64_t>{1, 2, 0}, 1), "Et|t*2|mL");
}

}  // namespace
}  // namespace stepcast::megatron_writer_test
