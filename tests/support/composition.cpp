#include "tests/support/composition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/program/execution_order.h"

namespace stepcast {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Columns of a block matrix that one pass over the block computes.
constexpr std::size_t kColumnsAtOnce = 8;

}  // namespace

MaxPlusMatrix::MaxPlusMatrix(std::size_t rows, std::size_t columns)
    : rows_(rows), columns_(columns), values_(rows * columns, kNever) {}

MaxPlusMatrix block_matrix(const Block& block, std::span<const double> duration_us,
                           std::span<const double> delay_us) {
  constexpr std::size_t kWidth = kColumnsAtOnce;
  const std::size_t tasks = block.task_count(), lanes = block.lanes().size(), ports = block.in_ports().size();
  const std::span<const TaskId> collectives = block.collective_tasks();
  MaxPlusMatrix matrix{lanes + block.out_ports().size() + collectives.size(),
                       lanes + ports + collectives.size()};

  // The block swept for several columns side by side: in column j everything that enters is "never" but the
  // j-th, which is 0.
  std::vector<double> times((2 * tasks + ports) * kWidth);
  std::vector<double> lane_free(lanes * kWidth);
  for (std::size_t first = 0; first < matrix.columns(); first += kWidth) {
    const std::size_t width = std::min(kWidth, matrix.columns() - first);
    const auto enter = [&](double* values, std::size_t column) {
      std::fill_n(values, kWidth, kNever);
      if (column >= first && column < first + width) values[column - first] = 0;
    };
    for (std::size_t l = 0; l < lanes; ++l) enter(lane_free.data() + l * kWidth, l);
    for (std::size_t p = 0; p < ports; ++p) enter(times.data() + (2 * tasks + p) * kWidth, lanes + p);

    std::size_t next_collective = 0;
    for (std::size_t t = 0; t < tasks; ++t) {
      double* lane = lane_free.data() + std::size_t{block.lane_codes()[t]} * kWidth;
      double* start = times.data() + 2 * t * kWidth;
      double* end = start + kWidth;
      std::copy_n(lane, kWidth, start);
      for (std::size_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
        const double* source = times.data() + std::size_t{block.sources()[e]} * kWidth;
        for (std::size_t j = 0; j < kWidth; ++j) start[j] = std::max(start[j], source[j] + delay_us[e]);
      }
      if (next_collective < collectives.size() && collectives[next_collective].index() == t) {
        enter(end, lanes + ports + next_collective++);
      } else {
        for (std::size_t j = 0; j < kWidth; ++j) end[j] = start[j] + duration_us[t];
      }
      std::copy_n(end, kWidth, lane);
    }

    const auto leave = [&](std::size_t row, const double* values, double delay) {
      for (std::size_t j = 0; j < width; ++j) matrix.at(row, first + j) = values[j] + delay;
    };
    std::size_t row = 0;
    for (std::size_t l = 0; l < lanes; ++l) leave(row++, lane_free.data() + l * kWidth, 0);
    for (const OutPort& port : block.out_ports()) {
      leave(row++, times.data() + port.source.code() * kWidth, port.delay.value());
    }
    for (const TaskId t : collectives) leave(row++, times.data() + std::size_t{2} * t.index() * kWidth, 0);
  }
  return matrix;
}

double ComposedResult::end_us() const {
  double end = kNever;
  for (const auto& lanes : lane_free_us) {
    for (const double free : lanes) end = std::max(end, free);
  }
  return std::isfinite(end) ? end : 0;
}

namespace detail {

// Writes down every moment as it meets it, then sorts them.
class Composer {
 public:
  Composer(const Program& program, const Costs& costs, const ExecutionOrder& order)
      : program_(program), costs_(costs), order_(order) {
    for (std::size_t b = 0; b < program.blocks().size(); ++b) {
      matrices_.push_back(
          block_matrix(program.blocks()[b], costs.duration_us(BlockId{b}), costs.delay_us(BlockId{b})));
    }
  }

  Result<ComposedProgram> compose() {
    for (std::size_t c = 0; c < program_.rank_classes().size(); ++c) new_moment();
    arrival_.resize(order_.memberships.size());
    completion_.resize(order_.memberships.size());
    for (std::uint32_t& completion : completion_) completion = new_moment();
    for (std::uint32_t c = 0; c < program_.rank_classes().size(); ++c) add_class(c);
    for (std::uint32_t k = 0; k < program_.collectives().size(); ++k) add_collective(k);
    return sorted();
  }

 private:
  using Term = ComposedProgram::Term;

