// Every measured trace against the facts that its publisher's data set lists (facts.csv): counts, ranks,
// steps, links.
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/trace/readers.h"

#include "tests/support/data.h"

namespace stepcast::trace_facts_test {
namespace {

using Facts = std::map<std::string, std::string>;

std::vector<std::string> split_csv_line(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

std::vector<Facts> read_facts() {
  const auto text = read_file(*test::measured_data() / "traces" / "facts.csv");
  EXPECT_TRUE(text.ok());
  std::vector<Facts> all;
  if (!text.ok()) return all;
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> heading = split_csv_line(line);
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = split_csv_line(line);
    Facts facts;
    for (std::size_t i = 0; i < heading.size() && i < cells.size(); ++i) facts[heading[i]] = cells[i];
    all.push_back(std::move(facts));
  }
  return all;
}

// A count of the facts; unknown ones are empty.
void expect_count(std::size_t found, const Facts& facts, const char* fact) {
  const std::string& expected = facts.at(fact);
  if (expected.empty()) return;
  EXPECT_EQ(std::to_string(found), expected) << fact;
}

std::string text_of(const std::optional<std::int32_t>& number) {
  return number ? std::to_string(*number) : std::string();
}

void check_kineto(const RecordedRank& rank, const Facts& facts) {
  expect_count(rank.event_count, facts, "events");
  std::size_t ops = 0;
  std::string steps;
  for (const CpuOp& op : rank.cpu_ops) {
    // In old files the step is an operator and the facts count it as one.
    const bool old_step = op.kind == CpuOp::Kind::step && facts.at("file").starts_with("kineto_w0/");
    if (op.kind == CpuOp::Kind::op || old_step) ++ops;
    if (op.kind == CpuOp::Kind::step) {
      const auto number = profiler_step_number(rank.names.text(op.name));
      ASSERT_TRUE(number.has_value());
      steps += (steps.empty() ? "#" : " #") + std::to_string(*number) + "=" +
               std::to_string(std::llround(to_microseconds(op.duration).value()));
    }
  }
  expect_count(ops, facts, "cpu_ops");
  expect_count(rank.runtime_calls.size(), facts, "runtime_calls");
  EXPECT_EQ(steps, facts.at("step_durations_us"));

  std::size_t kernels = 0;
  std::size_t comm_kernels = 0;
  std::size_t comm_with_metadata = 0;
  std::size_t linked = 0;
  std::set<std::pair<std::int32_t, std::int32_t>> streams;
  std::unordered_set<std::int64_t> correlations;
  for (const RuntimeCall& call : rank.runtime_calls) correlations.insert(call.correlation);
  for (const GpuOp& op : rank.gpu_ops) {
    if (correlations.contains(op.correlation)) ++linked;
    if (op.kind == GpuOp::Kind::kernel) {
      streams.insert({op.device, op.stream});
      ++kernels;
      if (rank.names.text(op.name).find("nccl") != std::string_view::npos) {
        ++comm_kernels;
        EXPECT_EQ(classify_kernel(rank.names.text(op.name)), KernelClass::communication)
            << rank.names.text(op.name);
        if (op.collective >= 0) ++comm_with_metadata;
      }
    } else {
      streams.insert({op.device, op.stream});
    }
  }
  expect_count(kernels, facts, "kernels");
  expect_count(rank.gpu_ops.size() - kernels, facts, "memcpy_memset");
  expect_count(streams.size(), facts, "n_streams");
  expect_count(comm_kernels, facts, "nccl_kernels");
  expect_count(comm_with_metadata, facts, "nccl_kernels_with_metadata");
  EXPECT_EQ(std::to_string(linked) + "/" + std::to_string(rank.gpu_ops.size()),
            facts.at("gpu_events_with_correlation"));
  EXPECT_EQ(text_of(rank.rank), facts.at("rank"));
  EXPECT_EQ(text_of(rank.world_size), facts.at("world_size"));
  EXPECT_EQ(rank.devices.empty() ? "" : rank.devices.front().name, facts.at("device"));

  std::uint64_t kept = rank.cpu_ops.size() + rank.runtime_calls.size() + rank.gpu_ops.size() +
                       rank.stream_syncs.size() + rank.allocator_states.size();
  for (const auto& [reason, count] : rank.skipped) kept += count;
  EXPECT_EQ(kept, rank.event_count) << "every event is kept or counted as skipped";
}

TEST(TraceFacts, HoldForEveryFile) {
  SKIP_WITHOUT_DATA();
  std::size_t kineto = 0;
  std::size_t execution_traces = 0;
  std::size_t others = 0;
  for (const Facts& facts : read_facts()) {
    SCOPED_TRACE(facts.at("file"));
    const auto file = *test::measured_data() / "traces" / facts.at("file");
    const std::string& format = facts.at("format");
    const auto detected = detect_trace_format(file);
    if (format == "chrome-json" || format == "chrome-json-list") {
      ASSERT_TRUE(detected.ok());
      const std::string& name = facts.at("file");
      EXPECT_EQ(*detected, name == "bytedance_st/timeline-ST.json.gz"         ? TraceFormat::pipeline_timeline
                           : name == "bytedance_st/ideal-timeline-ST.json.gz" ? TraceFormat::other_json
                                                                              : TraceFormat::kineto);
      const auto rank = read_kineto(file);
      ASSERT_TRUE(rank.ok()) << rank.error().message();
      check_kineto(*rank, facts);
      ++kineto;
    } else if (format == "pytorch-et") {
      ASSERT_TRUE(detected.ok());
      EXPECT_EQ(*detected, TraceFormat::execution_trace);
      const auto trace = read_execution_trace(file);
      ASSERT_TRUE(trace.ok()) << trace.error().message();
      EXPECT_EQ(trace->schema, facts.at("schema"));
      std::size_t nodes = trace->nodes.size();
      for (const auto& [reason, count] : trace->skipped) nodes += count;
      expect_count(nodes, facts, "nodes");
      ++execution_traces;
    } else if (format == "chakra-protobuf") {
      ASSERT_TRUE(detected.ok());
      EXPECT_EQ(*detected, TraceFormat::chakra_protobuf);
      ++others;
    } else if (format == "other json") {
      ASSERT_TRUE(detected.ok());
      EXPECT_EQ(*detected, TraceFormat::other_json);
      ++others;
    } else {
      EXPECT_FALSE(detected.ok());
      ++others;
    }
  }
  EXPECT_GE(kineto, 35U);
  EXPECT_GE(execution_traces, 20U);
  EXPECT_GE(others, 15U);
}

TEST(TraceFacts, DlrmRanksHoldTheCollectivesThatTheReadmeLists) {
  SKIP_WITHOUT_DATA();
  for (int r = 0; r < 8; ++r) {
    SCOPED_TRACE(r);
    const auto folder = *test::measured_data() / "traces" / "dlrm8";
    const auto trace = read_execution_trace(folder / ("et_rank" + std::to_string(r) + ".json.gz"));
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->rank, r);
    ASSERT_EQ(trace->collectives.size(), 13U);
    std::vector<std::int64_t> all_reduces;
    std::size_t all_to_alls = 0;
    std::size_t waits = 0;
    for (const EtCollective& info : trace->collectives) {
      if (info.is_wait) {
        ++waits;
      } else if (info.op == CollectiveOp::all_reduce) {
        all_reduces.push_back(info.elements_in);
      } else if (info.op == CollectiveOp::all_to_all) {
        ++all_to_alls;
      }
    }
    EXPECT_EQ(all_reduces, (std::vector<std::int64_t>{394241, 112, 226960}));
    EXPECT_EQ(all_to_alls, 5U);
    EXPECT_EQ(waits, 5U);
    const EtCollective& first = trace->collectives[2];
    EXPECT_EQ(first.elements_in, 6144);
    EXPECT_EQ(first.dtype, DType::fp32);
    EXPECT_EQ(first.in_split, std::vector<std::int64_t>(8, 768));

    const auto linked =
        read_execution_trace(folder / "linked" / ("et_plus_rank" + std::to_string(r) + ".json.gz"));
    ASSERT_TRUE(linked.ok());
    EXPECT_EQ(linked->nodes.size(), trace->nodes.size());
    const auto rank = read_kineto(folder / ("kineto_rank" + std::to_string(r) + ".json.gz"));
    ASSERT_TRUE(rank.ok());
    std::uint64_t merged = 0;
    for (const auto& [reason, count] : linked->skipped) merged += count;
    EXPECT_GT(merged, 200U);
    EXPECT_LE(merged, rank->gpu_ops.size());
  }
}

// Per thread, nodes by order and CPU ops by order carry the same names, one by one: the two readers fit
// together.
TEST(TraceFacts, DlrmNodesAndOpsJoinByOrder) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "traces" / "dlrm8";
  for (int r = 0; r < 8; ++r) {
    SCOPED_TRACE(r);
    const auto trace = read_execution_trace(folder / ("et_rank" + std::to_string(r) + ".json.gz"));
    const auto rank = read_kineto(folder / ("kineto_rank" + std::to_string(r) + ".json.gz"));
    ASSERT_TRUE(trace.ok() && rank.ok());
    std::multiset<std::vector<std::string>> node_threads;
    std::multiset<std::vector<std::string>> op_threads;
    using Ordered = std::map<std::int64_t, std::string>;
    std::map<std::int32_t, Ordered> nodes;
    for (const EtNode& node : trace->nodes) {
      const std::string_view name = trace->names.text(node.name);
      if (!name.starts_with("[pytorch|")) nodes[node.thread][node.order] = name;
    }
    std::map<std::uint32_t, Ordered> ops;
    for (const CpuOp& op : rank->cpu_ops) {
      if (op.kind != CpuOp::Kind::step) ops[op.thread.index()][op.order] = rank->names.text(op.name);
    }
    const auto names_of = [](const Ordered& ordered) {
      std::vector<std::string> names;
      for (const auto& [order, name] : ordered) names.push_back(name);
      return names;
    };
    for (const auto& [thread, ordered] : nodes) node_threads.insert(names_of(ordered));
    for (const auto& [thread, ordered] : ops) op_threads.insert(names_of(ordered));
    ASSERT_EQ(node_threads.size(), 2U);
    EXPECT_TRUE(node_threads == op_threads);
    EXPECT_EQ(node_threads.begin()->size() + node_threads.rbegin()->size(), 988U + 684U);
  }
}

}  // namespace
}  // namespace stepcast::trace_facts_test
