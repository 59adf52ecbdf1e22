#include "stepcast/retrace/added_recomputation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/program/stack_fold.h"
#include "stepcast/retrace/detail/block_edit.h"

namespace stepcast {
namespace {

using detail::BlockEdit;
using detail::kNoTask;

// Repetitions that cover a smaller share of the GPU time of the forward pass are not layers. Assumed.
constexpr double kLeastOfForward = 0.3;
// Limits of the search, in operators: of a forward pass and of a block.
constexpr std::size_t kMostOperators = 40'000, kLongestBlock = 4'000;

// An outermost forward operator with an autograd sequence number.
struct ForwardOperator {
  std::int64_t sequence = -1;
  std::uint32_t first_task = kNoTask, last_task = kNoTask;  // on the thread
  std::vector<std::uint32_t> kernels;                       // GPU work launched in it
  double gpu_us = 0;
  std::uint32_t kind = 0;  // equal for operators with equal name and GPU work
  std::string_view name;
  bool fused_attention = false;
};

// A block of layers of one rank: operators [first, end).
struct LayerBlock {
  std::size_t first = 0, end = 0;    // operators
  std::uint32_t backward = kNoTask;  // first task of its backward
};

// The forward operators of one rank in order.
struct ForwardPass {
  std::vector<ForwardOperator> operators;
  std::map<std::int64_t, std::uint32_t> backward_of;  // sequence number -> first task of its backward
  std::uint16_t lane = 0;                             // the thread of the forward
};

// Finds the forward pass of a rank class by the autograd sequence numbers of its operators.
class Finder {
 public:
  Finder(const RecordedProgram& recorded, std::size_t c)
      : recorded_(recorded),
        program_(recorded.program),
        block_(program_.block(program_.rank_class(RankClassId{c}).instances.front().block)) {}

  // Empty if forward and backward share no sequence numbers. The thread with the most forward operators is the forward thread.
  ForwardPass find() {
    ForwardPass pass;
    std::map<std::uint16_t, std::size_t> operators_of_lane;
    const std::uint32_t n = block_.task_count();
    std::vector<Frame> frame(n);
    for (std::uint32_t t = 0; t < n; ++t) {
      frame[t] = frame_of(block_.tasks()[t].stack);
      if (!on_cpu(t) || !frame[t].outermost.valid()) continue;
      if (frame[t].backward) {
        pass.backward_of.emplace(frame[t].sequence, t);
      } else {
        ++operators_of_lane[block_.lane_codes()[t]];
      }
    }
    if (operators_of_lane.empty() || pass.backward_of.empty()) return pass;
    pass.lane = std::max_element(operators_of_lane.begin(), operators_of_lane.end(), [](auto& a, auto& b) {
                  return a.second < b.second;
                })->first;
    std::unordered_map<std::uint32_t, std::size_t> place;  // StackId -> operator
    for (std::uint32_t t = 0; t < n; ++t) {
      const Frame& f = frame[t];
      if (block_.lane_codes()[t] != pass.lane || !f.outermost.valid() || f.backward) continue;
      const auto [at, fresh] = place.try_emplace(f.outermost.index(), pass.operators.size());
      if (fresh) pass.operators.push_back({.sequence = f.sequence, .first_task = t});
      pass.operators[at->second].last_task = t;
    }
    for (std::uint32_t t = 0; t < n; ++t) {
      if (on_cpu(t) || !frame[t].outermost.valid()) continue;
      if (const auto at = place.find(frame[t].outermost.index()); at != place.end()) {
        pass.operators[at->second].kernels.push_back(t);
        pass.operators[at->second].gpu_us += block_.duration_us()[t];
      }
    }
    // Operators after the last one with a backward are losses that are only read, and the optimizer.
    while (!pass.operators.empty() && !pass.backward_of.contains(pass.operators.back().sequence))
      pass.operators.pop_back();
    name_kinds(pass);
    return pass;
  }

 private:
  // The operator that contains a task.
  struct Frame {
    StackId outermost;  // outermost operator with a sequence number
    std::int64_t sequence = -1;
    bool backward = false;
  };

  bool on_cpu(std::uint32_t t) const {
    return block_.lanes()[block_.lane_codes()[t]].kind == LaneKind::cpu_thread;
  }

