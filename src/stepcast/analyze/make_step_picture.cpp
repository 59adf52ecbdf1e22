#include "stepcast/analyze/make_step_picture.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "stepcast/analyze/collective_list.h"
#include "stepcast/analyze/detail/rank_parts.h"
#include "stepcast/base/names.h"
#include "stepcast/base/units.h"

namespace stepcast {
namespace {

// Slots of one row: kAllSlots are divided among the rows, within these bounds.
constexpr std::size_t kMostSlots = 1600, kAllSlots = 24000, kFewestSlots = 200;

// The part that a block's instances are drawn as. Nothing: they are not drawn.
std::optional<PicturePart> pass_of(BlockRole role) {
  switch (role) {
    case BlockRole::forward: return PicturePart::forward;
    case BlockRole::backward: return PicturePart::backward;
    case BlockRole::weight_gradient: return PicturePart::weight_gradient;
    case BlockRole::update: return PicturePart::update;
    case BlockRole::other: break;
  }
  return std::nullopt;
}

// Extends `all` so that it covers `one`.
void widen(Interval& all, const Interval& one) {
  all.start_us = std::min(all.start_us, one.start_us);
  all.end_us = std::max(all.end_us, one.end_us);
}

// A bar in milliseconds. `number`: the number of the pass; -1: none.
PictureBar bar_of(const Interval& at, PicturePart part, std::int32_t number = -1) {
  return {at.start_us * kMsPerUs, at.length_us() * kMsPerUs, part, number};
}

// The row of one stage. Each pass is a bar from the first kernel of its instance to the last, on lane 0.
// Transfers of weights and gradients (the data-parallel lanes) are bars of their own.
PictureRow stage_row(const FlatProgram& flat, const TaskTimes& times, RankClassId c) {
  const Program& program = flat.program();
  const RankClass& rank_class = program.rank_class(c);
  PictureRow row{.name = rank_class.name};
  std::map<std::string_view, std::int32_t> passes;  // [name of the block] passes so far
  std::size_t first = 0;
  for (std::size_t i = 0; i < rank_class.instances.size(); ++i) {
    const Block& block = program.block_of(c, InstanceId{i});
    const std::optional<PicturePart> pass = pass_of(block.role());
    const std::size_t begin = first;
    first += block.task_count();
    if (!pass) continue;
    // An empty interval: its start lies behind its end until the first kernel is seen.
    Interval all{1, 0};
    for (std::size_t task = begin; task < first; ++task) {
      const TaskInfo& info = flat.info(c, task);
      const Interval& at = times.at(c, task);
      const bool on_gpu = flat.lane_of(c, task).kind == LaneKind::gpu_stream;
      if (!on_gpu || info.kind != TaskKind::kernel || at.length_us() <= 0) continue;
      if (flat.lane_of(c, task).role == LaneRole::data_parallel)
        row.transfers.push_back(bar_of(at, PicturePart::transfer));
      if (flat.lane(c, task) != 0) continue;
      if (all.start_us > all.end_us) all = at;
      widen(all, at);
    }
    const std::int32_t number = pass == PicturePart::update ? -1 : passes[block.name()]++;
    if (all.start_us <= all.end_us) row.bars.push_back(bar_of(all, *pass, number));
  }
  const auto by_start = [](const PictureBar& a, const PictureBar& b) { return a.start_ms < b.start_ms; };
  std::stable_sort(row.bars.begin(), row.bars.end(), by_start);
  std::stable_sort(row.transfers.begin(), row.transfers.end(), by_start);
  return row;
}

// Joins transfers that follow each other closely into one bar, so that a page has fewer of them.
void join_transfers(std::vector<PictureBar>& bars, double step_ms) {
  constexpr double kGap = 1e-3;  // fraction of the step
  std::vector<PictureBar> joined;
  for (const PictureBar& bar : bars) {
    if (!joined.empty() && bar.start_ms - joined.back().start_ms - joined.back().time_ms < kGap * step_ms) {
      joined.back().time_ms =
          std::max(joined.back().time_ms, bar.start_ms + bar.time_ms - joined.back().start_ms);
    } else {
      joined.push_back(bar);
    }
  }
  bars = std::move(joined);
}

// Leaves out the middle of the step if there are too many bars. Keeps the same number of bars at the start
// and at the end, and notes the gap.
void fold_middle(StepPicture& picture) {
  std::vector<double> starts;
  for (const PictureRow& row : picture.rows)
    for (const PictureBar& bar : row.bars) starts.push_back(bar.start_ms);
  if (starts.size() <= kMostPictureBars) return;
  std::sort(starts.begin(), starts.end());
  PictureGap gap{.from_ms = starts[kMostPictureBars / 2],
                 .to_ms = starts[starts.size() - kMostPictureBars / 2]};
  const auto left_out = [&](const PictureBar& bar) {
    return bar.start_ms >= gap.from_ms && bar.start_ms < gap.to_ms;
  };
  // A bar that reaches into the gap is cut where the gap begins.
  const auto clip = [&](std::vector<PictureBar>& bars) {
    const std::size_t before = bars.size();
    std::erase_if(bars, left_out);
    for (PictureBar& bar : bars)
      if (bar.start_ms < gap.from_ms) bar.time_ms = std::min(bar.time_ms, gap.from_ms - bar.start_ms);
    return before - bars.size();
  };
  for (PictureRow& row : picture.rows) {
    gap.passes += clip(row.bars);
    clip(row.transfers);
  }
  picture.gaps.push_back(gap);
}

// The part that idle time with this cause is drawn as.
PicturePart part_of(IdleCause cause) {
  switch (cause) {
    case IdleCause::cpu: return PicturePart::cpu;
    case IdleCause::other_stream: return PicturePart::other_stream;
    case IdleCause::other_rank: return PicturePart::other_rank;
    case IdleCause::pipeline: return PicturePart::pipeline;
    default: return PicturePart::idle;
  }
}

// Divides a window into slots of equal length and sums the time of each part per slot. A slot is drawn as its
// largest part, and neighbouring slots with the same part become one bar.
class Slots {
 public:
  Slots(Interval window, std::size_t count)
      : window_(window), length_us_(window.length_us() / static_cast<double>(count)), times_(count) {}

