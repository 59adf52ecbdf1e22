#include "stepcast/retrace/gradient_buckets.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/base/units.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/predict/replay.h"
#include "stepcast/program/stack_fold.h"
#include "stepcast/retrace/detail/block_edit.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {
namespace {

using detail::BlockEdit;
using detail::kNoTask;

// Maximum relative distance of recorded all-reduces from a common line; ranks and protocols differ by that much. Assumed.
constexpr double kOnTheLine = 0.15;
// Least ratio of the largest to the smallest message that determines a line. Assumed.
constexpr double kSpreadOfMessages = 1.5;

// A recorded bucket: one all-reduce and its gradients [first, end).
struct Bucket {
  std::vector<std::uint32_t> calls;      // CPU tasks of its launch, in order
  std::vector<std::uint32_t> transfers;  // GPU tasks
  double bytes = 0;
  std::size_t first = 0, end = 0;  // [first, end) of the gradients
};

// One parameter's gradient, found by its call of AccumulateGrad.
struct Gradient {
  std::uint32_t last_task = kNoTask;  // on its thread, without the launch of a bucket
  double written_bytes = 0;           // by its copy into the bucket; 0: unknown
  double copy_us = 0;                 // longest GPU task launched in its call
  double bytes = 0;                   // its share of the bucket
};

// The reductions of one rank, in order.
struct Gradients {
  std::vector<Gradient> gradients;
  std::vector<Bucket> buckets;
};

// The calls of AccumulateGrad and of the all-reduce inside it that contain a task; invalid if there is none.
struct Place {
  StackId gradient, reduction;
};

// Finds the gradients and buckets of one rank class. Only the thread with the most calls of all-reduce is read.
class BucketFinder {
 public:
  BucketFinder(const RecordedProgram& recorded, std::size_t c)
      : program_(recorded.program),
        block_(program_.block(program_.rank_class(RankClassId{c}).instances.front().block)) {}