  std::uint32_t new_moment() {
    moments_.emplace_back();
    return static_cast<std::uint32_t>(moments_.size() - 1);
  }
  // The terms of one moment are added in a row, though not always right after it was made.
  void add_term(std::uint32_t moment, std::uint32_t source, double delay) {
    if (moments_[moment].count++ == 0) moments_[moment].first = terms_.size();
    terms_.push_back({delay, source});
  }
  std::span<const Term> terms_of(std::uint32_t moment) const {
    return std::span{terms_}.subspan(moments_[moment].first, moments_[moment].count);
  }

  // The moment that a matrix row computes; a row that passes one value on needs no moment of its own.
  std::uint32_t row_moment(const MaxPlusMatrix& matrix, std::size_t row,
                           const std::vector<std::uint32_t>& columns) {
    std::size_t found = 0, only = 0;
    for (std::size_t j = 0; j < matrix.columns(); ++j) {
      if (matrix.at(row, j) == kNever) continue;
      ++found;
      only = j;
    }
    if (found == 1 && matrix.at(row, only) == 0) return columns[only];
    const std::uint32_t moment = new_moment();
    for (std::size_t j = 0; j < matrix.columns(); ++j) {
      if (matrix.at(row, j) != kNever) add_term(moment, columns[j], matrix.at(row, j));
    }
    return moment;
  }

  void add_class(std::uint32_t c) {
    const RankClass& rank_class = program_.rank_classes()[c];
    std::vector<std::uint32_t> lanes(rank_class.lanes.size(), c);  // moment c: the start offset
    std::vector<std::uint32_t> slots(rank_class.slot_count, c);
    for (std::uint32_t i = 0; i < rank_class.instances.size(); ++i) {
      const BlockInstance& instance = rank_class.instances[i];
      add_instance(instance, order_.first_membership[order_.first_instance[c] + i], lanes, slots);
    }
    result_.lane_moment_.push_back(std::move(lanes));
  }

  void add_instance(const BlockInstance& instance, std::size_t membership, std::vector<std::uint32_t>& lanes,
                    std::vector<std::uint32_t>& slots) {
    const Block& block = program_.block(instance.block);
    const MaxPlusMatrix& matrix = matrices_[instance.block.index()];
    columns_.clear();
    const auto bound = [&](std::size_t l) {
      return instance.lanes.empty() ? l : std::size_t{instance.lanes[l]};
    };
    for (std::size_t l = 0; l < block.lanes().size(); ++l) columns_.push_back(lanes[bound(l)]);
    for (const std::uint16_t slot : instance.in_slots) columns_.push_back(slots[slot]);
    for (std::size_t k = 0; k < block.collective_tasks().size(); ++k)
      columns_.push_back(completion_[membership + k]);

    std::size_t row = 0;
    for (std::size_t l = 0; l < block.lanes().size(); ++l)
      lanes[bound(l)] = row_moment(matrix, row++, columns_);
    for (const std::uint16_t slot : instance.out_slots) slots[slot] = row_moment(matrix, row++, columns_);
    for (std::size_t k = 0; k < block.collective_tasks().size(); ++k) {
      arrival_[membership + k] = row_moment(matrix, row++, columns_);
    }
  }

  // Folded: the ranks of a class arrive together, so spanning and aligned groups are the same.
  void add_collective(std::uint32_t k) {
    const Collective& collective = program_.collectives()[k];
    memberships_.clear();
    for (const CollectiveMember& m : collective.members) {
      const std::size_t flat = order_.first_instance[m.rank_class.index()] + m.instance.index();
      const auto tasks = program_.block_of(m.rank_class, m.instance).collective_tasks();
      memberships_.push_back(
          order_.first_membership[flat] +
          static_cast<std::size_t>(std::lower_bound(tasks.begin(), tasks.end(), m.task) - tasks.begin()));
    }
    std::uint32_t transfer = 0;
    if (collective.kind == CollectiveKind::rooted_from) {
      transfer = arrival_[memberships_[collective.root]];
    } else {
      transfer = new_moment();
      for (const std::size_t m : memberships_) add_term(transfer, arrival_[m], 0);
    }
    for (std::uint32_t m = 0; m < memberships_.size(); ++m) {
      const CollectiveMember& member = collective.members[m];
      const BlockId block = program_.rank_class(member.rank_class).instances[member.instance.index()].block;
      const double duration = costs_.duration_us(block)[member.task.index()];
      const bool waits = waits_for_others(collective, m);
      if (waits) add_term(completion_[memberships_[m]], transfer, duration);
      if (!waits || collective.kind == CollectiveKind::rooted_from) {
        add_term(completion_[memberships_[m]], arrival_[memberships_[m]], duration);
      }
    }
  }