  // Adds a part of the time. Parts outside the window are ignored.
  void add(Interval at, PicturePart part) {
    at = detail::clip(at, window_);
    if (at.length_us() <= 0 || length_us_ <= 0) return;
    auto slot = static_cast<std::size_t>((at.start_us - window_.start_us) / length_us_);
    for (; slot < times_.size(); ++slot) {
      const double begin = window_.start_us + static_cast<double>(slot) * length_us_;
      if (begin >= at.end_us) break;
      times_[slot][static_cast<std::size_t>(part)] +=
          detail::clip(at, {begin, begin + length_us_}).length_us();
    }
  }

  // The bars, relative to `zero_us`. A slot without any time is idle.
  [[nodiscard]] std::vector<PictureBar> bars(double zero_us) const {
    std::vector<PictureBar> bars;
    for (std::size_t slot = 0; slot < times_.size(); ++slot) {
      const auto most = std::max_element(times_[slot].begin(), times_[slot].end());
      const auto part = *most > 0 ? static_cast<PicturePart>(most - times_[slot].begin()) : PicturePart::idle;
      const double length = length_us_ * kMsPerUs;
      if (!bars.empty() && bars.back().part == part) {
        bars.back().time_ms += length;
      } else {
        bars.push_back(
            {(window_.start_us - zero_us) * kMsPerUs + static_cast<double>(slot) * length, length, part, -1});
      }
    }
    return bars;
  }