  Frame frame_of(StackId stack) {
    return frames_.of(stack, [&](Frame frame, StackId inner) {
      const std::int64_t sequence = inner.index() < recorded_.sequence_of_stack.size()
                                        ? recorded_.sequence_of_stack[inner.index()]
                                        : -1;
      if (!frame.outermost.valid() && sequence >= 0) {
        const std::string_view name = program_.names.text(program_.stacks.name(inner));
        frame = {inner, sequence, name.starts_with("autograd::engine::evaluate_function")};
      }
      return frame;
    });
  }

  // Numbers kinds of operators by name and GPU work; kernels without known work count by kernel name.
  void name_kinds(ForwardPass& pass) {
    using Kind = std::pair<std::uint32_t, std::vector<std::pair<bool, std::uint32_t>>>;
    std::map<Kind, std::uint32_t> kinds;
    for (ForwardOperator& op : pass.operators) {
      const NameId name = program_.stacks.name(frame_of(block_.tasks()[op.first_task].stack).outermost);
      op.name = program_.names.text(name);
      op.fused_attention = op.name.find("scaled_dot_product") != std::string_view::npos ||
                           std::any_of(op.kernels.begin(), op.kernels.end(), [&](std::uint32_t t) {
                             return block_.tasks()[t].kernel_class == KernelClass::attention;
                           });
      Kind kind{name.index(), {}};
      for (const std::uint32_t t : op.kernels) {
        const TaskInfo& task = block_.tasks()[t];
        kind.second.emplace_back(task.work.valid(),
                                 task.work.valid() ? task.work.index() : task.name.index());
      }
      op.kind = kinds.try_emplace(std::move(kind), static_cast<std::uint32_t>(kinds.size())).first->second;
    }
  }

  const RecordedProgram& recorded_;
  const Program& program_;
  const Block& block_;
  StackFold<Frame> frames_{program_.stacks};
};

// `times` repetitions of `length` operators, from operator `first` on.
struct Repetition {
  std::size_t first = 0, length = 0, times = 0;
  double covered_us = 0;
};

// The consecutive repetitions of equal blocks with the most GPU time; empty if they cover less than kLeastOfForward.
std::optional<Repetition> repeated_blocks(std::span<const ForwardOperator> operators) {
  const std::size_t n = operators.size();
  if (n < 2 || n > kMostOperators) return std::nullopt;
  std::vector<double> until(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) until[i + 1] = until[i] + operators[i].gpu_us;
  Repetition best;
  for (std::size_t length = 1; length <= std::min(n / 2, kLongestBlock); ++length) {
    std::size_t equal = 0;  // consecutive operators equal to those `length` later
    for (std::size_t i = 0; i + length <= n; ++i) {
      if (i + length < n && operators[i].kind == operators[i + length].kind) {
        ++equal;
        continue;
      }
      const std::size_t first = i - equal, times = equal / length + 1;
      equal = 0;
      if (times < 2) continue;
      const double covered = until[first + times * length] - until[first];
      // A slightly higher coverage is not a better block: twice the same block may also cover an odd one at the end.
      constexpr double kClearlyMore = 1.02;
      if (covered > best.covered_us * kClearlyMore) best = {first, length, times, covered};
    }
  }
  if (best.times == 0 || best.covered_us < kLeastOfForward * until[n]) return std::nullopt;
  return best;
}

// The cores of attention as operator ranges [first, end).
std::vector<std::pair<std::size_t, std::size_t>> attention_cores(std::span<const ForwardOperator> operators) {
  // Most operators between a GEMM and the softmax: scaling, masks, dropout. Assumed.
  constexpr std::size_t kMostBetween = 8;
  const auto has = [&](std::size_t i, std::string_view part) {
    return operators[i].name.find(part) != std::string_view::npos;
  };
  // Batched GEMMs, as for scores and values; layers use `linear`, `addmm` or `mm`.
  const auto is_product = [&](std::size_t i) {
    return has(i, "bmm") || has(i, "matmul") || has(i, "einsum");
  };
  std::vector<std::pair<std::size_t, std::size_t>> cores;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (operators[i].fused_attention) {
      cores.emplace_back(i, i + 1);
      continue;
    }
    if (!has(i, "softmax") || has(i, "log_softmax")) continue;
    std::size_t first = i, last = i;
    while (first > 0 && i - first < kMostBetween && !is_product(first)) --first;
    while (last + 1 < operators.size() && last - i < kMostBetween && !is_product(last)) ++last;
    const std::size_t free_from = cores.empty() ? 0 : cores.back().second;
    if (is_product(first) && is_product(last) && first >= free_from) cores.emplace_back(first, last + 1);
  }
  return cores;
}

// Ends of the forward passes as operator indices. Each micro-batch has a forward pass, followed by its backward, so a
// pass ends where a backward task starts between two operators.
std::vector<std::size_t> ends_of_passes(const ForwardPass& pass, const std::vector<Interval>& measured) {
  std::vector<double> backward_us;
  for (const auto& [sequence, task] : pass.backward_of) backward_us.push_back(measured[task].start_us);
  std::sort(backward_us.begin(), backward_us.end());
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < pass.operators.size(); ++i) {
    const double before = measured[pass.operators[i - 1].first_task].start_us,
                 now = measured[pass.operators[i].first_task].start_us;
    const auto between = std::lower_bound(backward_us.begin(), backward_us.end(), before);
    if (between != backward_us.end() && *between < now) ends.push_back(i);
  }
  ends.push_back(pass.operators.size());
  return ends;
}

