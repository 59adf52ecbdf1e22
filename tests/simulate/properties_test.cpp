// Properties that hold for every Program, on random ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

#include "tests/support/composition.h"
#include "tests/support/random_program.h"
#include "tests/support/reference_simulator.h"

namespace stepcast::properties_test {
namespace {

using fixtures::random_offsets;
using fixtures::random_program;
using fixtures::RandomProgramOptions;
using fixtures::reference_simulate;
using fixtures::ReferenceTimes;

constexpr std::uint64_t kPrograms = 400;

Timeline simulate(const Program& program, const Costs& costs, bool unfold, std::vector<double> offsets = {}) {
  Result<Plan> plan = Plan::compile(program);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  Result<Timeline> timeline =
      plan->simulate(costs, {.unfold = unfold, .start_offset_us = std::move(offsets)});
  EXPECT_TRUE(timeline.ok()) << timeline.error().message();
  return std::move(timeline).value();
}

std::vector<double> per_rank(const Program& program, const std::vector<double>& per_class) {
  std::vector<double> result;
  for (std::size_t c = 0; c < per_class.size(); ++c) {
    result.insert(result.end(), program.rank_classes()[c].multiplicity, per_class[c]);
  }
  return result;
}

// Calls f(TaskRef) for every task in order, of one rank of each class or, unfolded, of all.
template <class F>
void for_each_task(const Program& program, bool unfold, F f) {
  for (std::uint32_t c = 0; c < program.rank_classes().size(); ++c) {
    const RankClass& rank_class = program.rank_classes()[c];
    for (std::uint32_t rank = 0; rank < (unfold ? rank_class.multiplicity : 1); ++rank) {
      for (std::uint32_t i = 0; i < rank_class.instances.size(); ++i) {
        for (std::uint32_t t = 0; t < program.block_of(RankClassId{c}, InstanceId{i}).task_count(); ++t) {
          f(TaskRef{RankClassId{c}, rank, InstanceId{i}, TaskId{t}});
        }
      }
    }
  }
}

std::string text(const TaskRef& t) {
  return "class " + std::to_string(t.rank_class.index()) + " rank " + std::to_string(t.rank) + " instance " +
         std::to_string(t.instance.index()) + " task " + std::to_string(t.task.index());
}

class RandomPrograms : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  // Seeds of this shard.
  template <class F>
  void for_each_seed(F f) {
    for (std::uint64_t seed = GetParam(); seed < kPrograms; seed += 4) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      f(seed);
      if (HasFailure()) return;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Shard, RandomPrograms, ::testing::Values(0, 1, 2, 3));

TEST_P(RandomPrograms, UnfoldedTimesAreThoseOfTheReference) {
  for_each_seed([](std::uint64_t seed) {
    const Program program = random_program(seed);
    const Costs costs{program};
    const std::vector<double> offsets = random_offsets(seed, program.rank_count());
    const Timeline timeline = simulate(program, costs, true, offsets);
    const auto reference = reference_simulate(program, costs, offsets);
    ASSERT_TRUE(reference.has_value());
    for (const auto& [ref, times] : reference->tasks) {
      ASSERT_EQ(timeline.at(ref).start_us, times.start_us) << text(ref);
      ASSERT_EQ(timeline.at(ref).end_us, times.end_us) << text(ref);
    }
    for (std::uint32_t c = 0; c < reference->lane_free_us.size(); ++c) {
      for (std::uint32_t rank = 0; rank < reference->lane_free_us[c].size(); ++rank) {
        const auto free = timeline.lane_free_us(RankClassId{c}, rank);
        ASSERT_TRUE(std::equal(free.begin(), free.end(), reference->lane_free_us[c][rank].begin()));
      }
    }
  });
}

TEST_P(RandomPrograms, FoldedTimesAreThoseOfEveryRankWithEqualOffsets) {
  for_each_seed([](std::uint64_t seed) {
    const Program program = random_program(seed, {.max_multiplicity = 13});
    const Costs costs{program};
    const std::vector<double> offsets = random_offsets(seed, program.rank_classes().size());
    const Timeline folded = simulate(program, costs, false, offsets);
    const Timeline unfolded = simulate(program, costs, true, per_rank(program, offsets));
    for_each_task(program, true, [&](const TaskRef& t) {
      ASSERT_EQ(folded.at(t).start_us, unfolded.at(t).start_us) << text(t);
      ASSERT_EQ(folded.at(t).end_us, unfolded.at(t).end_us) << text(t);
    });
    ASSERT_EQ(folded.end_us(), unfolded.end_us());
  });
}

TEST_P(RandomPrograms, ComposedAndExpandedAgree) {
  for_each_seed([](std::uint64_t seed) {
    const Program program = random_program(seed, {.max_instances = 20});
    const Costs costs{program};
    const std::vector<double> offsets = random_offsets(seed, program.rank_classes().size());
    const Timeline timeline = simulate(program, costs, false, offsets);
    Result<ComposedProgram> composed = ComposedProgram::compose(program, costs);
    ASSERT_TRUE(composed.ok()) << composed.error().message();
    Result<ComposedResult> result = composed->evaluate(offsets);
    ASSERT_TRUE(result.ok()) << result.error().message();
    for (std::uint32_t c = 0; c < offsets.size(); ++c) {
      const auto free = timeline.lane_free_us(RankClassId{c});
      ASSERT_EQ(result->lane_free_us[c].size(), free.size());
      for (std::size_t l = 0; l < free.size(); ++l) {
        ASSERT_NEAR(result->lane_free_us[c][l], free[l], 1e-9 * std::abs(free[l]))
            << "class " << c << " lane " << l;
      }
    }
    ASSERT_NEAR(result->end_us(), timeline.end_us(), 1e-9 * timeline.end_us());
  });
}

TEST_P(RandomPrograms, OrderOfRankClassesChangesNothing) {
  for_each_seed([](std::uint64_t seed) {
    const Program program = random_program(seed);
    std::vector<std::uint32_t> classes(program.rank_classes().size());
    std::iota(classes.begin(), classes.end(), 0u);
    std::reverse(classes.begin(), classes.end());
    if (classes.size() > 2) std::swap(classes[0], classes[1]);
    const Program permuted = fixtures::with_classes_in_order(program, classes);
    const std::vector<double> offsets = random_offsets(seed, classes.size());
    std::vector<double> permuted_offsets;
    for (const std::uint32_t c : classes) permuted_offsets.push_back(offsets[c]);
    const Timeline one = simulate(program, Costs{program}, false, offsets);
    const Timeline other = simulate(permuted, Costs{permuted}, false, permuted_offsets);
    for_each_task(program, false, [&](const TaskRef& t) {
      TaskRef same = t;
      same.rank_class = RankClassId{static_cast<std::size_t>(
          std::find(classes.begin(), classes.end(), t.rank_class.index()) - classes.begin())};
      ASSERT_EQ(one.at(t).start_us, other.at(same).start_us) << text(t);
      ASSERT_EQ(one.at(t).end_us, other.at(same).end_us) << text(t);
    });
  });
}

TEST_P(RandomPrograms, ALongerDurationOrDelayMakesNothingEarlier) {
  for_each_seed([](std::uint64_t seed) {
    const Program program = random_program(seed);
    const Costs before{program};
    const Timeline base = simulate(program, before, true);
    std::mt19937_64 random{seed};
    for (int trial = 0; trial < 5; ++trial) {
      Costs after = before;
      const BlockId block{random() % program.blocks().size()};
      const bool delay = random() % 2 == 0;
      const std::span<double> values = delay ? after.delay_us(block) : after.duration_us(block);
      if (values.empty()) continue;
      values[random() % values.size()] += 3.5;
      const Timeline longer = simulate(program, after, true);
      for_each_task(program, true, [&](const TaskRef& t) {
        ASSERT_GE(longer.at(t).start_us, base.at(t).start_us) << text(t);
        ASSERT_GE(longer.at(t).end_us, base.at(t).end_us) << text(t);
      });
    }
  });
}

// Exact, because the times are multiples of 1/8.
TEST_P(RandomPrograms, AnOffsetOfAllRanksShiftsEverything) {
  for_each_seed([](std::uint64_t seed) {
    const Program program = random_program(seed, {.whole_times = true});
    const Costs costs{program};
    std::vector<double> offsets = random_offsets(seed, program.rank_count(), true);
    const Timeline base = simulate(program, costs, true, offsets);
    for (double& offset : offsets) offset += 17.25;
    const Timeline shifted = simulate(program, costs, true, offsets);
    for_each_task(program, true, [&](const TaskRef& t) {
      ASSERT_EQ(shifted.at(t).start_us, base.at(t).start_us + 17.25) << text(t);
      ASSERT_EQ(shifted.at(t).end_us, base.at(t).end_us + 17.25) << text(t);
    });
    ASSERT_EQ(shifted.end_us(), base.end_us() + 17.25);
  });
}

// Every start keeps all constraints and is equal to one of them; every end of a task that joins nobody is
// start + duration.
TEST_P(RandomPrograms, StartsAreTight) {
  for_each_seed([](std::uint64_t seed) {
    const Program program = random_program(seed);
    const Costs costs{program};
    const std::vector<double> offsets = random_offsets(seed, program.rank_count());
    const Timeline timeline = simulate(program, costs, true, offsets);
    std::size_t rank_number = 0;
    for (std::uint32_t c = 0; c < program.rank_classes().size(); ++c) {
      const RankClass& rank_class = program.rank_classes()[c];
      for (std::uint32_t rank = 0; rank < rank_class.multiplicity; ++rank, ++rank_number) {
        std::vector<double> lanes(rank_class.lanes.size(), offsets[rank_number]);
        std::vector<double> slots(rank_class.slot_count, offsets[rank_number]);
        for (std::uint32_t i = 0; i < rank_class.instances.size(); ++i) {
          const BlockInstance& instance = rank_class.instances[i];
          const Block& block = program.block(instance.block);
          const auto durations = costs.duration_us(instance.block);
          const auto delays = costs.delay_us(instance.block);
          const auto times = timeline.instance(RankClassId{c}, rank, InstanceId{i});
          std::vector<double> arrivals;
          for (const std::uint16_t slot : instance.in_slots) arrivals.push_back(slots[slot]);
          const auto moment = [&](std::uint32_t code) {
            if (code >= 2 * times.size()) return arrivals[code - 2 * times.size()];
            return code % 2 == 0 ? times[code / 2].start_us : times[code / 2].end_us;
          };
          for (std::uint32_t t = 0; t < times.size(); ++t) {
            const std::uint32_t lane = block.lane_of(TaskId{t}).index();
            double& free = lanes[instance.lanes.empty() ? lane : instance.lanes[lane]];
            bool tight = times[t].start_us == free;
            ASSERT_GE(times[t].start_us, free);
            for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
              const double earliest = moment(block.sources()[e]) + delays[e];
              ASSERT_GE(times[t].start_us, earliest);
              tight = tight || times[t].start_us == earliest;
            }
            ASSERT_TRUE(tight) << "class " << c << " instance " << i << " task " << t;
            if (block.tasks()[t].kind == TaskKind::collective) {
              ASSERT_GE(times[t].end_us, times[t].start_us + durations[t]);
            } else {
              ASSERT_EQ(times[t].end_us, times[t].start_us + durations[t]);
            }
            free = times[t].end_us;
          }
          for (std::size_t p = 0; p < instance.out_slots.size(); ++p) {
            const OutPort& port = block.out_ports()[p];
            slots[instance.out_slots[p]] = moment(port.source.code()) + port.delay.value();
          }
        }
      }
    }
  });
}

// check() speaks of a circle exactly where the times of the reference do not settle.
TEST_P(RandomPrograms, CirclesAreFoundAndOnlyCircles) {
  std::size_t circles = 0, orders = 0;
  for_each_seed([&](std::uint64_t seed) {
    const RandomProgramOptions options{.max_instances = 8, .may_wait_in_circles = true};
    const Program program = random_program(seed, options);
    Costs costs{program};
    for (std::uint32_t b = 0; b < program.blocks().size(); ++b) {
      for (double& duration : costs.duration_us(BlockId{b})) duration += 1;  // a circle takes time
    }
    const bool settles = reference_simulate(program, costs).has_value();
    const Status status = program.check();
    ASSERT_EQ(status.ok(), settles) << (status.ok() ? "" : status.error().message());
    ++(settles ? orders : circles);
  });
  EXPECT_GT(circles, 5u);
  EXPECT_GT(orders, 5u);
}

TEST_P(RandomPrograms, TheSameSeedGivesTheSameBytes) {
  for_each_seed([](std::uint64_t seed) {
    const Program one = random_program(seed), other = random_program(seed);
    const Timeline a = simulate(one, Costs{one}, true), b = simulate(other, Costs{other}, true);
    for_each_task(one, true, [&](const TaskRef& t) {
      ASSERT_EQ(a.at(t).start_us, b.at(t).start_us);
      ASSERT_EQ(a.at(t).end_us, b.at(t).end_us);
    });
  });
}

}  // namespace
}  // namespace stepcast::properties_test
