#include "stepcast/predict/pipeline_walk.h"

#include <algorithm>
#include <limits>

namespace stepcast {
namespace {

// Limit for walk_to(): no limit.
constexpr std::size_t kToTheEnd = std::numeric_limits<std::size_t>::max();

// Builds a walk by advancing all stages in turn. Each stage runs its passes in order as soon as their inputs
// have been sent.
class Walker {
 public:
  explicit Walker(const PipelineShape& shape)
      : shape_(shape),
        n_chunks_(shape.stages * shape.virtual_stages),
        ahead_(shape.stages),
        forwards_(n_chunks_, 0),
        backwards_(n_chunks_, 0) {
    for (std::uint32_t s = 0; s < shape.stages; ++s) orders_.push_back(pipeline_order(shape, s));
    for (std::uint32_t s = 0; s < shape.stages; ++s) look_ahead(s);
    walk_.shape = shape;
  }

  PipelineWalk run() {
    if (find_repetition()) walk_rounds();
    walk_to(kToTheEnd);
    return std::move(walk_);
  }

 private:
  // The range of a stage's order that repeats. If i and i + round_passes_ are both in [begin, end), they are
  // the same pass with a later micro-batch. The first forwards and the last backwards are excluded, since
  // they may differ (weights gathered, gradients reduced).
  struct Repetition {
    std::size_t begin = 0, end = 0;
  };
  // A position in the walk and the next pass of every stage at it.
  struct Cut {
    std::size_t step = 0;
    std::vector<std::size_t> next;
  };

  // Finds the repeating range of every stage. False if some stage has none.
  bool find_repetition() {
    const std::uint32_t q = round_micro_batches(shape_);
    if (shape_.schedule == PipelineSchedule::gpipe) return false;
    const bool held_back = splits_backward(shape_.schedule);
    round_passes_ = std::size_t{q} * shape_.virtual_stages * (held_back ? 3 : 2);
    for (const std::vector<PipelinePass>& order : orders_) {
      Repetition found{0, order.size()};
      for (std::size_t i = 0; i < order.size(); ++i) {
        const PipelinePass& pass = order[i];
        if (pass.kind == PassKind::forward && pass.micro_batch == 0) found.begin = i + 1;
        if (pass.kind == PassKind::backward && pass.micro_batch + 1 == shape_.micro_batches) {
          found.end = std::min(found.end, i);
        }
      }
      if (found.begin + round_passes_ > found.end) return false;
      const auto repeats = [&](std::size_t i) {
        PipelinePass later = order[i];
        later.micro_batch += q;
        return order[i + round_passes_] == later;
      };
      // Extend from the middle to the end of warm-up and the begin of cool-down.
      const std::size_t middle = found.begin + (found.end - round_passes_ - found.begin) / 2;
      std::size_t from = middle, to = middle;
      while (from > found.begin && repeats(from - 1)) --from;
      while (to + round_passes_ < found.end && repeats(to)) ++to;
      if (from == to) return false;
      found = {from, to + round_passes_};
      repetition_.push_back(found);
    }
    return true;
  }

  // Stops after each round of the first stage. Keeps the last pair of cuts between which all stages repeat.
  void walk_rounds() {
    Cut before;
    const Repetition& first = repetition_.front();
    for (std::size_t limit = first.begin + (first.end - first.begin) % round_passes_; limit <= first.end;
         limit += round_passes_) {
      walk_to(limit);
      Cut now{walk_.steps.size(), {}};
      for (const Ahead& ahead : ahead_) now.next.push_back(ahead.pass);
      if (is_round(before, now)) keep(before, now);
      before = std::move(now);
    }
  }

  // Whether every stage advanced by one round between the cuts and stayed in its repeating range.
  bool is_round(const Cut& before, const Cut& now) const {
    if (before.next.empty()) return false;
    for (std::size_t s = 0; s < repetition_.size(); ++s) {
      if (now.next[s] != before.next[s] + round_passes_) return false;
      if (before.next[s] < repetition_[s].begin || now.next[s] > repetition_[s].end) return false;
    }
    return true;
  }

  // Stores the round, unless a message in flight at its end has no counterpart one round earlier.
  void keep(const Cut& before, const Cut& now) {
    WalkRound round{round_micro_batches(shape_), before.step, now.step, {}, {}};
    const auto add = [&](std::vector<std::uint32_t>& cells, std::uint32_t c, std::uint32_t from,
                         std::uint32_t to) {
      for (std::uint32_t m = from; m < to; ++m) cells.push_back(c * shape_.micro_batches + m);
      return from >= to || from >= round.micro_batches;
    };
    bool there_before = true;
    for (std::uint32_t c = 0; c < n_chunks_; ++c) {
      if (c > 0) {
        there_before = add(round.forward_under_way, c, forwards_[c], forwards_[c - 1]) && there_before;
      }
      if (c + 1 < n_chunks_) {
        there_before = add(round.backward_under_way, c, backwards_[c], backwards_[c + 1]) && there_before;
      }
    }
    if (there_before) walk_.round = std::move(round);
  }