// Copies the tasks of forward blocks into the edit of one rank class.
class Copying {
 public:
  Copying(const RecordedProgram& recorded, std::size_t c, BlockEdit& edit)
      : block_(recorded.program.block(recorded.program.rank_class(RankClassId{c}).instances.front().block)),
        edit_(edit) {}

  // Repeats the tasks of a block before its backward. Returns recorded task -> copy.
  std::map<std::uint32_t, std::uint32_t> copy(const ForwardPass& pass, const LayerBlock& layers) {
    std::map<std::uint32_t, std::uint32_t> copy_of;
    const double at_us = edit_.task(layers.backward).measured.start_us;
    const std::uint32_t first = pass.operators[layers.first].first_task,
                        last = pass.operators[layers.end - 1].last_task;
    for (std::uint32_t t = first; t <= last; ++t) {
      if (block_.lane_codes()[t] == pass.lane)
        copy_of[t] = edit_.insert_before(layers.backward, edit_.task(t));
    }
    // GPU work in order of launch. `before`: per stream the last task launched before the backward.
    std::vector<std::uint32_t> launched;
    std::map<std::uint16_t, std::uint32_t> before;
    for (std::uint32_t t = 0; t < block_.task_count(); ++t) {
      if (is_launched_from(t, copy_of)) launched.push_back(t);
    }
    for (std::uint16_t lane = 0; lane < block_.lanes().size(); ++lane)
      before[lane] = edit_.last_launched(lane, at_us);
    std::map<std::uint32_t, std::uint32_t> gpu_copy;
    for (const std::uint32_t t : launched)
      gpu_copy[t] = edit_.insert_launched(edit_.task(t).lane, at_us, edit_.task(t));
    copy_of.insert(gpu_copy.begin(), gpu_copy.end());
    for (const auto& [t, copied] : copy_of) {
      for (std::uint32_t e = block_.first_edge()[t]; e < block_.first_edge()[t + 1]; ++e) {
        const detail::EditedEdge edge = edit_.edges()[e];
        if (edge.from_port) continue;
        if (const auto from = copy_of.find(edge.from); from != copy_of.end()) {
          edit_.connect(from->second, copied, edge.delay_us, edge.info, edge.from_start);
        } else if (on_gpu(edge.from) && before[edit_.task(edge.from).lane] != kNoTask) {
          edit_.connect(before[edit_.task(edge.from).lane], copied, edge.delay_us, edge.info,
                        edge.from_start);
        }
      }
    }
    return copy_of;
  }

 private:
  bool on_gpu(std::uint32_t t) const {
    return block_.lanes()[block_.lane_codes()[t]].kind == LaneKind::gpu_stream;
  }
  // True for GPU work launched by one of `calls`.
  bool is_launched_from(std::uint32_t t, const std::map<std::uint32_t, std::uint32_t>& calls) const {
    if (!on_gpu(t)) return false;
    for (std::uint32_t e = block_.first_edge()[t]; e < block_.first_edge()[t + 1]; ++e) {
      const detail::EditedEdge& edge = edit_.edges()[e];
      if (!edge.from_port && edge.info.origin == EdgeOrigin::launch && calls.contains(edge.from)) return true;
    }
    return false;
  }

  const Block& block_;
  BlockEdit& edit_;
};

