#include "lab/published_algorithm.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/cost/device_time.h"
#include "stepcast/platform/group_placement.h"
#include "stepcast/predict/untimed_ranks.h"
#include "stepcast/rebuild/traced_operations.h"

#include "lab/published_overheads.h"

namespace stepcast {
namespace {

using Index = std::int32_t;

// Constants of the published code: time added to every kernel, gap between kernels of a stream, time of a childless aten::to
// instead of T4.
constexpr double kKernelOverheadUs = 5, kStreamGapUs = 1, kBareCopyUs = 2;
constexpr std::int64_t kElementBytes = 4;
// Largest number of elements of a tensor, so that the bytes of all ranks together fit 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 44;

// "autograd::engine::evaluate_function: AddmmBackward0" -> "AddmmBackward"
std::string_view function_of(std::string_view name) {
  constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
  if (name.starts_with(kEngine)) name.remove_prefix(kEngine.size());
  return overhead_name(name);
}

bool waits_for_exchange(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kWaits = {
      "All2All_Wait", "All2All_Pooled_Wait", "All2All_ReqBackward", "All2All_Pooled_ReqBackward"};
  return std::ranges::find(kWaits, function_of(name)) != kWaits.end();
}

bool is_pruned(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kPruned = {"SliceBackward", "FusedDropoutBackward",
                                                              "## Distribute emb data ##"};
  return name.starts_with("enumerate(DataLoader)") ||
         std::ranges::find(kPruned, function_of(name)) != kPruned.end();
}

bool same_tensor(const TensorUse& a, const TensorUse& b) {
  return a.tensor == b.tensor && a.storage == b.storage && a.offset == b.offset && a.elements == b.elements &&
         a.element_bytes == b.element_bytes;
}

struct Visit {
  Index node = -1;
  bool label = false;        // only its name is used
  std::vector<Index> below;  // of an operator: the operator and all below it, itself first
};

// Top-level operators and the labels between them, by id.
class Visits {
 public:
  explicit Visits(const ExecutionTrace& trace) : trace_(trace), children_(trace.nodes.size()) {}

  std::vector<Visit> find() {
    std::unordered_map<std::int64_t, Index> by_id;
    for (std::size_t i = 0; i < trace_.nodes.size(); ++i)
      by_id.try_emplace(trace_.nodes[i].id, static_cast<Index>(i));
    std::vector<Index> open;
    for (std::size_t i = trace_.nodes.size(); i-- > 0;) {
      const auto parent = by_id.find(trace_.nodes[i].parent);
      if (parent == by_id.end() || parent->second == static_cast<Index>(i))
        open.push_back(static_cast<Index>(i));
      else
        children_[static_cast<std::size_t>(parent->second)].push_back(static_cast<Index>(i));
    }
    std::vector<Visit> found;
    while (!open.empty()) {
      const Index node = open.back();
      open.pop_back();
      const std::string_view name = name_of(node);
      if (is_pruned(name)) continue;
      const bool label = is_published_label(name) || name.starts_with("[pytorch|");
      found.push_back({node, label, {}});
      const auto& below = children_[static_cast<std::size_t>(node)];
      if (label)
        open.insert(open.end(), below.begin(), below.end());
      else
        collect(node, found.back().below);
    }
    std::ranges::stable_sort(
        found, [&](const Visit& a, const Visit& b) { return node_at(a.node).id < node_at(b.node).id; });
    const auto first = std::ranges::find_if(
        found, [&](const Visit& visit) { return name_of(visit.node).find("## ") != std::string_view::npos; });
    if (first != found.end()) found.erase(found.begin(), first);
    return found;
  }

