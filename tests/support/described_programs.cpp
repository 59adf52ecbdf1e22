#include "tests/support/described_programs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sketch.h"

namespace stepcast::fixtures {
namespace {

// Streams of a pipeline stage.
enum : std::uint32_t {
  kCompute,
  kReceiveActivation,
  kSendActivation,
  kReceiveGradient,
  kSendGradient,
  kStageStreams
};

// One forward or backward of one micro-batch: receive, compute, send.
struct StageBlock {
  BlockId block{};
  TaskId receive{}, send{};  // not valid where there is none
};

StageBlock stage_block(ProgramSketch& sketch, const PipelineShape& shape, bool forward, bool receives,
                       bool sends) {
  BlockSketch b{forward ? "forward" : "backward", kStageStreams};
  StageBlock result;
  if (receives) {
    result.receive = b.join(forward ? kReceiveActivation : kReceiveGradient, shape.transfer_us);
  }
  const TaskId compute = b.work(kCompute, forward ? shape.forward_us : shape.backward_us);
  if (receives) b.edge(b.end(result.receive), compute);
  if (sends) {
    // An eager sender is free at once; a meeting takes both sides as long.
    const double busy_us = shape.transfer == Transfer::meeting ? shape.transfer_us : 0;
    result.send = b.join(forward ? kSendActivation : kSendGradient, busy_us);
    b.edge(b.end(compute), result.send);
  }
  result.block = sketch.block(b);
  return result;
}

}  // namespace

Program pipeline_1f1b(const PipelineShape& shape) {
  const std::uint32_t p = shape.stages, m = shape.micro_batches;
  ProgramSketch sketch;
  struct Message {
    CollectiveMember send, receive;
  };
  // [boundary between stage s and s + 1][micro-batch]
  std::vector<std::vector<Message>> activations(p, std::vector<Message>(m)), gradients = activations;

  for (std::uint32_t s = 0; s < p; ++s) {
    const bool first = s == 0, last = s + 1 == p;
    const StageBlock forward = stage_block(sketch, shape, true, !first, !last);
    const StageBlock backward = stage_block(sketch, shape, false, !last, !first);
    const RankClassId stage = sketch.ranks(shape.replicas, kStageStreams);
    const auto add_forward = [&](std::uint32_t i) {
      const InstanceId instance = sketch.program.add_instance(stage, {.block = forward.block});
      if (!first) activations[s - 1][i].receive = {stage, instance, forward.receive};
      if (!last) activations[s][i].send = {stage, instance, forward.send};
    };
    const auto add_backward = [&](std::uint32_t i) {
      const InstanceId instance = sketch.program.add_instance(stage, {.block = backward.block});
      if (!last) gradients[s][i].receive = {stage, instance, backward.receive};
      if (!first) gradients[s - 1][i].send = {stage, instance, backward.send};
    };
    const std::uint32_t ahead = std::min(p - 1 - s, m);
    for (std::uint32_t i = 0; i < ahead; ++i) add_forward(i);
    for (std::uint32_t i = ahead; i < m; ++i) {
      add_forward(i);
      add_backward(i - ahead);
    }
    for (std::uint32_t i = m - ahead; i < m; ++i) add_backward(i);
  }

  const CollectiveKind kind =
      shape.transfer == Transfer::meeting ? CollectiveKind::all : CollectiveKind::rooted_from;
  for (const auto& boundaries : {activations, gradients}) {
    for (std::uint32_t s = 0; s + 1 < p; ++s) {
      for (const Message& message : boundaries[s]) {
        sketch.join(kind, {message.send, message.receive}, 0, CollectiveGrouping::aligned);
      }
    }
  }
  return std::move(sketch.program);
}

Program sharded_stack(const ShardedStackShape& shape) {
  const std::uint32_t layers = shape.layers;
  const bool joins = shape.joined_ranks > 0;
  constexpr std::uint32_t kWork = 0, kGather = 1;
  ProgramSketch sketch;
  const auto gather = [&](BlockSketch& b) {
    return joins ? b.join(kGather, shape.gather_us) : b.work(kGather, shape.gather_us);
  };

  BlockSketch begin{"first gather", 2}, middle{"layer", 2}, end{"last layer", 2};
  const TaskId first_gather = gather(begin);
  begin.out(begin.end(first_gather));
  const InPortId parameters = middle.in();
  const TaskId work = middle.work(kWork, shape.compute_us);
  const TaskId next_gather = gather(middle);
  middle.edge(middle.arrival(parameters), work)
      .edge(middle.start(work), next_gather)
      .out(middle.end(next_gather));
  const InPortId last_parameters = end.in();
  end.edge(end.arrival(last_parameters), end.work(kWork, shape.compute_us));

  const BlockId b_begin = sketch.block(begin), b_middle = sketch.block(middle), b_end = sketch.block(end);
  RankClass rank_class;
  rank_class.name = "rank";
  rank_class.multiplicity = std::max(shape.joined_ranks, 1u);
  rank_class.lanes = streams(2);
  rank_class.slot_count = 1;
  rank_class.instances.push_back({.block = b_begin, .out_slots = {0}});
  const BlockInstance layer{.block = b_middle, .in_slots = {0}, .out_slots = {0}};
  rank_class.instances.insert(rank_class.instances.end(), layers - 1, layer);
  rank_class.instances.push_back({.block = b_end, .in_slots = {0}});
  const RankClassId rank = sketch.program.add_rank_class(std::move(rank_class));
  for (std::uint32_t i = 0; joins && i < layers; ++i) {
    sketch.join(CollectiveKind::all, {{rank, InstanceId{i}, i == 0 ? first_gather : next_gather}});
  }
  return std::move(sketch.program);
}

}  // namespace stepcast::fixtures