// The reason why nothing can be recomputed, with advice.
Error no_blocks(const RecordedProgram& recorded, std::size_t c, const ForwardPass& pass,
                RecomputedPart what) {
  if (pass.operators.empty()) {
    return Error{"no block of layers can be recomputed: the traces do not join forward and backward"}
        .found(fmt::format("no operator of rank {} shares its autograd sequence number with a backward",
                           recorded.facts[c].rank))
        .advice("give the profiler traces of a training step by PyTorch 1.8 or later");
  }
  if (what == RecomputedPart::selective) {
    return Error{"no attention in the forward pass that could be recomputed"}
        .found(fmt::format("{} operators of rank {}", pass.operators.size(), recorded.facts[c].rank))
        .expected("fused attention, or a batched GEMM, a softmax and a batched GEMM")
        .advice("ask for whole layers: --recompute full");
  }
  return Error{"no block of layers repeats in the forward pass, so none can be recomputed"}
      .found(fmt::format("{} operators of rank {}", pass.operators.size(), recorded.facts[c].rank))
      .expected("consecutive layers that do the same work");
}

// Collectives inside recomputed blocks. Each runs a second time with the copies of its members.
class RepeatedCollectives {
 public:
  explicit RepeatedCollectives(const Program& program) : program_(program) {
    const std::span<const Collective> collectives = program.collectives();
    for (std::size_t i = 0; i < collectives.size(); ++i) {
      for (const CollectiveMember& m : collectives[i].members)
        collective_of_[{m.rank_class.index(), m.task.index()}] = i;
    }
  }

  // Registers the copy of a task of rank class `c`; ignored unless the task belongs to a collective.
  void add(std::size_t c, std::uint32_t task, std::uint32_t copy) {
    const auto known = collective_of_.find({c, task});
    if (known == collective_of_.end()) return;
    const Collective& as = program_.collectives()[known->second];
    Repeated& repeated = added_[known->second];
    if (repeated.collective.tasks.empty()) {
      repeated.collective.collective = as;
      repeated.collective.tasks.resize(as.members.size(), kNoTask);
    }
    for (std::size_t m = 0; m < as.members.size(); ++m) {
      if (as.members[m].rank_class.index() != c || as.members[m].task.index() != task) continue;
      repeated.collective.tasks[m] = copy;
      ++repeated.joined;
    }
  }

  // The copies as new collectives. Error: a collective that only some of its ranks repeat.
  Result<std::vector<detail::NewCollective>> finish() {
    std::vector<detail::NewCollective> all;
    for (auto& [i, repeated] : added_) {
      if (repeated.joined != repeated.collective.tasks.size()) {
        return Error{"a collective is in a block of layers on only some of its ranks"}.found(
            fmt::format("{}", program_.names.text(repeated.collective.collective.name)));
      }
      all.push_back(std::move(repeated.collective));
    }
    return all;
  }

 private:
  struct Repeated {
    detail::NewCollective collective;
    std::size_t joined = 0;  // members found so far
  };
  const Program& program_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> collective_of_;  // [class, task]
  // [recorded collective] its copy; one block has it, which runs twice.
  std::map<std::size_t, Repeated> added_;
};

// All blocks of layers of a rank, or its cores of attention, without their backward.
std::vector<LayerBlock> layers_of(const ForwardPass& pass, const std::vector<Interval>& measured,
                                  RecomputedPart what) {
  std::vector<LayerBlock> layers;
  if (what == RecomputedPart::selective) {
    for (const auto& [first, end] : attention_cores(pass.operators)) layers.push_back({first, end, kNoTask});
    return layers;
  }
  std::size_t begin = 0;
  for (const std::size_t end : ends_of_passes(pass, measured)) {
    const std::optional<Repetition> found =
        repeated_blocks(std::span{pass.operators}.subspan(begin, end - begin));
    for (std::size_t i = 0; found && i < found->times; ++i) {
      const std::size_t first = begin + found->first + i * found->length;
      layers.push_back({first, first + found->length, kNoTask});
    }
    begin = end;
  }
  return layers;
}

// Sequence numbers of a block. An operator without a backward has the number of the next operator with one.
SequenceRange range_of(const ForwardPass& pass, const LayerBlock& layers) {
  return {pass.operators[layers.first].sequence, layers.end < pass.operators.size()
                                                     ? pass.operators[layers.end].sequence
                                                     : pass.operators[layers.end - 1].sequence + 1};
}