 private:
  [[nodiscard]] const EtNode& node_at(Index i) const { return trace_.nodes[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::string_view name_of(Index i) const { return trace_.names.text(node_at(i).name); }

  void collect(Index node, std::vector<Index>& below) const {
    std::vector<Index> inside{node};
    while (!inside.empty()) {
      const Index i = inside.back();
      inside.pop_back();
      below.push_back(i);
      const auto& more = children_[static_cast<std::size_t>(i)];
      inside.insert(inside.end(), more.begin(), more.end());
    }
  }

  const ExecutionTrace& trace_;
  std::vector<std::vector<Index>> children_;
};

// A collective of one rank. The transferred bytes are known only after all ranks are read.
struct RankCollective {
  CollectiveOp op = CollectiveOp::unknown;
  std::int64_t elements = 0;
  TaskId task{};
};

class RankBuilder {
 public:
  RankBuilder(RecordedProgram& out, Coverage& coverage, const UntimedRank& rank,
              const HostOverheads& overheads, StepPricer& prices, DeviceTime& device)
      : program_(out.program),
        coverage_(coverage),
        trace_(*rank.trace),
        overheads_(overheads),
        prices_(prices),
        device_(device),
        traced_(traced_operations(trace_)),
        block_(fmt::format("rank {}", rank.rank)) {
    for (const TracedOperation& operation : traced_.operations)
      operations_of_[static_cast<Index>(operation.node)].push_back(&operation.operation);
    cpu_ = block_.add_lane({LaneKind::cpu_thread, "all threads"});
    compute_.lane = block_.add_lane({LaneKind::gpu_stream, "computation"});
    communication_.lane = block_.add_lane({LaneKind::gpu_stream, "communication"});
  }

  Status run(GroupId group) {
    group_ = group;
    bool any = false;
    for (const Visit& visit : Visits{trace_}.find()) {
      if (visit.label) {
        if (waits_for_exchange(name_of(visit.node))) synchronize_streams();
        continue;
      }
      any = true;
      add(visit);
    }
    if (!any) {
      return Error::at(trace_.file, "the nodes")
          .found("no operators")
          .expected("an execution trace of a training step");
    }
    wait_for({compute_.last, communication_.last});
    return Ok{};
  }

  [[nodiscard]] const std::vector<RankCollective>& collectives() const { return collectives_; }
  [[nodiscard]] TaskId step_end() const { return last_cpu_; }
  BlockBuilder& block() { return block_; }
  BlockBuilder take() { return std::move(block_); }

 private:
  struct Stream {
    LaneId lane{};
    TaskId last{};
  };
  struct Kernel {
    const Operation* operation = nullptr;  // null: the collective
    double us = 0;
    EstimateSource source = EstimateSource::analytic;
  };

  [[nodiscard]] const EtNode& node_at(Index i) const { return trace_.nodes[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::string_view name_of(Index i) const { return trace_.names.text(node_at(i).name); }

  [[nodiscard]] double mean(OverheadType type, std::string_view op) const {
    const HostOverhead known = overheads_.time(type, op);
    return known.ground == OverheadTimeSource::own || type == OverheadType::t1 ? known.mean_us : 0;
  }

  TaskId host(OverheadType type, NameId op, StackId stack, double us) {
    last_cpu_ =
        block_.add_task(cpu_,
                        {.kind = type == OverheadType::t4 ? TaskKind::cpu_call : TaskKind::cpu_segment,
                         .name = op,
                         .stack = stack,
                         .work = program_.works.intern(HostWork{.type = type, .op = op})},
                        Microseconds{us});
    coverage_.host_us[static_cast<std::size_t>(EstimateSource::fitted)] += us;
    return last_cpu_;
  }

  // g_cp = g_cm = max of both: the next work of either stream waits for both.
  void synchronize_streams() { synchronized_ = {compute_.last, communication_.last}; }

  // The CPU waits for the ends of `tasks`.
  void wait_for(std::initializer_list<TaskId> tasks) {
    const TaskId back = block_.add_task(
        cpu_, {.kind = TaskKind::sync_return, .work = program_.works.intern(Waiting{})}, Microseconds{});
    for (const TaskId task : tasks)
      if (task.valid())
        block_.add_edge(BlockBuilder::end_of(task), back, Microseconds{},
                        {.origin = EdgeOrigin::synchronization});
    last_cpu_ = back;
  }

  [[nodiscard]] bool reads_last_collective(const Visit& visit) const {
    if (!watched_) return false;
    return std::ranges::any_of(visit.below, [&](Index node) {
      const auto inputs = trace_.inputs(node_at(node));
      return std::ranges::any_of(inputs, [&](const TensorUse& use) { return same_tensor(use, *watched_); });
    });
  }

  [[nodiscard]] const EtCollective* collective_of(const Visit& visit) const {
    for (const Index node : visit.below) {
      const std::int32_t c = node_at(node).collective;
      if (c >= 0 && !trace_.collectives[static_cast<std::size_t>(c)].is_wait)
        return &trace_.collectives[static_cast<std::size_t>(c)];
    }
    return nullptr;
  }

  [[nodiscard]] bool is_skipped(const Visit& visit) const {
    const bool broadcast = std::any_of(visit.below.begin() + 1, visit.below.end(), [&](Index node) {
      return name_of(node).find("broadcast") != std::string_view::npos;
    });
    return broadcast || (visit.below.size() == 1 && name_of(visit.node) == "record_param_comms" &&
                         trace_.inputs(node_at(visit.node)).empty());
  }

  // The tensor that later operators read to wait for this collective.
  [[nodiscard]] std::optional<TensorUse> tensor_of(const Visit& visit, CollectiveOp op) const {
    for (const Index node : visit.below) {
      const std::string_view name = name_of(node);
      const auto in = trace_.inputs(node_at(node)), out = trace_.outputs(node_at(node));
      if (op == CollectiveOp::all_reduce) {
        if (name == "nccl:all_reduce" && !in.empty()) return in.front();
      } else if ((name == "aten::new_empty" || name == "aten::empty") && !out.empty()) {
        return out.front();
      }
    }
    const auto out = trace_.outputs(node_at(visit.node));
    if (name_of(visit.node) == "record_param_comms" && !out.empty()) return out.front();
    return std::nullopt;
  }

  std::vector<Kernel> kernels_of(const Visit& visit, const EtCollective* collective) {
    std::vector<Kernel> kernels;
    for (const Index node : visit.below) {
      const auto operations = operations_of_.find(node);
      if (operations == operations_of_.end()) continue;
      for (const Operation* operation : operations->second) {
        const Estimate all = device_.of(*operation, prices_.kernels().price(*operation));
        const auto n = std::max<std::int64_t>(1, work_of(*operation).kernels);
        for (std::int64_t k = 0; k < n; ++k)
          kernels.push_back({operation, all.time.value() / static_cast<double>(n), all.source});
      }
    }
    if (collective != nullptr) kernels.push_back({});
    return kernels;
  }

  void add(const Visit& visit) {
    if (is_skipped(visit)) return;
    const std::string_view text = name_of(visit.node);
    const NameId name = program_.names.intern(text);
    const StackId stack = program_.stacks.push(StackId{}, name);
    const EtCollective* collective = collective_of(visit);
    if (reads_last_collective(visit) || waits_for_exchange(text) || collective != nullptr) {
      watched_.reset();
      synchronize_streams();
    }
    host(OverheadType::t1, name, stack, mean(OverheadType::t1, {}));
    const OpLaunches* launches = overheads_.launches(overhead_name(text));
    const std::vector<Kernel> kernels = kernels_of(visit, collective);
    const bool bare_copy = text == "aten::to" && visit.below.size() == 1;
    if (launches != nullptr && !launches->calls.empty()) {
      host(OverheadType::t2, name, stack, mean(OverheadType::t2, text));
      const std::size_t n =
          kernels.empty() ? launches->calls.size() : std::min(kernels.size(), launches->calls.size());
      for (std::size_t i = 0; i < n; ++i) {
        const std::string& call = launches->calls[i];
        const double us = bare_copy && !kernels.empty() ? kBareCopyUs : mean(OverheadType::t4, call);
        const TaskId launched = host(OverheadType::t4, program_.names.intern(call), stack, us);
        if (!kernels.empty()) {
          // The collective is the last kernel, for any number of launches.
          const bool joins = collective != nullptr && i + 1 == n;
          add_kernel(joins ? kernels.back() : kernels[i], name, stack, launched, collective, visit);
        }
        if (i + 1 < n) host(OverheadType::t5, name, stack, mean(OverheadType::t5, text));
      }
      host(OverheadType::t3, name, stack, mean(OverheadType::t3, text));
    } else {
      if (!kernels.empty()) name_lost(text, kernels.size());
      host(OverheadType::t5, name, stack, mean(OverheadType::t5, text));
    }
    if (text == "aten::to") wait_for({compute_.last});
    if (collective != nullptr) watched_ = tensor_of(visit, collective->op);
  }

  void add_kernel(const Kernel& kernel, NameId name, StackId stack, TaskId launched,
                  const EtCollective* collective, const Visit& visit) {
    const bool joins = kernel.operation == nullptr;
    TaskInfo info{.kind = joins ? TaskKind::collective : TaskKind::kernel,
                  .kernel_class = joins ? KernelClass::communication : kernel_class_of(*kernel.operation),
                  .name = name,
                  .stack = stack};
    if (!joins) info.work = program_.works.intern(*kernel.operation);
    Stream& stream = joins ? communication_ : compute_;
    const double us = kernel.us + kKernelOverheadUs;
    const TaskId task = block_.add_task(stream.lane, info, Microseconds{us});
    block_.add_edge(BlockBuilder::end_of(launched), task, Microseconds{}, {.origin = EdgeOrigin::launch});
    const auto behind = [&](TaskId before, EdgeOrigin origin) {
      if (before.valid())
        block_.add_edge(BlockBuilder::end_of(before), task, Microseconds{kStreamGapUs}, {.origin = origin});
    };
    behind(stream.last, EdgeOrigin::stream_order);
    if (joins) behind(compute_.last, EdgeOrigin::event);
    // Each stream only once; later kernels come after this one.
    TaskId& other = joins ? synchronized_.compute : synchronized_.communication;
    if (!joins) behind(other, EdgeOrigin::tensor);
    other = TaskId{};
    stream.last = task;
    if (joins) {
      const bool backward = name_of(visit.node).find("Backward") != std::string_view::npos;
      const std::int64_t elements = (backward && collective->elements_out > 0) || collective->elements_in <= 0
                                        ? collective->elements_out
                                        : collective->elements_in;
      collectives_.push_back({collective->op, std::clamp<std::int64_t>(elements, 0, kMostElements), task});
      return;
    }
    coverage_.gpu_us[static_cast<std::size_t>(info.kernel_class)][static_cast<std::size_t>(kernel.source)] +=
        us;
  }

  void name_lost(std::string_view op, std::size_t kernels) {
    const auto found = std::ranges::find(coverage_.unmodelled, op, &Coverage::Unmodelled::name);
    if (found != coverage_.unmodelled.end()) {
      found->tasks += kernels;
      return;
    }
    coverage_.unmodelled.push_back({std::string{op}, KernelClass::other,
                                    "no launches of this operator were seen: its kernels take no time",
                                    kernels, 0});
  }

  struct Synchronized {
    TaskId compute{}, communication{};
  };
  Program& program_;
  Coverage& coverage_;
  const ExecutionTrace& trace_;
  const HostOverheads& overheads_;
  StepPricer& prices_;
  DeviceTime& device_;
  TracedOperations traced_;
  std::unordered_map<Index, std::vector<const Operation*>> operations_of_;
  BlockBuilder block_;
  LaneId cpu_;
  GroupId group_{};
  Stream compute_, communication_;
  Synchronized synchronized_;
  TaskId last_cpu_{};
  std::optional<TensorUse> watched_;
  std::vector<RankCollective> collectives_;
};

// The message size of the i-th collective by the published code: the tensor of an all-reduce; the traffic of the busiest
// rank of an all-to-all, without its own share.
double message_bytes(const std::vector<std::vector<RankCollective>>& of_ranks, std::size_t i) {
  const auto n = static_cast<std::int64_t>(of_ranks.size());
  const RankCollective& first = of_ranks.front()[i];
  if (first.op != CollectiveOp::all_to_all) return static_cast<double>(kElementBytes * first.elements);
  std::int64_t all = 0, busiest = 0;
  const auto chunk = [&](const std::vector<RankCollective>& rank) {
    return kElementBytes * rank[i].elements / n;
  };
  for (const auto& rank : of_ranks) all += chunk(rank);
  for (const auto& rank : of_ranks) busiest = std::max({busiest, all - chunk(rank), (n - 1) * chunk(rank)});
  return static_cast<double>(busiest);
}

}  // namespace

Result<PublishedTraceStep> published_step(std::span<const UntimedRank> ranks, const HostOverheads& overheads,
                                          StepPricer& prices) {
  if (overheads.time(OverheadType::t1, {}).ground == OverheadTimeSource::none) {
    return Error{"no gap between two operators (T1) is known"}.advice(
        "give profiler traces, or those of another job on such a host with --overheads-from");
  }
  STEPCAST_ASSIGN(const RankGroup all, all_ranks(ranks));
  PublishedTraceStep out;
  DeviceTime device{prices.kernels().model(), prices.platform().device};
  const GroupId group = out.recorded.program.add_group(all);
  std::vector<RankBuilder> builders;
  builders.reserve(ranks.size());
  std::vector<std::vector<RankCollective>> collectives;
  std::size_t most = 0;
  bool agree = true;
  for (const UntimedRank& rank : ranks) {
    RankBuilder& builder = builders.emplace_back(out.recorded, out.coverage, rank, overheads, prices, device);
    STEPCAST_TRY(builder.run(group));
    collectives.push_back(builder.collectives());
    agree = agree && collectives.back().size() == collectives.front().size();
    most = std::max(most, collectives.back().size());
  }
  const RankSpan members{all.ranks};
  const GroupPlacement place =
      place_ranks(members, std::max<std::int64_t>(1, prices.platform().node.gpus_per_node), {&members, 1});
  std::vector<UntimedBlock> blocks;
  for (std::size_t r = 0; r < builders.size(); ++r) {
    UntimedBlock of_rank{BlockBuilder{""}, {}, builders[r].step_end()};
    for (std::size_t i = 0; i < collectives[r].size(); ++i) {
      const RankCollective& c = collectives[r][i];
      const double bytes =
          agree ? message_bytes(collectives, i) : static_cast<double>(kElementBytes * c.elements);
      double us = kKernelOverheadUs;
      if (place.n_ranks > 1 && bytes > 0) {
        STEPCAST_ASSIGN(const Estimate once, prices.price(c.op, Bytes{bytes}, place));
        us += once.time.value();
        out.coverage.gpu_us[static_cast<std::size_t>(KernelClass::communication)]
                           [static_cast<std::size_t>(once.source)] += us;
      }
      builders[r].block().set_duration(c.task, Microseconds{us});
      of_rank.collectives.push_back(
          {c.op, out.recorded.program.names.intern(to_string(c.op)), bytes, c.task});
    }
    of_rank.block = builders[r].take();
    blocks.push_back(std::move(of_rank));
  }
  STEPCAST_TRY(join_untimed(ranks, std::move(blocks), out.recorded));
  const auto n = static_cast<double>(ranks.size());
  for (SourceTimes& of_class : out.coverage.gpu_us)
    for (double& us : of_class) us /= n;
  for (double& us : out.coverage.host_us) us /= n;
  return out;
}

}  // namespace stepcast
