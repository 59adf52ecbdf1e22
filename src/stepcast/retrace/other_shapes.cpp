#include "stepcast/retrace/other_shapes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/predict/replay.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {
namespace {

// Steps with a smaller share of changed work have the same shapes: lookups and copies vary slightly. Assumed
// (docs/constants.md).
constexpr double kSameShapes = 0.01;
// Most pairs of pieces that are compared in a differing section of a stream; longer sections are not paired.
constexpr std::size_t kMostPairs = std::size_t{1} << 24U;

// A GPU task and its key for pairing.
struct Piece {
  std::uint32_t task = 0;
  std::tuple<TaskKind, KernelClass, std::string_view> what;  // with the operator that launched it
};
using Pieces = std::vector<Piece>;

// GPU tasks of the step by recorded stream number, in stream order. Work left over from the previous step is excluded.
std::map<std::int64_t, Pieces> pieces_by_stream(const Program& program, const Block& block) {
  const std::vector<bool> left_over = left_over_tasks(block);
  std::map<std::int64_t, Pieces> streams;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const Lane& lane = block.lanes()[block.lane_codes()[t]];
    if (lane.kind != LaneKind::gpu_stream || left_over[t]) continue;
    const TaskInfo& task = block.tasks()[t];
    const std::string_view op =
        task.stack.valid() ? program.names.text(program.stacks.name(task.stack)) : std::string_view{};
    streams[lane.recorded].push_back({t, {task.kind, task.kernel_class, op}});
  }
  return streams;
}

// Pairs graph nodes by the node numbers in the trace, because branches of a graph may start in another order each time.
void pair_nodes(const Pieces& a, const Pieces& b, std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  std::vector<bool> paired_a(a.size(), false), paired_b(b.size(), false);
  for (const auto& [i, j] : pairs) paired_a[i] = paired_b[j] = true;
  const auto is_node = [](const Piece& piece) { return std::get<2>(piece.what).starts_with("graph "); };
  std::map<decltype(Piece::what), std::vector<std::size_t>> open;  // of b, last first
  for (std::size_t j = b.size(); j-- > 0;)
    if (!paired_b[j] && is_node(b[j])) open[b[j].what].push_back(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto same = paired_a[i] ? open.end() : open.find(a[i].what);
    if (same == open.end() || same->second.empty()) continue;
    pairs.emplace_back(i, same->second.back());
    same->second.pop_back();
  }
}

// Pairs of positions in a longest common subsequence of pieces. O(rows x columns) after common prefixes and suffixes.
std::vector<std::pair<std::size_t, std::size_t>> paired(const Pieces& a, const Pieces& b) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::size_t begin = 0, end_a = a.size(), end_b = b.size();
  for (; begin < end_a && begin < end_b && a[begin].what == b[begin].what; ++begin)
    pairs.emplace_back(begin, begin);
  for (; end_a > begin && end_b > begin && a[end_a - 1].what == b[end_b - 1].what; --end_a, --end_b)
    pairs.emplace_back(end_a - 1, end_b - 1);
  const std::size_t rows = end_a - begin, columns = end_b - begin;
  if (rows == 0 || columns == 0 || rows > kMostPairs / columns) return pairs;
  // [i][j]: length of the longest common subsequence of the pieces from i and j on.
  std::vector<std::uint32_t> longest((rows + 1) * (columns + 1), 0);
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& {
    return longest[i * (columns + 1) + j];
  };
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      at(i, j) = a[begin + i].what == b[begin + j].what ? at(i + 1, j + 1) + 1
                                                        : std::max(at(i + 1, j), at(i, j + 1));
  for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
    if (a[begin + i].what == b[begin + j].what)
      pairs.emplace_back(begin + i++, begin + j++);
    else if (at(i + 1, j) >= at(i, j + 1))
      ++i;
    else
      ++j;
  }
  return pairs;
}