// The first backward task of these operators; kNoTask: no backward needs their activations.
std::uint32_t backward_of(const ForwardPass& pass, SequenceRange range,
                          const std::vector<Interval>& measured) {
  std::uint32_t first = kNoTask;
  for (auto at = pass.backward_of.lower_bound(range.first);
       at != pass.backward_of.end() && at->first < range.end; ++at) {
    if (first == kNoTask || measured[at->second].start_us < measured[first].start_us) first = at->second;
  }
  return first;
}

// Adds recomputation rank by rank and collects the new blocks and collectives.
class Recomputing {
 public:
  Recomputing(const RecordedProgram& recorded, RecomputedPart what)
      : recorded_(recorded), what_(what), collectives_(recorded.program) {}

  // Copies all blocks of rank class `c`. Errors: nothing to recompute, another number of blocks than on the first rank.
  Status add_rank(std::size_t c) {
    const std::vector<Interval>& measured = recorded_.measured[c];
    const ForwardPass pass = Finder{recorded_, c}.find();
    std::vector<LayerBlock> all_layers = layers_of(pass, measured, what_);
    if (all_layers.empty()) return no_blocks(recorded_, c, pass, what_);
    length_ = all_layers.back().end - all_layers.back().first;
    for (const ForwardOperator& op : pass.operators) forward_us_ += op.gpu_us;
    const Block& block =
        recorded_.program.block(recorded_.program.rank_class(RankClassId{c}).instances.front().block);
    BlockEdit edit{block, measured};
    std::vector<SequenceRange>& ranges = ranges_.emplace_back();
    for (LayerBlock& layers : all_layers) {
      const SequenceRange range = range_of(pass, layers);
      layers.backward = backward_of(pass, range, measured);
      if (layers.backward == kNoTask) continue;
      ranges.push_back(range);
      for (const auto& [task, copy] : Copying{recorded_, c, edit}.copy(pass, layers)) {
        if (block.lanes()[block.lane_codes()[task]].kind == LaneKind::gpu_stream)
          again_us_ += block.duration_us()[task];
        collectives_.add(c, task, copy);
      }
    }
    if (ranges.size() != ranges_.front().size()) {
      return Error{"ranks repeat different blocks of layers"}.found(
          fmt::format("{} on rank {} and {} on rank {}", ranges_.front().size(), recorded_.facts[0].rank,
                      ranges.size(), recorded_.facts[c].rank));
    }
    STEPCAST_ASSIGN(detail::EditedBlock edited, std::move(edit).finish());
    blocks_.push_back(std::move(edited));
    return Ok{};
  }

  [[nodiscard]] std::string note() const {
    return fmt::format(
        "{} {} of {} operators repeat their forward before their backward: {:.0f} % of the forward's GPU "
        "time",
        ranges_.empty() ? 0 : ranges_.front().size(),
        what_ == RecomputedPart::selective ? "cores of attention" : "blocks", length_,
        forward_us_ > 0 ? 100 * again_us_ / forward_us_ : 0);
  }
  Result<std::vector<detail::NewCollective>> collectives() { return collectives_.finish(); }
  [[nodiscard]] std::vector<detail::EditedBlock>& blocks() { return blocks_; }
  [[nodiscard]] std::vector<std::vector<SequenceRange>>& ranges() { return ranges_; }

 private:
  const RecordedProgram& recorded_;
  RecomputedPart what_;
  RepeatedCollectives collectives_;
  std::vector<detail::EditedBlock> blocks_;         // [rank class]
  std::vector<std::vector<SequenceRange>> ranges_;  // [rank class]
  double again_us_ = 0, forward_us_ = 0;
  std::size_t length_ = 0;  // length of a block in operators
};

}  // namespace

std::string_view to_string(RecomputedPart what) {
  switch (what) {
    case RecomputedPart::none: return "none";
    case RecomputedPart::selective: return "selective";
    case RecomputedPart::full: break;
  }
  return "full";
}

Result<AddedRecomputation> with_recomputation(RecordedProgram recorded, RecomputedPart what) {
  Recomputing again{recorded, what};
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) STEPCAST_TRY(again.add_rank(c));
  STEPCAST_ASSIGN(std::vector<detail::NewCollective> collectives, again.collectives());
  AddedRecomputation result{.note = again.note()};
  result.blocks = std::move(again.ranges());
  STEPCAST_ASSIGN(result.program, detail::with_blocks(std::move(recorded), std::move(again.blocks()),
                                                      std::move(collectives)));
  return result;
}

}  // namespace stepcast