  // Empty if no all-reduce is launched from inside AccumulateGrad.
  Gradients find() {
    const std::uint32_t n = block_.task_count();
    const std::vector<bool> left_over = left_over_tasks(block_);
    std::vector<Place> place(n);
    std::map<std::uint16_t, std::size_t> launched;  // all-reduces by the lane of the thread
    for (std::uint32_t t = 0; t < n; ++t) place[t] = place_of(block_.tasks()[t].stack);
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> transfers, kernels;  // by gradient
    for (std::uint32_t t = 0; t < n; ++t) {
      if (on_cpu(t) || !place[t].gradient.valid() || left_over[t]) continue;
      const bool reduces = place[t].reduction.valid() && detail::is_transfer(block_.tasks()[t]);
      (reduces ? transfers : kernels)[place[t].gradient.index()].push_back(t);
    }
    for (std::uint32_t t = 0; t < n; ++t) {
      if (on_cpu(t) && place[t].reduction.valid() && transfers.contains(place[t].gradient.index()))
        ++launched[block_.lane_codes()[t]];
    }
    Gradients found;
    if (launched.empty()) return found;
    const std::uint16_t lane =
        std::max_element(launched.begin(), launched.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    StackId open;
    for (std::uint32_t t = 0; t < n; ++t) {
      if (block_.lane_codes()[t] != lane || !place[t].gradient.valid()) continue;
      if (place[t].gradient != open) {
        open = place[t].gradient;
        found.gradients.push_back(gradient_of(kernels[open.index()]));
        if (const auto its = transfers.find(open.index()); its != transfers.end()) {
          Bucket bucket{.transfers = its->second,
                        .first = found.buckets.empty() ? 0 : found.buckets.back().end,
                        .end = found.gradients.size()};
          found.buckets.push_back(std::move(bucket));
        }
      }
      const bool closes = !found.buckets.empty() && found.buckets.back().end == found.gradients.size();
      if (place[t].reduction.valid() && closes) {
        found.buckets.back().calls.push_back(t);
      } else {
        found.gradients.back().last_task = t;
      }
    }
    found.gradients.resize(found.buckets.empty() ? 0 : found.buckets.back().end);
    share_bytes(found);
    return found;
  }

 private:
  bool on_cpu(std::uint32_t t) const {
    return block_.lanes()[block_.lane_codes()[t]].kind == LaneKind::cpu_thread;
  }

  Place place_of(StackId stack) {
    return places_.of(stack, [&](Place place, StackId frame) {
      const std::string_view name = program_.names.text(program_.stacks.name(frame));
      if (!place.gradient.valid()) {
        if (name.find("torch::autograd::AccumulateGrad") != std::string_view::npos) place.gradient = frame;
      } else if (!place.reduction.valid() &&
                 (name.starts_with("c10d::allreduce") || name == "nccl:all_reduce")) {
        place.reduction = frame;
      }
      return place;
    });
  }

  // The size of a gradient by the smallest of its operations: one of several may process the whole bucket.
  Gradient gradient_of(const std::vector<std::uint32_t>& kernels) const {
    Gradient gradient;
    for (const std::uint32_t t : kernels) {
      const TaskInfo& task = block_.tasks()[t];
      if (const Operation* operation = program_.works.operation(task.work)) {
        const double bytes = work_of(*operation).bytes_written.value();
        if (gradient.written_bytes == 0 || bytes < gradient.written_bytes) gradient.written_bytes = bytes;
      }
      gradient.copy_us = std::max(gradient.copy_us, block_.duration_us()[t]);
    }
    return gradient;
  }

  // Messages of buckets are recorded. They are divided among gradients by written bytes, else by copy times.
  void share_bytes(Gradients& found) const {
    double shortest_us = 0;
    for (const Gradient& g : found.gradients) {
      if (g.copy_us > 0) shortest_us = shortest_us > 0 ? std::min(shortest_us, g.copy_us) : g.copy_us;
    }
    for (Bucket& bucket : found.buckets) {
      for (const std::uint32_t t : bucket.transfers) {
        const CollectiveWork* work = program_.works.collective(block_.tasks()[t].work);
        bucket.bytes += work != nullptr ? work->message.value() : 0;
      }
      const std::span<Gradient> of_bucket{found.gradients.data() + bucket.first, bucket.end - bucket.first};
      const bool shapes = std::all_of(of_bucket.begin(), of_bucket.end(),
                                      [](const Gradient& g) { return g.written_bytes > 0; });
      if (bucket.bytes <= 0 && shapes) {
        for (const Gradient& g : of_bucket) bucket.bytes += g.written_bytes;
      }
      // A gradient with the shortest copy gets a small weight above zero.
      const auto weight = [&](const Gradient& g) {
        return shapes ? g.written_bytes : g.copy_us - shortest_us + 0.01 * std::max(1.0, shortest_us);
      };
      double all = 0;
      for (const Gradient& g : of_bucket) all += weight(g);
      for (Gradient& g : of_bucket) g.bytes = all > 0 ? bucket.bytes * weight(g) / all : 0;
    }
  }

  const Program& program_;
  const Block& block_;
  StackFold<Place> places_{program_.stacks};
};

// Error: a rank without buckets, ranks with different gradients or buckets, buckets without sizes.
Status same_gradients(const RecordedProgram& recorded, const std::vector<Gradients>& ranks) {
  for (std::size_t c = 0; c < ranks.size(); ++c) {
    if (ranks[c].buckets.empty()) {
      return Error{
          "no all-reduce of gradients was launched from the backward (torch::autograd::AccumulateGrad)"}
          .found(fmt::format("rank {} without", recorded.facts[c].rank))
          .advice("only DistributedDataParallel has gradient buckets");
    }
    const auto differs = [&](const std::string& what) {
      return Error{fmt::format("ranks {} and {} do not reduce the same gradients", recorded.facts[0].rank,
                               recorded.facts[c].rank)}
          .found(what)
          .expected("the same gradients in the same buckets on every rank");
    };
    if (ranks[c].gradients.size() != ranks[0].gradients.size())
      return differs(fmt::format("{} and {} of them", ranks[0].gradients.size(), ranks[c].gradients.size()));
    if (ranks[c].buckets.size() != ranks[0].buckets.size())
      return differs(fmt::format("{} and {} buckets", ranks[0].buckets.size(), ranks[c].buckets.size()));
    for (std::size_t b = 0; b < ranks[c].buckets.size(); ++b) {
      const Bucket& one = ranks[0].buckets[b];
      const Bucket& other = ranks[c].buckets[b];
      if (one.end != other.end || std::abs(one.bytes - other.bytes) > 0.01 * one.bytes)
        return differs(fmt::format("bucket {} of {:.0f} and {:.0f} bytes", b, one.bytes, other.bytes));
      if (other.bytes <= 0) {
        return Error{"the recorded all-reduces of gradients have no sizes"}.advice(
            "give the execution traces, too, or record with a PyTorch that writes them (2.2 and later)");
      }
    }
  }
  return Ok{};
}

// The ends of the new buckets as gradient indices: a bucket closes at `least_bytes` or at the last gradient.
std::vector<std::size_t> ends_of_buckets(const std::vector<Gradient>& gradients, double least_bytes) {
  std::vector<std::size_t> ends;
  double bytes = 0;
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    bytes += gradients[g].bytes;
    // The shares of a message may add up to slightly less than the message.
    if (bytes >= least_bytes * (1 - 1e-9) || g + 1 == gradients.size()) {
      ends.push_back(g + 1);
      bytes = 0;
    }
  }
  return ends;
}

// Time of an all-reduce as a function of its message: fixed + per_byte * bytes.
struct Line {
  double fixed_us = 0, us_per_byte = 0;
  [[nodiscard]] double at(double bytes) const { return fixed_us + us_per_byte * bytes; }
};

// Least-squares line in relative errors, without negative coefficients. Empty if the messages are too similar or a point is
// farther than kOnTheLine from the line.
std::optional<Line> line_through(const std::vector<double>& bytes, const std::vector<double>& us) {
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  if (bytes.size() < 2 || *most < kSpreadOfMessages * *least) return std::nullopt;
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (us[i] <= 0) return std::nullopt;
    const double a = 1 / us[i], b = bytes[i] / us[i];
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  // Normal equations of the weighted fit; negative coefficients are set to zero.
  const double det = aa * bb - ab * ab;
  Line line{(bb * a1 - ab * b1) / det, (aa * b1 - ab * a1) / det};
  if (!(line.fixed_us >= 0)) line = {0, b1 / bb};
  if (!(line.us_per_byte >= 0)) line = {a1 / aa, 0};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (std::abs(line.at(bytes[i]) / us[i] - 1) > kOnTheLine) return std::nullopt;
  }
  return line;
}