  // Advances every stage as far as possible, with the first stage stopping at `limit`. Stages take one pass
  // each in turn, the last stage first. Neighbours in the list are then independent of each other, so a
  // processor can evaluate several at once.
  void walk_to(std::size_t limit) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t s = shape_.stages; s-- > 0;) moved = take_pass(s, limit) || moved;
    }
  }

  // Appends the next pass of a stage if its input has been sent. False if it must wait or is at its limit.
  bool take_pass(std::uint32_t s, std::size_t limit) {
    Ahead& ahead = ahead_[s];
    if (ahead.pass >= (s == 0 ? std::min(limit, orders_[s].size()) : orders_[s].size())) return false;
    if (ahead.needs != nullptr && *ahead.needs <= ahead.micro_batch) return false;
    walk_.steps.push_back(ahead.step);
    if (ahead.step.kind == PassKind::forward) ++forwards_[ahead.step.chunk];
    if (ahead.step.kind == PassKind::backward) ++backwards_[ahead.step.chunk];
    ++ahead.pass;
    look_ahead(s);
    return true;
  }

  // Prepares the next pass of a stage, since it is usually checked several times before it can run.
  void look_ahead(std::uint32_t s) {
    Ahead& ahead = ahead_[s];
    if (ahead.pass >= orders_[s].size()) return;
    const PipelinePass& pass = orders_[s][ahead.pass];
    const std::uint32_t c = chunk_of_stage(shape_.schedule, shape_.stages, s, pass.chunk),
                        m = pass.micro_batch;
    const bool tail = c + 1 == n_chunks_, v_shaped = is_v_shaped(shape_.schedule);
    WalkStep& step = ahead.step;
    step = {.cell = c * shape_.micro_batches + m,
            .stage = static_cast<std::uint16_t>(s),
            .chunk = static_cast<std::uint16_t>(c),
            .kind = pass.kind,
            .first = m == 0,
            .last = m + 1 == shape_.micro_batches};
    ahead.micro_batch = m;
    ahead.needs = nullptr;
    if (pass.kind == PassKind::forward) {
      if (c > 0) ahead.needs = &forwards_[c - 1];
      step.receives = c > 0;
      step.sends = !tail;
      step.wraps = !v_shaped && s + 1 == shape_.stages;
      step.stays = v_shaped && c + 1 == shape_.stages;
    } else if (pass.kind == PassKind::backward) {
      ahead.needs = tail ? &forwards_[c] : &backwards_[c + 1];
      step.receives = !tail;  // the last chunk continues with its own output
      step.sends = c > 0;
      step.wraps = !v_shaped && s == 0;
      step.stays = v_shaped && c == shape_.stages;
    }
  }

  // The next pass of a stage.
  struct Ahead {
    std::size_t pass = 0;  // index in the order of the stage
    WalkStep step{};
    std::uint32_t micro_batch = 0;
    const std::uint32_t* needs = nullptr;  // count of passes that have sent its input; null: no input
  };

  PipelineShape shape_;
  std::uint32_t n_chunks_;
  std::vector<std::vector<PipelinePass>> orders_;
  std::vector<Repetition> repetition_;
  std::size_t round_passes_ = 0;
  std::vector<Ahead> ahead_;  // [stage]
  // [chunk] number of finished passes, in the order of micro-batches.
  std::vector<std::uint32_t> forwards_, backwards_;
  PipelineWalk walk_;
};

}  // namespace

std::uint32_t round_micro_batches(const PipelineShape& shape) {
  return shape.virtual_stages > 1 && !is_v_shaped(shape.schedule) ? shape.stages : 1;
}

std::uint32_t short_walk_micro_batches(const PipelineShape& shape) {
  const std::uint32_t q = round_micro_batches(shape);
  if (shape.schedule == PipelineSchedule::gpipe) return shape.micro_batches;
  // Warm-up and cool-down take as many micro-batches as there are stages, twice that number with held-back
  // weight gradients, and one round for each chunk if interleaved. A few more rounds are added for the stages
  // to reach a common pace.
  const std::uint32_t few = is_v_shaped(shape.schedule)       ? 4 * shape.stages
                            : shape.virtual_stages > 1        ? 4 * q
                            : splits_backward(shape.schedule) ? 2 * shape.stages + 4
                                                              : shape.stages + 4;
  return std::min(shape.micro_batches, few + shape.micro_batches % q);
}

PipelineWalk pipeline_walk(const PipelineShape& shape) { return Walker{shape}.run(); }

}  // namespace stepcast