  Result<ComposedProgram> sorted() {
    const std::size_t n = moments_.size();
    std::vector<std::uint32_t> waits(n, 0);
    std::vector<std::size_t> first_follower(n + 1, 0);
    for (std::uint32_t m = 0; m < n; ++m) waits[m] = moments_[m].count;
    for (const Term& t : terms_) ++first_follower[t.moment + 1];
    for (std::size_t m = 0; m < n; ++m) first_follower[m + 1] += first_follower[m];
    std::vector<std::uint32_t> followers(terms_.size());
    std::vector<std::size_t> next(first_follower.begin(), first_follower.end() - 1);
    for (std::uint32_t m = 0; m < n; ++m) {
      for (const Term& t : terms_of(m)) followers[next[t.moment]++] = m;
    }
    std::vector<std::uint32_t> sequence, position(n);
    sequence.reserve(n);
    for (std::uint32_t m = 0; m < n; ++m) {
      if (waits[m] == 0) sequence.push_back(m);
    }
    for (std::size_t done = 0; done < sequence.size(); ++done) {
      const std::uint32_t m = sequence[done];
      position[m] = static_cast<std::uint32_t>(done);
      for (std::size_t f = first_follower[m]; f < first_follower[m + 1]; ++f) {
        if (--waits[followers[f]] == 0) sequence.push_back(followers[f]);
      }
    }
    if (sequence.size() != n) return Error{"collectives wait for each other in a circle"};

    // Only the start offsets wait for nothing, so they are the first moments, in order of classes.
    result_.class_count_ = program_.rank_classes().size();
    result_.first_term_.reserve(n + 1);
    result_.terms_.reserve(terms_.size());
    for (const std::uint32_t m : sequence) {
      for (const Term& t : terms_of(m)) result_.terms_.push_back({t.delay_us, position[t.moment]});
      result_.first_term_.push_back(result_.terms_.size());
    }
    for (auto& lanes : result_.lane_moment_) {
      for (std::uint32_t& moment : lanes) moment = position[moment];
    }
    return std::move(result_);
  }

  const Program& program_;
  const Costs& costs_;
  const ExecutionOrder& order_;
  std::vector<MaxPlusMatrix> matrices_;  // [block]
  struct Moment {
    std::size_t first = 0;  // into terms_
    std::uint32_t count = 0;
  };
  std::vector<Moment> moments_;
  std::vector<Term> terms_;
  std::vector<std::uint32_t> arrival_, completion_;  // [membership]
  std::vector<std::uint32_t> columns_;
  std::vector<std::size_t> memberships_;
  ComposedProgram result_;
};

}  // namespace detail

Result<ComposedProgram> ComposedProgram::compose(const Program& program, const Costs& costs) {
  STEPCAST_ASSIGN(const ExecutionOrder order, order_execution(program));
  STEPCAST_TRY(costs.check(program));
  return detail::Composer{program, costs, order}.compose();
}

Result<ComposedResult> ComposedProgram::evaluate(const std::vector<double>& start_offset_us) const {
  if (!start_offset_us.empty() && start_offset_us.size() != class_count_) {
    return Error{"wrong number of start offsets"}
        .found(std::to_string(start_offset_us.size()))
        .expected(fmt::format("{}, one for each rank class, or none", class_count_));
  }
  std::vector<double> values(moment_count(), kNever);
  for (std::size_t c = 0; c < class_count_; ++c) {
    const double offset = start_offset_us.empty() ? 0.0 : start_offset_us[c];
    if (!std::isfinite(offset)) {
      return Error{fmt::format("invalid start offset {}", c)}
          .found(fmt::format("{} us", offset))
          .expected("a finite time");
    }
    values[c] = offset;
  }
  for (std::size_t m = class_count_; m < values.size(); ++m) {
    double value = kNever;
    for (std::size_t t = first_term_[m]; t < first_term_[m + 1]; ++t) {
      value = std::max(value, values[terms_[t].moment] + terms_[t].delay_us);
    }
    values[m] = value;
  }
  ComposedResult result;
  result.lane_free_us.reserve(lane_moment_.size());
  for (const auto& lanes : lane_moment_) {
    std::vector<double>& free = result.lane_free_us.emplace_back();
    free.reserve(lanes.size());
    for (const std::uint32_t moment : lanes) free.push_back(values[moment]);
  }
  return result;
}

std::size_t ComposedProgram::memory_bytes() const {
  return first_term_.capacity() * sizeof(std::size_t) + terms_.capacity() * sizeof(Term);
}

}  // namespace stepcast