// Rewrites the blocks of all ranks to new buckets that end at `ends`.
class Regrouping {
 public:
  Regrouping(RecordedProgram& recorded, std::vector<Gradients> ranks, std::vector<std::size_t> ends)
      : recorded_(recorded), ranks_(std::move(ranks)), ends_(std::move(ends)) {
    const Program& program = recorded.program;
    for (std::size_t i = 0; i < program.collectives().size(); ++i) {
      for (const CollectiveMember& m : program.collectives()[i].members)
        collective_of_[{m.rank_class.index(), m.task.index()}] = i;
    }
  }

  // Determines the time of other message sizes: a line through the recorded ones, else models. Returns the source, as text.
  Result<std::string> learn_times(const BucketPricing& pricing) {
    std::vector<double> bytes, us;
    for (std::size_t b = 0; b < ranks_[0].buckets.size(); ++b) {
      std::vector<double> of_ranks;
      for (std::size_t c = 0; c < ranks_.size(); ++c) of_ranks.push_back(recorded_us(c, b));
      bytes.push_back(ranks_[0].buckets[b].bytes);
      us.push_back(median(of_ranks));
    }
    const bool joined = collective_of_.contains({0U, ranks_[0].buckets[0].transfers.front()});
    if (joined) line_ = line_through(bytes, us);
    if (line_) {
      return fmt::format("as the recorded ones: {:.0f} us plus {:.1f} us per MiB", line_->fixed_us,
                         line_->us_per_byte * kMiB);
    }
    if (pricing.origin == nullptr) {
      return Error{"the time of another message size cannot be derived from the recorded all-reduces"}.advice(
          "name a platform like the recording machine with --recorded-on");
    }
    // The placement of the group for the models.
    const auto& work = *recorded_.program.works.collective(block(0).tasks()[template_of(0, 0)].work);
    if (!work.group.valid()) {
      return Error{"the group of the recorded all-reduces is not known: their ranks are not in the traces"};
    }
    const auto ranks = static_cast<std::int64_t>(std::max<std::uint64_t>(1, recorded_.program.rank_count()));
    place_ = place_recorded_groups(
        recorded_.program, pricing.gpus_per_node > 0 ? pricing.gpus_per_node : ranks)[work.group.index()];
    pricer_ = pricing.origin;
    return fmt::format("scaled by the models of {} for the new and the recorded messages",
                       pricer_->platform().name);
  }

