// One pass over the list with a clock for the computation. Two helper classes collect the transfers that
// overlap one operation and those that overlap the remainder of the list.
#include "stepcast/predict/layer_walk.h"

#include <algorithm>

#include "stepcast/predict/step_prices.h"

namespace stepcast {
namespace {

// Lower end of the band of launch-bound work, as a fraction of the launch time. Assumed.
constexpr double kFastestLaunchShare = 0.7;

std::size_t index_of(KernelClass kernel_class) { return static_cast<std::size_t>(kernel_class); }
std::size_t index_of(GroupKind group) { return static_cast<std::size_t>(group); }

// Pending transfers that will overlap the next operation: items from `first_` on.
class TransfersBeside {
 public:
  void add(std::size_t item, const Estimate& time, double slowdown) {
    if (time_us_ == 0) first_ = item;
    time_us_ += time.time.value();
    slowed_us_ += time.time.value() * slowdown;
  }
  // Slowdown of an operation that takes `alone_us` alone. Transfers at least as long as that slow down all of
  // it.
  [[nodiscard]] double slowdown(double alone_us) const {
    if (time_us_ == 0 || alone_us <= 0) return 1;
    return 1 + std::min(1.0, time_us_ / alone_us) * (slowed_us_ / time_us_);
  }

  // Places the transfers from `start_us` on, next to an operation of `covered_us`. Returns the time by which
  // they exceed it, and clears the pending transfers.
  double place(std::vector<PlacedItem>& items, double start_us, double covered_us) {
    if (time_us_ == 0) return 0;
    Microseconds time, low, high;  // sums so far
    const auto beyond = [&](Microseconds end, Microseconds from) {
      return std::max(0.0, end.value() - std::max(from.value(), covered_us));
    };
    double exposed_us = 0;
    for (std::size_t i = first_; i < items.size(); ++i) {
      PlacedItem& item = items[i];
      if (item.lane != WorkLane::beside) continue;
      item.start_us = start_us + time.value();
      item.exposed_us = beyond(time + item.alone.time, time);
      item.exposed_low_us = beyond(low + item.alone.p10, low);
      item.exposed_high_us = beyond(high + item.alone.p90, high);
      exposed_us += item.exposed_us;
      time += item.alone.time;
      low += item.alone.p10;
      high += item.alone.p90;
    }
    time_us_ = slowed_us_ = 0;
    return exposed_us;
  }

 private:
  std::size_t first_ = 0;
  double time_us_ = 0, slowed_us_ = 0;
};

// Transfers that overlap the remainder of a list, one after the other.
class TransfersBesideRest {
 public:
  // Starts the transfer at `after_us`, or after the previous one of this kind.
  void add(PlacedItem& item, double after_us) {
    item.lane = WorkLane::rest;
    item.start_us = std::max(after_us, end_us_);
    end_us_ = item.start_us + item.duration_us;
    faster_us_ += item.duration_us - item.alone.p10.value();
    slower_us_ += item.alone.p90.value() - item.duration_us;
  }
  // Ends all open transfers. Returns the time by which they exceed `until_us`, when everything else ends.
  // That exposed time is attributed to the last transfers.
  double join(std::vector<PlacedItem>& items, double until_us) {
    const double exposed_us = std::max(0.0, end_us_ - until_us);
    double out = exposed_us;
    double low = std::max(0.0, end_us_ - faster_us_ - until_us),
           high = std::max(0.0, end_us_ + slower_us_ - until_us);
    for (std::size_t i = items.size(); i-- > joined_;) {
      PlacedItem& item = items[i];
      if (item.lane != WorkLane::rest) continue;
      const auto take = [&](double& left, double most) {
        const double taken = std::min(left, most);
        left -= taken;
        return taken;
      };
      item.exposed_us = take(out, item.duration_us);
      item.exposed_low_us = take(low, item.duration_us);
      item.exposed_high_us = take(high, item.alone.p90.value());
    }
    joined_ = items.size();
    faster_us_ = slower_us_ = 0;
    return exposed_us;
  }