// The work of `other` if it differs from `mine`; monostate: equal, or not comparable.
TaskWork other_work(const TaskWork& mine, const TaskWork& other) {
  if (std::holds_alternative<Operation>(mine) && std::holds_alternative<Operation>(other))
    return mine == other ? TaskWork{} : other;
  const auto* a = std::get_if<CollectiveWork>(&mine);
  const auto* b = std::get_if<CollectiveWork>(&other);
  if (a == nullptr || b == nullptr || a->op != b->op || a->message == b->message) return {};
  CollectiveWork now = *a;  // the group is unchanged
  now.message = b->message;
  return now;
}

// Compares the two blocks of rank class `c` and adds the differences to `out`.
void compare_class(const RecordedProgram& step, const RecordedProgram& other, std::size_t c,
                   OtherShapes& out) {
  const BlockId id = detail::block_id(step, c);
  const Block& a = step.program.block(id);
  const Block& b = other.program.block(detail::block_id(other, c));
  const auto streams_a = pieces_by_stream(step.program, a), streams_b = pieces_by_stream(other.program, b);
  std::size_t n_b = 0, n_paired = 0;
  for (const auto& [stream, pieces] : streams_b) n_b += pieces.size();
  for (const auto& [stream, pieces] : streams_a) {
    for (const Piece& piece : pieces) {
      out.gpu_us += a.duration_us()[piece.task];
      out.unpaired_us += a.duration_us()[piece.task];
    }
    const auto of_b = streams_b.find(stream);
    if (of_b == streams_b.end()) continue;
    auto pairs = paired(pieces, of_b->second);
    pair_nodes(pieces, of_b->second, pairs);
    for (const auto& [i, j] : pairs) {
      const std::uint32_t ta = pieces[i].task, tb = of_b->second[j].task;
      TaskWork now =
          other_work(step.program.works.of(a.tasks()[ta].work), other.program.works.of(b.tasks()[tb].work));
      ++n_paired;
      out.unpaired_us -= a.duration_us()[ta];
      if (std::holds_alternative<std::monostate>(now)) continue;
      out.changed_us += a.duration_us()[ta];
      out.moved_us +=
          a.duration_us()[ta] * std::abs(work_ratio(step.program.works.of(a.tasks()[ta].work), now) - 1);
      out.same_kernel[id.index()][ta] =
          step.program.names.text(a.tasks()[ta].name) == other.program.names.text(b.tasks()[tb].name);
      out.of_task[id.index()][ta] = now;
    }
  }
  out.extra += n_b - n_paired;
}

}  // namespace

Result<OtherShapes> other_shapes(const RecordedProgram& step, const RecordedProgram& other) {
  const auto same_rank = [](const RecordedStepFacts& a, const RecordedStepFacts& b) {
    return a.rank == b.rank;
  };
  if (!std::ranges::equal(step.facts, other.facts, same_rank)) {
    return Error{"the two steps have different ranks"}.found(
        fmt::format("{} and {} of them", step.facts.size(), other.facts.size()));
  }
  OtherShapes out;
  for (const Block& block : step.program.blocks()) {
    out.of_task.emplace_back(block.task_count());
    out.same_kernel.emplace_back(block.task_count(), false);
  }
  for (std::size_t c = 0; c < step.facts.size(); ++c) compare_class(step, other, c, out);
  return out;
}

double work_ratio(const TaskWork& before, const TaskWork& after) {
  if (const auto* was = std::get_if<CollectiveWork>(&before)) {
    const auto* now = std::get_if<CollectiveWork>(&after);
    return now != nullptr && was->message.value() > 0 ? now->message.value() / was->message.value() : 0;
  }
  const auto* from = std::get_if<Operation>(&before);
  const auto* to = std::get_if<Operation>(&after);
  if (from == nullptr || to == nullptr) return 0;
  const Work was = work_of(*from), now = work_of(*to);
  if (was.matrix && was.flops.value() > 0) return now.flops.value() / was.flops.value();
  return was.bytes().value() > 0 ? now.bytes().value() / was.bytes().value() : 0;
}

bool has_same_shapes(const OtherShapes& shapes) {
  return shapes.moved_us + shapes.unpaired_us <= kSameShapes * shapes.gpu_us;
}

}  // namespace stepcast