  // Regroups every rank and builds the new program.
  Result<RecordedProgram> run() {
    std::vector<detail::EditedBlock> blocks;
    for (std::size_t c = 0; c < ranks_.size(); ++c) {
      BlockEdit edit{block(c), recorded_.measured[c]};
      STEPCAST_TRY(regroup(c, edit));
      STEPCAST_ASSIGN(detail::EditedBlock edited, std::move(edit).finish());
      blocks.push_back(std::move(edited));
    }
    std::vector<detail::NewCollective> added;
    for (auto& [key, collective] : added_) added.push_back(std::move(collective));
    return detail::with_blocks(std::move(recorded_), std::move(blocks), std::move(added), message_bytes_);
  }

 private:
  const Block& block(std::size_t c) const {
    return recorded_.program.block(recorded_.program.rank_class(RankClassId{c}).instances.front().block);
  }
  // Recorded time in us of the all-reduce of bucket `b` on rank class `c`.
  double recorded_us(std::size_t c, std::size_t b) const {
    double us = 0;
    for (const std::uint32_t t : ranks_[c].buckets[b].transfers) us += block(c).duration_us()[t];
    return us;
  }
  // The recorded transfer that is copied for new all-reduces like that of bucket `b`.
  std::uint32_t template_of(std::size_t c, std::size_t b) const {
    return ranks_[c].buckets[b].transfers.front();
  }
  std::size_t recorded_bucket_of(std::size_t gradient) const {
    std::size_t b = 0;
    while (ranks_[0].buckets[b].end <= gradient) ++b;
    return b;
  }
  double bytes_between(std::size_t first, std::size_t end) const {
    double bytes = 0;
    for (std::size_t g = first; g < end; ++g) bytes += ranks_[0].gradients[g].bytes;
    return bytes;
  }

  // Time of an all-reduce by the line or the models; only ratios of such times are used.
  Result<double> shape_us(double bytes) {
    if (line_) return line_->at(bytes);
    STEPCAST_ASSIGN(const Estimate once, pricer_->price(CollectiveOp::all_reduce, Bytes{bytes}, place_));
    return once.time.value();
  }