 private:
  std::size_t joined_ = 0;  // items before this one are joined
  // End of the last transfer; possible gain and loss of all open ones at p10 and p90.
  double end_us_ = 0, faster_us_ = 0, slower_us_ = 0;
};

}  // namespace

PricedList& PricedList::operator+=(const PricedList& other) {
  time_us += other.time_us;
  low_us += other.low_us;
  high_us += other.high_us;
  host_us += other.host_us;
  kernels += other.kernels;
  flops += other.flops;
  for (std::size_t i = 0; i < class_us.size(); ++i) class_us[i] += other.class_us[i];
  for (std::size_t i = 0; i < exposed_us.size(); ++i) exposed_us[i] += other.exposed_us[i];
  for (std::size_t i = 0; i < transfer_us.size(); ++i) transfer_us[i] += other.transfer_us[i];
  for (std::size_t i = 0; i < source_us.size(); ++i) source_us[i] += other.source_us[i];
  return *this;
}

PricedList PricedList::times(double count) const {
  PricedList result = *this;
  result.time_us *= count;
  result.low_us *= count;
  result.high_us *= count;
  result.host_us *= count;
  result.kernels *= count;
  result.flops *= count;
  for (double& x : result.class_us) x *= count;
  for (double& x : result.exposed_us) x *= count;
  for (double& x : result.transfer_us) x *= count;
  for (double& x : result.source_us) x *= count;
  return result;
}

Status lay_out(const WorkList& list, StepPricer& prices, const Placement& placement,
               std::vector<PlacedItem>& items) {
  items.clear();
  double now_us = 0;
  double computed_us = 0;  // end of the last computation, without transfers that exceed it
  TransfersBeside beside;
  TransfersBesideRest rest;
  bool in_graph = false, joins = false;
  // Adds the next item. If it joins, it starts after all open transfers.
  const auto place_next = [&](const WorkItem& item) -> PlacedItem& {
    if (joins) {
      now_us += rest.join(items, now_us);
      computed_us = now_us;
    }
    PlacedItem& placed = items.emplace_back();
    placed.item = &item;
    placed.joins = joins;
    joins = false;
    return placed;
  };
  for (const WorkItem& item : list) {
    joins = joins || item.joins;
    const double count = static_cast<double>(item.count) * item.share;
    // The first item of a CUDA graph carries the launch of the whole graph.
    const double launches = !item.captured ? count : in_graph ? 0.0 : 1.0;
    in_graph = item.captured;
    if (const Transfer* transfer = item.transfer()) {
      STEPCAST_ASSIGN(const Estimate once, prices.price(*transfer, placement));
      if (once.time.value() <= 0 || count <= 0) continue;
      PlacedItem& placed = place_next(item);
      placed.alone = once.scaled(count);
      placed.duration_us = placed.alone.time.value();
      // Placed together with the next operation, or at the end of the list.
      if (item.overlaps_next) {
        placed.lane = WorkLane::beside;
        beside.add(items.size() - 1, placed.alone, prices.overlap_slowdown(transfer->op));
        continue;
      }
      // Starts after the computation so far; the clock does not advance.
      if (item.overlaps_remainder) {
        placed.kernels = item.captured ? 0 : launches;
        rest.add(placed, computed_us);
        continue;
      }
      placed.start_us = now_us;
      placed.kernels = launches;
      placed.exposed_us = placed.duration_us;
      placed.exposed_low_us = placed.alone.p10.value();
      placed.exposed_high_us = placed.alone.p90.value();
      now_us += placed.duration_us;
      computed_us = now_us;
      continue;
    }
    const PricedOperation& priced = prices.kernels().price(*item.operation());
    PlacedItem& placed = place_next(item);
    placed.alone = prices.time_of(*item.operation(), priced).scaled(count);
    placed.kernel_class = priced.kernel_class;
    // Work of the host alone counts as a share of a launch.
    const double of_host = priced.kernel_class == KernelClass::none ? prices.host_share() : 1;
    placed.kernels = item.captured ? launches : count * priced.kernels * of_host;
    placed.flops = count * priced.matrix_flops;
    placed.start_us = now_us;
    const double alone_us = placed.alone.time.value();
    placed.slowdown = beside.slowdown(alone_us);
    placed.duration_us = alone_us * placed.slowdown;
    computed_us = now_us + placed.duration_us;
    now_us = computed_us + beside.place(items, now_us, placed.duration_us);
  }
  now_us += beside.place(items, now_us, 0);  // no operation follows that could hide them
  rest.join(items, now_us);
  return Ok{};
}

PricedList sum_of(std::span<const PlacedItem> items) {
  PricedList sum;
  for (const PlacedItem& placed : items) {
    sum.kernels += placed.kernels;
    sum.flops += placed.flops;
    if (const Transfer* transfer = placed.item->transfer()) {
      sum.time_us += placed.exposed_us;
      sum.low_us += placed.exposed_low_us;
      sum.high_us += placed.exposed_high_us;
      sum.transfer_us[index_of(transfer->group)] += placed.duration_us;
      sum.exposed_us[index_of(transfer->group)] += placed.exposed_us;
      continue;
    }
    sum.time_us += placed.duration_us;
    sum.low_us += placed.alone.p10.value() * placed.slowdown;
    sum.high_us += placed.alone.p90.value() * placed.slowdown;
    sum.class_us[index_of(placed.kernel_class)] += placed.duration_us;
    sum.source_us[index_of(placed.alone.source)] += placed.duration_us;
  }
  return sum;
}

double time_with_launches(std::span<const PlacedItem> items, const PricedList& sum, double launch_us) {
  // Lower bound, and the result if the host never waits for the device.
  const double least = std::max(sum.time_us, sum.kernels * launch_us);
  const auto wait =
      std::ranges::find_if(items, [](const PlacedItem& placed) { return placed.item->host_waits; });
  if (wait == items.end() || launch_us <= 0) return least;
  double host_us = 0, gpu_us = 0;
  const auto run = [&](std::span<const PlacedItem> part) {
    for (const PlacedItem& placed : part) {
      host_us += placed.kernels * launch_us;
      // GPU time is computation plus the exposed part of transfers.
      const double us = placed.item->transfer() != nullptr ? placed.exposed_us : placed.duration_us;
      if (us > 0) gpu_us = std::max(gpu_us, host_us) + us;
    }
  };
  const auto in_front = static_cast<std::size_t>(wait - items.begin());
  // Lists repeat, so the part after the wait comes first and the part before it uses the lead gained there.
  run(items.subspan(in_front));
  run(items.first(in_front));
  return std::max(least, std::max(gpu_us, host_us));
}

void wait_for_launches(PricedList& list, double with_launches_us) {
  const double missing = with_launches_us - list.time_us;
  if (missing <= 0) return;
  list.host_us += missing;
  list.time_us += missing;
  list.low_us = std::max(list.low_us, kFastestLaunchShare * list.time_us);
  list.high_us = std::max(list.high_us, list.time_us);
}

}  // namespace stepcast
