// A Program of the shape of a recorded recommendation-model step: 8 rank classes of 3,000 to 4,500 tasks on 2
// CPU threads and 4 streams, 1.5 to 2 edges a task, 8 collectives that join all ranks; each class stands for
// many ranks.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast::bench {

template <class T>
T value_or_exit(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

inline std::vector<Lane> recorded_lanes() {
  return {{LaneKind::cpu_thread, "main thread"},   {LaneKind::cpu_thread, "backward thread"},
          {LaneKind::gpu_stream, "compute"},       {LaneKind::gpu_stream, "communication"},
          {LaneKind::gpu_stream, "memory copies"}, {LaneKind::gpu_stream, "embedding"}};
}

// About half the tasks run on CPU threads: a segment, then a launch. Every launched kernel waits for its
// launch, for its stream and often for a kernel of another stream; collectives come in equal distances, and
// the compute stream waits for each some kernels later.
inline Block recorded_block(const std::string& name, std::uint32_t launches, std::uint32_t collectives,
                            std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto time = [&](std::uint64_t most) {
    return Microseconds{static_cast<double>(below(most * 16)) / 16.0};
  };
  BlockBuilder b{name};
  for (Lane& lane : recorded_lanes()) b.add_lane(std::move(lane));
  std::array<TaskId, 6> last{};
  std::vector<TaskId> waits;  // kernels that the compute stream still has to wait for
  for (std::uint32_t i = 0; i < launches; ++i) {
    const LaneId thread{i * 2 < launches ? 0 : 1};
    const TaskId segment = b.add_task(thread, {.kind = TaskKind::cpu_segment}, time(8));
    if (last[1 - thread.index()].valid() && below(3) > 0)
      b.add_edge(b.end_of(last[1 - thread.index()]), segment, time(2), {.origin = EdgeOrigin::tensor});
    const TaskId launch = b.add_task(thread, {.kind = TaskKind::cpu_call}, time(4));
    b.add_edge(b.end_of(segment), launch, Microseconds{0}, {.origin = EdgeOrigin::tensor});
    last[thread.index()] = launch;

    const bool joins = collectives > 0 && i % (launches / collectives) == launches / collectives / 2 &&
                       i / (launches / collectives) < collectives;
    const std::uint64_t pick = below(10);
    const LaneId stream{joins ? 3 : pick < 7 ? 2 : pick < 9 ? 5 : 4};
    const TaskKind kind = joins                 ? TaskKind::collective
                          : stream.index() == 4 ? TaskKind::memcpy
                                                : TaskKind::kernel;
    const TaskId kernel = b.add_task(stream, {.kind = kind}, time(30));
    b.add_edge(b.start_of(launch), kernel, time(6), {.origin = EdgeOrigin::launch});
    if (last[stream.index()].valid()) {
      b.add_edge(b.end_of(last[stream.index()]), kernel, Microseconds{1},
                 {.origin = EdgeOrigin::stream_order});
    }
    for (const std::size_t other : {2u, 4u, 5u}) {
      if (other == stream.index() || !last[other].valid() || below(3) == 0) continue;
      b.add_edge(b.end_of(last[other]), kernel, Microseconds{0}, {.origin = EdgeOrigin::device_busy});
    }
    if (stream.index() == 2 && !waits.empty() && below(20) == 0) {
      b.add_edge(b.end_of(waits.back()), kernel, Microseconds{0.5}, {.origin = EdgeOrigin::event});
      waits.pop_back();
    }
    last[stream.index()] = kernel;
    if (joins) waits.push_back(kernel);
  }
  return value_or_exit(std::move(b).finish());
}

inline Program replicated_program(std::uint32_t ranks, std::uint32_t collective_count = 8) {
  constexpr std::uint32_t kClasses = 8;
  Program program;
  std::vector<Collective> collectives(collective_count);
  for (std::uint32_t c = 0; c < kClasses; ++c) {
    const std::string name = "rank " + std::to_string(c);
    const BlockId block = program.add_block(recorded_block(name, 1000 + c * 70, collective_count, 1 + c));
    const RankClassId rank_class = program.add_rank_class({.name = name,
                                                           .multiplicity = ranks / kClasses,
                                                           .lanes = recorded_lanes(),
                                                           .recorded_rank = static_cast<int>(c)});
    const InstanceId instance = program.add_instance(rank_class, {.block = block});
    const auto tasks = program.block(block).collective_tasks();
    for (std::uint32_t k = 0; k < collective_count; ++k)
      collectives[k].members.push_back({rank_class, instance, tasks[k]});
  }
  for (Collective& collective : collectives) program.add_collective(std::move(collective));
  return program;
}

}  // namespace stepcast::bench