  // Time of the all-reduce of gradients [first, end) on rank class `c`: the recorded time of their shares of the recorded
  // buckets, times the modelled ratio of the new message to the recorded ones.
  Result<double> time_of(std::size_t c, std::size_t first, std::size_t end) {
    double recorded = 0, shape = 0;
    for (std::size_t b = 0; b < ranks_[0].buckets.size(); ++b) {
      const Bucket& bucket = ranks_[0].buckets[b];
      const double share = bytes_between(std::max(first, bucket.first),
                                         std::max(std::max(first, bucket.first), std::min(end, bucket.end))) /
                           bucket.bytes;
      if (share <= 0) continue;
      STEPCAST_ASSIGN(const double us, shape_us(bucket.bytes));
      recorded += share * recorded_us(c, b);
      shape += share * us;
    }
    STEPCAST_ASSIGN(const double us, shape_us(bytes_between(first, end)));
    return shape > 0 ? us * recorded / shape : us;
  }

  // Builds the new buckets of one rank: keeps all-reduces with unchanged end, launches new ones, removes the others.
  Status regroup(std::size_t c, BlockEdit& edit) {
    const Gradients& rank = ranks_[c];
    std::vector<std::uint32_t> now(ends_.size());  // transfer of each new bucket
    std::vector<bool> kept(rank.buckets.size(), false);
    std::size_t first = 0;
    for (std::size_t j = 0; j < ends_.size(); first = ends_[j++]) {
      const std::size_t o = recorded_bucket_of(ends_[j] - 1);
      const Bucket& old = rank.buckets[o];
      kept[o] = kept[o] || old.end == ends_[j];
      if (old.end == ends_[j] && old.first == first) {
        now[j] = old.transfers.front();
        continue;
      }
      now[j] = old.end == ends_[j] ? old.transfers.front() : launch_at(c, ends_[j] - 1, o, j, edit);
      STEPCAST_ASSIGN(edit.task(now[j]).duration_us, time_of(c, first, ends_[j]));
      CollectiveWork work = *recorded_.program.works.collective(edit.task(now[j]).info.work);
      work.message = Bytes{bytes_between(first, ends_[j])};
      edit.task(now[j]).info.work = recorded_.program.works.intern(work);
      if (const auto joined = collective_of_.find({c, now[j]}); joined != collective_of_.end())
        message_bytes_[joined->second] = work.message.value();
      for (std::size_t extra = 1; old.end == ends_[j] && extra < old.transfers.size(); ++extra)
        replace(old.transfers[extra], now[j], edit);
    }
    for (std::size_t o = 0; o < rank.buckets.size(); ++o) {
      if (kept[o]) continue;
      const std::size_t brings = static_cast<std::size_t>(
          std::upper_bound(ends_.begin(), ends_.end(), rank.buckets[o].end - 1) - ends_.begin());
      for (const std::uint32_t t : rank.buckets[o].transfers) replace(t, now[brings], edit);
      for (const std::uint32_t t : rank.buckets[o].calls) edit.remove(t);
    }
    return Ok{};
  }

  // Removes `transfer` and lets its later waiters on other lanes wait for `by`.
  static void replace(std::uint32_t transfer, std::uint32_t by, BlockEdit& edit) {
    const std::vector<detail::EditedEdge> edges{edit.edges().begin(), edit.edges().end()};
    for (const detail::EditedEdge& edge : edges) {
      if (edge.from_port || edge.from != transfer || edge.to == by) continue;
      if (edit.task(edge.to).lane == edit.task(transfer).lane) continue;
      if (edit.launched_us(edge.to) < edit.launched_us(by)) continue;  // launched earlier, so it cannot wait
      edit.connect(by, edge.to, edge.delay_us, edge.info, edge.from_start);
    }
    edit.remove(transfer);
  }