 private:
  Interval window_;
  double length_us_;
  std::vector<std::array<double, kPicturePartCount>> times_;
};

// The bars of one rank, from its breakdown over time.
std::vector<PictureBar> rank_bars(const detail::RankParts& parts, std::size_t slots, double zero_us) {
  Slots all{parts.window, slots};
  const auto add = [&](const detail::IntervalSet& set, PicturePart part) {
    for (const Interval& at : set.intervals()) all.add(at, part);
  };
  add(parts.computation, PicturePart::computation);
  add(parts.transfer, PicturePart::transfer);
  add(parts.copies, PicturePart::copy);
  add(parts.device_copies, PicturePart::copy);
  for (const detail::RankWait& wait : parts.waits) all.add(wait.time, PicturePart::other_rank);
  for (const detail::IdleGap& gap : parts.gaps) all.add(gap.time, part_of(gap.cause));
  return all.bars(zero_us);
}

// The part that a step of the critical path is drawn as.
PicturePart part_of(const FlatProgram& flat, const PathStep& step) {
  if (step.kind == PathStep::Kind::edge) return PicturePart::delay;
  if (step.kind != PathStep::Kind::task) return PicturePart::idle;
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  if (flat.lane_of(step.rank_class, step.task).kind == LaneKind::cpu_thread) return PicturePart::host;
  if (info.kind == TaskKind::collective || info.kernel_class == KernelClass::communication)
    return PicturePart::transfer;
  if (info.kind == TaskKind::memcpy || info.kind == TaskKind::memset) return PicturePart::copy;
  return info.kind == TaskKind::wait ? PicturePart::idle : PicturePart::computation;
}

}  // namespace

std::string_view to_string(PicturePart part) {
  return name_of<PicturePart::delay>(
      part,
      {"forward", "backward", "weight gradients", "update", "computation", "communication", "copies",
       "waits for another rank", "waits for another stage", "waits for the CPU", "waits for another stream",
       "idle", "CPU", "delay"},
      "delay");
}

StepPicture picture_of_passes(const FlatProgram& flat, const TaskTimes& times) {
  StepPicture picture;
  for (std::size_t c = 0; c < std::min(flat.class_count(), kMostPictureRows); ++c) {
    PictureRow row = stage_row(flat, times, RankClassId{c});
    // Not the program of a described step: no picture.
    if (row.bars.empty()) return {};
    picture.rows.push_back(std::move(row));
    picture.length_ms = std::max(picture.length_ms, times.end_us(RankClassId{c}) * kMsPerUs);
  }
  picture.rows_left_out = flat.class_count() - picture.rows.size();
  for (PictureRow& row : picture.rows) join_transfers(row.transfers, picture.length_ms);
  fold_middle(picture);
  return picture;
}

StepPicture picture_of_ranks(const RankPictureInput& input) {
  StepPicture picture;
  const std::size_t n = std::min(input.windows.size(), kMostPictureRows);
  if (n == 0) return picture;
  // Many ranks get fewer slots each, so that the page stays small.
  const std::size_t slots = std::clamp(kAllSlots / n, kFewestSlots, kMostSlots);
  const std::vector<CollectiveOccurrence> occurrences = collective_occurrences(input.flat, input.times);
  double zero_us = input.windows.front().start_us;
  for (const Interval& window : input.windows) zero_us = std::min(zero_us, window.start_us);
  for (std::size_t c = 0; c < n; ++c) {
    const RankClassId id{c};
    const detail::RankParts parts = detail::rank_parts(input.flat, input.times, input.costs, id,
                                                       input.windows[c], input.rank_start_us[c], occurrences);
    picture.rows.push_back({.name = input.flat.program().rank_class(id).name,
                            .bars = rank_bars(parts, slots, zero_us),
                            .transfers = {}});
    picture.length_ms = std::max(picture.length_ms, (input.windows[c].end_us - zero_us) * kMsPerUs);
    picture.slot_ms =
        std::max(picture.slot_ms, input.windows[c].length_us() * kMsPerUs / static_cast<double>(slots));
  }
  picture.rows_left_out = input.windows.size() - n;
  return picture;
}

StepPicture picture_of_path(const FlatProgram& flat, const CriticalPath& path) {
  StepPicture picture;
  picture.length_ms = path.time.length_us() * kMsPerUs;
  if (picture.length_ms <= 0) return picture;
  picture.slot_ms = picture.length_ms / static_cast<double>(kMostSlots);
  std::map<RankClassId, Slots> ranks;
  for (const PathStep& step : path.steps) {
    ranks.try_emplace(step.rank_class, path.time, kMostSlots)
        .first->second.add(step.time, part_of(flat, step));
  }
  for (const auto& [rank, slots] : ranks) {
    if (picture.rows.size() == kMostPictureRows) {
      ++picture.rows_left_out;
      continue;
    }
    PictureRow row{.name = flat.program().rank_class(rank).name,
                   .bars = slots.bars(path.time.start_us),
                   .transfers = {}};
    picture.rows.push_back(std::move(row));
  }
  return picture;
}

}  // namespace stepcast
