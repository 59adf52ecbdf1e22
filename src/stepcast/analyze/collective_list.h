// The collectives of a step, and the list of the most expensive ones that a forecast shows, over all rounds
// of a pipeline. Each entry has its number among the collectives of the same name.
//
// A Program contains one round of the steady phase of a pipeline; the other rounds are left out
// (steady_rounds.h). In a round that is left out, the same collectives happen some periods later, and their
// numbers are higher by the number of collectives per round. So the list is computed without writing out all
// rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/steady_rounds.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/program/program.h"

namespace stepcast {

// The part of one member in a collective. Times in microseconds.
struct CollectiveArrival {
  RankClassId rank_class;
  std::size_t task = 0;  // flat number
  double arrival_us = 0;
  double wait_us = 0;  // until the last member that it depends on arrives
  double transfer_us = 0;
  double exposed_us = 0;  // the part of the transfer in which no stream of the rank computes
  double end_us = 0;
};

// One collective: when the members arrived, who arrived last, how long the others waited and how long the
// transfer took.
struct CollectiveOccurrence {
  CollectiveId collective;
  CollectiveOp op = CollectiveOp::unknown;
  NameId name;
  double message_bytes = -1;  // -1: unknown
  std::vector<CollectiveArrival> members;
  std::size_t last = 0;      // index into members of the last to arrive; the first of several
  double total_wait_us = 0;  // sum over members
  double longest_wait_us = 0;
  // The shortest transfer time among the members: it contains no waiting.
  double transfer_us = 0;
  // The time of the first arrival; infinite without members.
  [[nodiscard]] double start_us() const;
};

// All collectives of the Program, in the order of their first arrivals.
[[nodiscard]] std::vector<CollectiveOccurrence> collective_occurrences(const FlatProgram& flat,
                                                                       const TaskTimes& times);

// The label of collectives with an unknown group.
inline constexpr std::string_view kUnknownGroup = "unknown";

// The list for any number of left-out rounds. Immutable after construction.
class CollectiveList {
 public:
  CollectiveList() = default;
  // `occurrences` must be in the order of their first arrivals. `rounds` may be null: no rounds are left out.
  // At most `most` collectives are listed; 0 means all.
  CollectiveList(const FlatProgram& flat, std::span<const CollectiveOccurrence> occurrences,
                 const SteadyRounds* rounds, std::size_t most);

  // The number of collectives if `rounds` more rounds are counted.
  [[nodiscard]] std::uint64_t count(std::uint64_t rounds) const;
  // The most expensive collectives of a step with `rounds` more rounds of `period_us` each, in the order of
  // time. With a limit, the cost no longer grows with the rounds from few_rounds_ on.
  [[nodiscard]] std::vector<ForecastCollective> listed(std::uint64_t rounds, double period_us) const;

 private:
  enum class Phase : std::uint8_t { before, repeats, after };  // before, in or after the round that repeats
  static constexpr std::size_t kPhases = 3;
  struct Meeting {
    double start_us = 0;     // first arrival in the Program
    double cost_us = 0;      // waiting of all members and transfer
    std::uint32_t name = 0;  // index of the name
    Phase phase = Phase::before;
    bool has_members = true;
    std::uint32_t shown = 0;  // index into shown_
  };
  // A meeting in one of the rounds. Ordered by time, then by meeting, then by round.
  struct Copy {
    double start_us = 0;
    std::uint32_t meeting = 0;
    std::uint64_t round = 0;
    friend bool operator<(const Copy& a, const Copy& b) {
      return a.start_us != b.start_us ? a.start_us < b.start_us
             : a.meeting != b.meeting ? a.meeting < b.meeting
                                      : a.round < b.round;
    }
  };
  // The number of each copy among those of the same name, with `rounds` more rounds.
  struct Numbers {
    std::uint64_t rounds = 0;
    std::vector<std::uint32_t> first;    // [meeting] index of its first copy in ordinal
    std::vector<std::uint32_t> ordinal;  // [copy] number among those of the same name
  };

  // Fills dearest_: per phase, the `most` meetings that cost most.
  void keep_dearest(std::size_t most);
  // The first round in which a meeting happens.
  [[nodiscard]] std::uint64_t first_round(const Meeting& meeting, std::uint64_t rounds) const {
    return meeting.phase == Phase::after ? rounds : 0;
  }
  // The number of times a meeting happens.
  [[nodiscard]] std::uint64_t copies(const Meeting& meeting, std::uint64_t rounds) const {
    return meeting.phase == Phase::repeats ? rounds + 1 : 1;
  }
  // The copy of a meeting in a round, moved by the periods in between.
  [[nodiscard]] Copy copy(std::uint32_t meeting, std::uint64_t round, double period_us) const {
    return {meetings_[meeting].start_us + static_cast<double>(round) * period_us, meeting, round};
  }
  // The copies that are listed, in the order of time. Of copies with the same cost the earliest are chosen.
  [[nodiscard]] std::vector<Copy> chosen(std::uint64_t rounds, double period_us) const;
  // Appends the earliest `most` copies of `meetings` to `copies`.
  void add_earliest(std::span<const std::uint32_t> meetings, std::uint64_t rounds, double period_us,
                    std::size_t most, std::vector<Copy>& copies) const;
  // Numbers all copies by writing out all rounds: O(n log n) in the number of copies.
  [[nodiscard]] Numbers number(std::uint64_t rounds, double period_us) const;
  // The number of one copy, from numbers that may be of fewer rounds.
  [[nodiscard]] std::uint32_t ordinal(const Numbers& numbers, const Copy& copy, std::uint64_t rounds) const;

  std::vector<Meeting> meetings_;  // in the order of their first arrivals
  // The collectives that may be listed, with their times in the Program.
  std::vector<ForecastCollective> shown_;
  // Indices of the meetings that may be listed, the most expensive first.
  std::vector<std::uint32_t> dearest_;
  std::vector<std::uint32_t> of_round_;  // [name] number of meetings per round
  std::uint64_t counts_[kPhases] = {};   // [phase] number of meetings
  std::uint64_t listed_[kPhases] = {};   // [phase] number of meetings that have members
  std::size_t most_ = 0;
  // With at least this number of rounds, ordinals follow from few_ without writing out all rounds.
  std::uint64_t few_rounds_ = 0;
  Numbers few_;
};

}  // namespace stepcast