  // Launches the all-reduce of new bucket j after gradient g, like that of recorded bucket o. Returns the new transfer.
  std::uint32_t launch_at(std::size_t c, std::size_t g, std::size_t o, std::size_t j, BlockEdit& edit) {
    const Bucket& like = ranks_[c].buckets[o];
    const std::uint32_t old = like.transfers.front();
    const std::uint32_t behind = ranks_[c].gradients[g].last_task;
    std::unordered_map<std::uint32_t, std::uint32_t> copy_of;
    std::uint32_t last = behind;
    for (const std::uint32_t t : like.calls) copy_of[t] = last = edit.insert_after(last, edit.task(t));
    const double at_us = edit.task(behind).measured.end_us;
    const std::uint16_t lane = edit.task(old).lane;
    const std::uint32_t previous = edit.last_launched(lane, at_us);
    const std::uint32_t transfer = edit.insert_launched(lane, at_us, edit.task(old));
    const std::uint32_t end = block(c).first_edge()[old + 1];
    bool launched = false;
    for (std::uint32_t e = edit.first_edge(old); e < end; ++e) {
      const detail::EditedEdge edge = edit.edges()[e];
      if (edge.from_port) continue;
      if (const auto call = copy_of.find(edge.from); call != copy_of.end()) {
        edit.connect(call->second, transfer, edge.delay_us, edge.info, edge.from_start);
        launched = true;
      } else if (edit.task(edge.from).lane == lane) {
        if (previous != kNoTask) edit.connect(previous, transfer, edge.delay_us, edge.info, edge.from_start);
      } else if (block(c).lanes()[edit.task(edge.from).lane].kind == LaneKind::gpu_stream) {
        const std::uint32_t before = edit.last_launched(edit.task(edge.from).lane, at_us);
        if (before != kNoTask) edit.connect(before, transfer, edge.delay_us, edge.info, edge.from_start);
      }
    }
    if (!launched) edit.connect(last, transfer, 0, {.origin = EdgeOrigin::launch, .inferred = true});
    if (const auto joined = collective_of_.find({c, old}); joined != collective_of_.end()) {
      const Collective& as = recorded_.program.collectives()[joined->second];
      detail::NewCollective& collective = added_[{j, joined->second}];
      if (collective.tasks.empty()) {
        collective.collective = as;
        collective.collective.message_bytes = bytes_between(j == 0 ? 0 : ends_[j - 1], ends_[j]);
        collective.tasks.resize(as.members.size());
      }
      for (std::size_t m = 0; m < as.members.size(); ++m) {
        if (as.members[m].rank_class.index() == c) collective.tasks[m] = transfer;
      }
    }
    return transfer;
  }

  RecordedProgram& recorded_;
  std::vector<Gradients> ranks_;
  std::vector<std::size_t> ends_;  // ends of the new buckets as gradient indices
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> collective_of_;  // [class, task]
  std::map<std::pair<std::size_t, std::size_t>, detail::NewCollective> added_;
  std::map<std::size_t, double> message_bytes_;  // of recorded collectives with changed gradients
  std::optional<Line> line_;
  StepPricer* pricer_ = nullptr;
  GroupPlacement place_;
};

}  // namespace

Result<RecordedProgram> with_bucket_size(RecordedProgram recorded, double bucket_mb,
                                         const BucketPricing& pricing, std::vector<std::string>& notes) {
  std::vector<Gradients> ranks;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) ranks.push_back(BucketFinder{recorded, c}.find());
  STEPCAST_TRY(same_gradients(recorded, ranks));
  const std::vector<Gradient>& gradients = ranks[0].gradients;
  const std::vector<std::size_t> ends = ends_of_buckets(gradients, bucket_mb * kMiB);
  double all_bytes = 0, largest = 0;
  for (const Bucket& bucket : ranks[0].buckets) {
    all_bytes += bucket.bytes;
    largest = std::max(largest, bucket.bytes);
  }
  std::string note = fmt::format(
      "{} gradients of {:.1f} MiB in {} bucket{} of {:g} MiB or more, recorded in {} of up to {:.1f} MiB",
      gradients.size(), all_bytes / kMiB, ends.size(), ends.size() == 1 ? "" : "s", bucket_mb,
      ranks[0].buckets.size(), largest / kMiB);
  Regrouping regrouping{recorded, std::move(ranks), ends};
  STEPCAST_ASSIGN(const std::string ground, regrouping.learn_times(pricing));
  notes.push_back(std::move(note) + "; time of their all-reduces: " + ground);
  return regrouping.run();
}

}  // namespace stepcast
