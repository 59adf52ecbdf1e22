#include "stepcast/workload/pipeline_schedule.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::pipeline_schedule_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// "F0 F1 B0 W0": letter and micro-batch; with several chunks "F0.1" is micro-batch 0 on chunk 1.
std::string text(const PipelineShape& shape, std::uint32_t stage) {
  std::string line;
  for (const PipelinePass& pass : pipeline_order(shape, stage)) {
    const char letter = pass.kind == PassKind::forward ? 'F' : pass.kind == PassKind::backward ? 'B' : 'W';
    line += fmt::format("{}{}{}", line.empty() ? "" : " ", letter, pass.micro_batch);
    if (shape.virtual_stages > 1) line += fmt::format(".{}", pass.chunk);
  }
  return line;
}

TEST(PipelineOrder, GPipeRunsAllForwardsFirst) {
  const PipelineShape shape{PipelineSchedule::gpipe, 2, 1, 3};
  EXPECT_EQ(text(shape, 0), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(text(shape, 1), "F0 F1 F2 B0 B1 B2");
}

// Stage s of P starts with P - 1 - s forwards, then alternates, then drains.
TEST(PipelineOrder, OneForwardOneBackwardOnFourStages) {
  const PipelineShape shape{PipelineSchedule::one_f_one_b, 4, 1, 5};
  EXPECT_EQ(text(shape, 0), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
  EXPECT_EQ(text(shape, 1), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(text(shape, 2), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(text(shape, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST(PipelineOrder, OneForwardOneBackwardWithFewerMicroBatchesThanStages) {
  const PipelineShape shape{PipelineSchedule::one_f_one_b, 4, 1, 2};
  EXPECT_EQ(text(shape, 0), "F0 F1 B0 B1");
  EXPECT_EQ(text(shape, 2), "F0 F1 B0 B1");
  EXPECT_EQ(text(shape, 3), "F0 B0 F1 B1");
}

// Two stages of two chunks each, four micro-batches. Forwards go in groups of two micro-batches through both
// chunks: 0.0 1.0 0.1 1.1 2.0 3.0 2.1 3.1; backwards likewise with the chunks the other way round. Stage 0
// starts with (2 - 1 - 0) * 2 + (2 - 1) * 2 = 4 forwards, stage 1 with 2.
TEST(PipelineOrder, InterleavedTwoByTwo) {
  const PipelineShape shape{PipelineSchedule::interleaved, 2, 2, 4};
  EXPECT_EQ(text(shape, 0),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text(shape, 1),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

// Stage 0 starts with 5 forwards instead of 4: F2.0 and B0.1, which run side by side, are of different micro-batches on
// the last stage, too, where B0.1 follows F1.1 and not F0.1.
TEST(PipelineOrder, OneMoreForwardSeparatesWhatRunsSideBySide) {
  const PipelineShape shape{PipelineSchedule::interleaved, 2, 2, 4, true};
  EXPECT_EQ(text(shape, 0),
            "F0.0 F1.0 F0.1 F1.1 F2.0 F3.0 B0.1 F2.1 B1.1 F3.1 B0.0 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text(shape, 1),
            "F0.0 F1.0 F0.1 F1.1 B0.1 F2.0 B1.1 F3.0 B0.0 F2.1 B1.0 F3.1 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(peak_activations_held(shape, 0), 6U);
  const PipelineShape alone{PipelineSchedule::one_f_one_b, 1, 1, 3, true};
  EXPECT_EQ(text(alone, 0), "F0 F1 B0 F2 B1 B2");
  EXPECT_EQ(peak_activations_held(alone, 0), 2U);
}

// As many micro-batches as stages: the first stage runs all forwards first, the last one as few as ever.
TEST(PipelineOrder, InterleavedWithOneGroupFillsAsEver) {
  const PipelineShape shape{PipelineSchedule::interleaved, 2, 2, 2};
  EXPECT_EQ(text(shape, 0), "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
  EXPECT_EQ(text(shape, 1), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0");
}

TEST(PipelineOrder, InterleavedWithOneChunkIsOneForwardOneBackward) {
  EXPECT_EQ(text({PipelineSchedule::interleaved, 4, 1, 7}, 1),
            text({PipelineSchedule::one_f_one_b, 4, 1, 7}, 1));
}

// The order of 1F1B; stage s runs the weight gradients of a micro-batch s backwards later.
TEST(PipelineOrder, ZeroBubbleHoldsWeightGradientsBack) {
  const PipelineShape shape{PipelineSchedule::zero_bubble_h1, 3, 1, 4};
  EXPECT_EQ(text(shape, 0), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(text(shape, 1), "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  EXPECT_EQ(text(shape, 2), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

std::vector<PipelineShape> many_shapes() {
  std::vector<PipelineShape> shapes;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble_h1,
        PipelineSchedule::interleaved, PipelineSchedule::zb_v, PipelineSchedule::v_half,
        PipelineSchedule::v_min}) {
    for (const std::uint32_t stages : {1U, 2U, 3U, 4U, 7U, 8U}) {
      for (std::uint32_t micro_batches = 1; micro_batches <= 48; ++micro_batches) {
        for (const std::uint32_t chunks : {1U, 2U, 3U}) {
          const PipelineShape shape{schedule, stages, chunks, micro_batches};
          if (check(shape).ok()) shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

TEST(PipelineOrder, EveryPassRunsOnceAndBackwardAfterForward) {
  const std::vector<PipelineShape> shapes = many_shapes();
  EXPECT_GT(shapes.size(), 400U);
  for (const PipelineShape& shape : shapes) {
    const bool weights = splits_backward(shape.schedule);
    for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
      SCOPED_TRACE(fmt::format("{} {} stages {} chunks {} micro-batches, stage {}", to_string(shape.schedule),
                               shape.stages, shape.virtual_stages, shape.micro_batches, stage));
      std::set<std::tuple<PassKind, std::uint32_t, std::uint32_t>> seen;
      for (const PipelinePass& pass : pipeline_order(shape, stage)) {
        ASSERT_LT(pass.chunk, shape.virtual_stages);
        ASSERT_LT(pass.micro_batch, shape.micro_batches);
        ASSERT_TRUE(seen.insert({pass.kind, pass.chunk, pass.micro_batch}).second) << "runs twice";
        if (pass.kind == PassKind::backward) {
          ASSERT_TRUE(seen.contains({PassKind::forward, pass.chunk, pass.micro_batch}));
        }
        if (pass.kind == PassKind::weight_gradient) {
          ASSERT_TRUE(seen.contains({PassKind::backward, pass.chunk, pass.micro_batch}));
        }
      }
      ASSERT_EQ(seen.size(), std::size_t{weights ? 3U : 2U} * shape.virtual_stages * shape.micro_batches);
    }
  }
}

// No order deadlocks: stages that only wait for their neighbours finish. Backward of the last chunk needs its
// own forward alone.
TEST(PipelineOrder, NeighboursNeverWaitForEachOther) {
  for (const PipelineShape& shape : many_shapes()) {
    const std::uint32_t n_chunks = shape.stages * shape.virtual_stages;
    std::set<std::tuple<PassKind, std::uint32_t, std::uint32_t>> done;
    std::vector<std::size_t> next(shape.stages, 0);
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
        const std::vector<PipelinePass> order = pipeline_order(shape, stage);
        while (next[stage] < order.size()) {
          const PipelinePass& pass = order[next[stage]];
          const std::uint32_t c = chunk_of_stage(shape.schedule, shape.stages, stage, pass.chunk);
          const bool ready =
              pass.kind == PassKind::weight_gradient || (pass.kind == PassKind::forward && c == 0) ||
              (pass.kind == PassKind::forward && done.contains({pass.kind, c - 1, pass.micro_batch})) ||
              (pass.kind == PassKind::backward && c + 1 == n_chunks) ||
              (pass.kind == PassKind::backward && done.contains({pass.kind, c + 1, pass.micro_batch}));
          if (!ready) break;
          done.insert({pass.kind, c, pass.micro_batch});
          ++next[stage];
          moved = true;
        }
      }
    }
    for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
      ASSERT_EQ(next[stage], pipeline_order(shape, stage).size())
          << to_string(shape.schedule) << " " << shape.stages << " stages " << shape.virtual_stages
          << " chunks " << shape.micro_batches << " micro-batches: stage " << stage << " waits for ever";
    }
  }
}

TEST(PipelineMemory, GPipeHoldsEveryMicroBatch) {
  EXPECT_EQ(peak_activations_held({PipelineSchedule::gpipe, 4, 1, 9}, 0), 9U);
  EXPECT_EQ(peak_activations_held({PipelineSchedule::gpipe, 4, 1, 9}, 3), 9U);
}

TEST(PipelineMemory, OneForwardOneBackwardHoldsAsManyAsStagesBehind) {
  for (std::uint32_t stages = 1; stages <= 8; ++stages) {
    for (std::uint32_t micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      for (std::uint32_t s = 0; s < stages; ++s) {
        EXPECT_EQ(peak_activations_held({PipelineSchedule::one_f_one_b, stages, 1, micro_batches}, s),
                  std::min(stages - s, micro_batches));
      }
    }
  }
}

// (P - 1 - s) * 2 + (v - 1) * P forwards, and the one that runs before the first backward.
TEST(PipelineMemory, InterleavingHoldsMore) {
  const PipelineShape shape{PipelineSchedule::interleaved, 4, 2, 16};
  EXPECT_EQ(peak_activations_held(shape, 0), 3U * 2 + 4 + 1);
  EXPECT_EQ(peak_activations_held(shape, 3), 0U * 2 + 4 + 1);
}

// Counted over the whole order, however long it is.
TEST(PipelineMemory, ThePeakIsThatOfTheWholeOrder) {
  for (const PipelineShape& shape : many_shapes()) {
    const bool held_back = splits_backward(shape.schedule);
    for (std::uint32_t s = 0; s < shape.stages; ++s) {
      std::uint32_t held = 0, peak = 0;
      for (const PipelinePass& pass : pipeline_order(shape, s)) {
        if (pass.kind == PassKind::forward) peak = std::max(peak, ++held);
        if (pass.kind == (held_back ? PassKind::weight_gradient : PassKind::backward)) --held;
      }
      EXPECT_EQ(peak_activations_held(shape, s), peak);
      EXPECT_EQ(held, 0U);
    }
  }
}

TEST(PipelineMemory, ZeroBubbleNeverHoldsMoreThanTheFirstStageOfOneForwardOneBackward) {
  for (std::uint32_t stages = 1; stages <= 8; ++stages) {
    for (std::uint32_t micro_batches = 1; micro_batches <= 24; ++micro_batches) {
      const std::uint32_t first =
          peak_activations_held({PipelineSchedule::one_f_one_b, stages, 1, micro_batches}, 0);
      for (std::uint32_t s = 0; s < stages; ++s) {
        EXPECT_LE(peak_activations_held({PipelineSchedule::zero_bubble_h1, stages, 1, micro_batches}, s),
                  first);
      }
    }
  }
}

// The bubble of DualPipe is that of ZB-H1; it feeds both ends and keeps one micro-batch more than it has stages.
TEST(PipelineOrder, DualPipeIsLaidOutAsZeroBubble) {
  EXPECT_EQ(text({PipelineSchedule::dual_pipe, 4, 1, 8}, 1),
            text({PipelineSchedule::zero_bubble_h1, 4, 1, 8}, 1));
  EXPECT_EQ(peak_activations_held({PipelineSchedule::dual_pipe, 4, 1, 8}, 0), 5U);
  EXPECT_EQ(peak_activations_held({PipelineSchedule::dual_pipe, 4, 1, 8}, 3), 5U);
  EXPECT_FALSE(check({PipelineSchedule::dual_pipe, 3, 1, 8}).ok());
  EXPECT_FALSE(check({PipelineSchedule::dual_pipe, 4, 1, 7}).ok());
}

// Two stages, worked by hand: forward passes go down and come back, gradients likewise; a micro-batch begins every six
// passes. f, b, w: of the second chunk.
TEST(PipelineOrder, VShapesGoThereAndBackAgain) {
  const auto letters = [](PipelineSchedule schedule, std::uint32_t stage) {
    std::string out;
    for (const PipelinePass& pass : pipeline_order({schedule, 2, 2, 2}, stage))
      out += fmt::format("{}{} ", (pass.chunk == 0 ? "FBW" : "fbw")[static_cast<int>(pass.kind)],
                         pass.micro_batch);
    return out;
  };
  EXPECT_EQ(letters(PipelineSchedule::v_min, 0), "F0 f0 b0 w0 F1 B0 W0 f1 b1 w1 B1 W1 ");
  EXPECT_EQ(letters(PipelineSchedule::v_min, 1), "F0 f0 b0 B0 F1 f1 w0 W0 b1 B1 w1 W1 ");
}

// Of chunks, half a stage each: as 1F1B's first stage, half of it, a third of it, and what a turn takes.
TEST(PipelineMemory, VShapesHoldAsMuchAsOneForwardOneBackwardHalfOfItAndAThird) {
  for (const std::uint32_t stages : {4U, 8U, 16U}) {
    const auto most = [&](PipelineSchedule schedule) {
      std::uint32_t held = 0;
      for (std::uint32_t s = 0; s < stages; ++s)
        held = std::max(held, peak_activations_held({schedule, stages, 2, 8 * stages}, s));
      return held;
    };
    EXPECT_EQ(most(PipelineSchedule::zb_v), 2 * stages);
    EXPECT_EQ(most(PipelineSchedule::v_half), stages + 2);
    EXPECT_LE(most(PipelineSchedule::v_min), 2 * stages / 3 + 3);
  }
  EXPECT_FALSE(check({PipelineSchedule::v_min, 4, 1, 8}).ok());
}

std::string message_of(const PipelineShape& shape) {
  const Status status = check(shape);
  return status.ok() ? "no error" : status.error().message();
}

TEST(PipelineShape, NamesWhatCannotBe) {
  EXPECT_EQ(message_of({PipelineSchedule::one_f_one_b, 4, 1, 1}), "no error");
  EXPECT_EQ(message_of({PipelineSchedule::interleaved, 4, 3, 8}), "no error");
  EXPECT_THAT(message_of({PipelineSchedule::one_f_one_b, 0, 1, 1}), HasSubstr("without stages"));
  EXPECT_THAT(message_of({PipelineSchedule::one_f_one_b, 2, 1, 0}),
              AllOf(HasSubstr("without micro-batches"), HasSubstr("raise the global batch size")));
  EXPECT_THAT(message_of({PipelineSchedule::interleaved, 2, 0, 2}), HasSubstr("0 virtual stages"));
  EXPECT_THAT(message_of({PipelineSchedule::gpipe, 2, 2, 2}),
              HasSubstr("only the interleaved schedule has them"));
  EXPECT_THAT(message_of({PipelineSchedule::interleaved, 1, 2, 2}), HasSubstr("at least 2 stages"));
  EXPECT_THAT(
      message_of({PipelineSchedule::interleaved, 4, 2, 6}),
      AllOf(HasSubstr("6 micro-batches are not a multiple of 4 pipeline stages"), HasSubstr("use 4")));
  EXPECT_THAT(message_of({PipelineSchedule::interleaved, 8, 2, 6}), HasSubstr("use 8"));
  EXPECT_THAT(message_of({PipelineSchedule::one_f_one_b, 8, 1, 1'000'000'000}),
              AllOf(HasSubstr("too many to simulate"), HasSubstr("raise the micro-batch size")));
}

}  // namespace
}  // namespace stepcast::pipeline_schedule_test
