// Event edges that a trace does not name: how many are found, and how many of those found are right.
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/trace/readers.h"

#include "lab/replay_scores.h"
#include "tests/support/data.h"
#include "tests/support/trace_generator.h"

namespace stepcast::inference_test {
namespace {

using test::BatchPipeline, test::EventRecords;

GpuOp gpu_op(std::int32_t stream, int start_us) {
  GpuOp op;
  op.stream = stream;
  op.start = std::chrono::microseconds{start_us};
  op.duration = std::chrono::microseconds{5};
  return op;
}

// Streams 1 (ops 0, 2, 4) and 2 (ops 1, 3, 5), one op after the other.
RecordedRank two_streams() {
  RecordedRank r;
  for (int i = 0; i < 6; ++i) r.gpu_ops.push_back(gpu_op(i % 2 + 1, 10 * i));
  return r;
}

TEST(InferenceScore, CountsWhatEdgesSayAndNotHowTheySayIt) {
  const RecordedRank r = two_streams();
  // 0 -> 3 follows from 2 -> 3 and the order of stream 1; 2 -> 5 from 2 -> 3 and the order of stream 2.
  const std::vector<EventEdge> truth{{0, 3}, {2, 3}, {2, 5}};
  InferenceScore s = score_event_edges(r, truth, std::vector<EventEdge>{{2, 3}});
  EXPECT_EQ(s.true_edges, 1u);
  EXPECT_EQ(s.found, 1u);
  EXPECT_EQ(s.inferred_edges, 1u);
  EXPECT_EQ(s.right, 1u);
  // A weaker edge is right but does not find the true one.
  s = score_event_edges(r, truth, std::vector<EventEdge>{{0, 3}});
  EXPECT_EQ(s.found, 0u);
  EXPECT_EQ(s.right, 1u);
  EXPECT_EQ(s.missed, (std::vector<EventEdge>{{2, 3}}));
  // A stronger one finds it and is wrong.
  s = score_event_edges(r, truth, std::vector<EventEdge>{{2, 1}});
  EXPECT_EQ(s.found, 1u);
  EXPECT_EQ(s.right, 0u);
  EXPECT_EQ(s.wrong, (std::vector<EventEdge>{{2, 1}}));
  // Nothing there, nothing wrong.
  s = score_event_edges(r, {}, {});
  EXPECT_EQ(s.recall(), 1);
  EXPECT_EQ(s.precision(), 1);
}

TEST(InferenceScore, FollowsEdgesOverSeveralStreams) {
  RecordedRank r;
  for (int i = 0; i < 6; ++i)
    r.gpu_ops.push_back(gpu_op(i % 3 + 1, 10 * i));  // streams 1: 0, 3; 2: 1, 4; 3: 2, 5
  const std::vector<EventEdge> chain{{0, 1}, {1, 5}};
  const InferenceScore s = score_event_edges(r, chain, std::vector<EventEdge>{{0, 1}, {1, 5}, {0, 5}});
  EXPECT_EQ(s.true_edges, 2u);
  EXPECT_EQ(s.inferred_edges, 2u);  // 0 -> 5 follows from the others
  EXPECT_EQ(s.found, 2u);
  EXPECT_EQ(s.right, 2u);
}

InferenceScore score_generated(const test::GeneratorOptions& options, bool with_execution_traces) {
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<ExecutionTrace> execution;
  std::vector<RecordedInput> inputs;
  execution.reserve(job.ranks.size());
  for (const test::GeneratedRank& rank : job.ranks) {
    inputs.push_back({&rank.recorded, nullptr});
    if (!with_execution_traces) continue;
    auto parsed = parse_execution_trace(rank.execution_trace, "generated");
    EXPECT_TRUE(parsed.ok());
    execution.push_back(std::move(parsed).value());
    inputs.back().execution_trace = &execution.back();
  }
  const auto program = rebuild_program(inputs);
  EXPECT_TRUE(program.ok()) << program.error().message();
  InferenceScore total;
  if (!program.ok()) return total;
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    const RecordedRank& recorded = job.ranks[r].recorded;
    std::vector<EventEdge> truth;
    for (const test::TrueEventEdge& e : job.ranks[r].event_edges) truth.push_back({e.source, e.destination});
    const InferenceScore s = score_event_edges(recorded, truth, event_edges(*program, r));
    total += s;
    const auto name = [&](std::uint32_t op) {
      const GpuOp& g = recorded.gpu_ops[op];
      return fmt::format("stream {} {:.48}", g.stream, recorded.names.text(g.name));
    };
    for (const EventEdge& e : s.missed)
      fmt::print("  seed {} rank {}: missed {} -> {}\n", options.seed, r, name(e.source),
                 name(e.destination));
    for (const EventEdge& e : s.wrong)
      fmt::print("  seed {} rank {}: wrong {} -> {}\n", options.seed, r, name(e.source), name(e.destination));
  }
  return total;
}

InferenceScore score_all(BatchPipeline pipeline, EventRecords records, bool with_execution_traces) {
  InferenceScore total;
  for (const std::uint64_t seed : {21u, 22u, 23u}) {
    for (const double scale : {1.0, 8.0}) {
      for (const bool whole : {true, false}) {
        test::GeneratorOptions options;
        options.seed = seed;
        options.kernel_scale = scale;
        options.whole_microseconds = whole;
        options.pipeline = pipeline;
        options.event_records = records;
        total += score_generated(options, with_execution_traces);
      }
    }
  }
  fmt::print("found {} of {} true edges ({:.1f} %), {} of {} inferred are right ({:.1f} %)\n", total.found,
             total.true_edges, 100 * total.recall(), total.right, total.inferred_edges,
             100 * total.precision());
  return total;
}

// Every stream waits for the stream that was used just before: the calls' order tells all.
TEST(Inference, FindsTheEventsOfAStraightforwardJob) {
  const InferenceScore s = score_all(BatchPipeline::same_step, EventRecords::hidden, true);
  EXPECT_GE(s.recall(), 0.95);
  EXPECT_GE(s.precision(), 0.95);
}

TEST(Inference, FindsTheEventsWithoutExecutionTraces) {
  const InferenceScore s = score_all(BatchPipeline::same_step, EventRecords::hidden, false);
  EXPECT_GE(s.recall(), 0.95);
  EXPECT_GE(s.precision(), 0.90);
}

TEST(Inference, FindsTheEventsWithVisibleRecordCalls) {
  const InferenceScore s = score_all(BatchPipeline::same_step, EventRecords::calls, true);
  EXPECT_GE(s.recall(), 0.95);
  EXPECT_GE(s.precision(), 0.95);
}

// A pipeline that prepares batches ahead also waits for events which were recorded long before, or of streams
// that were not used since: two such waits in three cannot be told from the calls (three of 14 edges a rank).
TEST(Inference, FindsMostEventsOfAPipelinedJob) {
  const InferenceScore s = score_all(BatchPipeline::ahead, EventRecords::hidden, true);
  EXPECT_GE(s.recall(), 0.85);
  EXPECT_GE(s.precision(), 0.85);
}

TEST(Inference, TakesRecordedEventsAsTheyAre) {
  for (const BatchPipeline pipeline : {BatchPipeline::same_step, BatchPipeline::ahead}) {
    const InferenceScore s = score_all(pipeline, EventRecords::sync_records, true);
    EXPECT_EQ(s.recall(), 1);
    EXPECT_EQ(s.precision(), 1);
  }
}

// The generator's `cuda_sync` records say what it did.
TEST(Inference, RecordedEdgesAreTheTrueOnes) {
  test::GeneratorOptions options;
  options.event_records = EventRecords::sync_records;
  options.late_gpu_ranks = {};
  for (const test::GeneratedRank& rank : test::generate_job(options).ranks) {
    std::vector<EventEdge> truth;
    for (const test::TrueEventEdge& e : rank.event_edges) truth.push_back({e.source, e.destination});
    const InferenceScore s = score_event_edges(rank.recorded, truth, recorded_event_edges(rank.recorded));
    EXPECT_EQ(s.recall(), 1);
    EXPECT_EQ(s.precision(), 1);
  }
}

struct RecordedCase {
  const char* file;
  std::size_t true_edges, found;  // as reached; the sets are too small for percentages
};

// The only shared traces with `cuda_sync` records, with the records taken away.
TEST(Inference, FindsTheRecordedEventsOfRealTraces) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "traces" / "hta_small";
  for (const RecordedCase& c :
       {RecordedCase{"alexnet__benchmark_result_2869224_1695835535_trace.json.gz", 6, 6},
        RecordedCase{"simple_add__trace.json.gz", 6, 4},
        RecordedCase{"cuda_event_sync_multi_stream__event_sync_trace.json.gz", 1, 0}}) {
    SCOPED_TRACE(c.file);
    const auto recorded = read_kineto(folder / c.file);
    ASSERT_TRUE(recorded.ok()) << recorded.error().message();
    const RecordedRank stripped = without_sync_records(*recorded);
    const std::vector<RecordedInput> input{{&stripped, nullptr}};
    const auto program = rebuild_program(input);
    ASSERT_TRUE(program.ok()) << program.error().message();
    const InferenceScore s =
        score_event_edges(stripped, recorded_event_edges(*recorded), event_edges(*program, 0));
    fmt::print("{}: found {} of {}, right {} of {}\n", c.file, s.found, s.true_edges, s.right,
               s.inferred_edges);
    EXPECT_EQ(s.true_edges, c.true_edges);
    EXPECT_GE(s.found, c.found);
  }
}

}  // namespace
}  // namespace stepcast::inference_test
