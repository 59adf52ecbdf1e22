// Every occurrence of a collective, and those that a forecast lists over all rounds of a pipeline: which cost most, each with
// its number among those of its name.
//
// Who meets in a round that a Program leaves out meets as in the one that it holds, some periods later. So the list is found
// without writing all of them out: a round further on, the same meetings have numbers that are higher by those of a round.
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

struct CollectiveArrival {
  RankClassId rank_class;
  std::size_t task = 0;  // flat number
  double arrival_us = 0;
  double wait_us = 0;  // for the last member it depends on
  double transfer_us = 0;
  double exposed_us = 0;  // transfer while no stream of the rank computes
  double end_us = 0;
};

// Who came when, who came last, how long the others waited, how long the transfer took.
struct CollectiveOccurrence {
  CollectiveId collective;
  CollectiveOp op = CollectiveOp::unknown;
  NameId name;
  double message_bytes = -1;  // -1: not known
  std::vector<CollectiveArrival> members;
  std::size_t last = 0;      // position in members of the one that arrived last; the first of several
  double total_wait_us = 0;  // over members
  double longest_wait_us = 0;
  double transfer_us = 0;                 // shortest of the members'
  [[nodiscard]] double start_us() const;  // first arrival
};

// All collectives of the Program in the order of their first arrival.
[[nodiscard]] std::vector<CollectiveOccurrence> collective_occurrences(const FlatProgram& flat,
                                                                       const TaskTimes& times);

// Label of collectives whose group is not known.
inline constexpr std::string_view kUnknownGroup = "unknown";

class CollectiveList {
 public:
  CollectiveList() = default;
  // `occurrences` in the order of their first arrivals; `rounds` may be null. Lists `most` of them; 0 is all.
  CollectiveList(const FlatProgram& flat, std::span<const CollectiveOccurrence> occurrences,
                 const SteadyRounds* rounds, std::size_t most);

  // How many there are with so many rounds more.
  [[nodiscard]] std::uint64_t count(std::uint64_t rounds) const;
  [[nodiscard]] std::vector<ForecastCollective> listed(std::uint64_t rounds, double period_us) const;

 private:
  enum class Phase : std::uint8_t { before, repeats, after };  // of the round that repeats
  static constexpr std::size_t kPhases = 3;
  struct Meeting {
    double start_us = 0;     // first arrival, in the Program
    double cost_us = 0;      // waiting and transfer
    std::uint32_t name = 0;  // which of the names
    Phase phase = Phase::before;
    bool has_members = true;
    std::uint32_t shown = 0;  // of shown_
  };
  // One of them in some round.
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
  // Numbers among those of a name, of all copies with `rounds` rounds more.
  struct Numbers {
    std::uint64_t rounds = 0;
    std::vector<std::uint32_t> first;    // [meeting] place of its first copy
    std::vector<std::uint32_t> ordinal;  // [place]
  };

  void keep_dearest(std::size_t most);
  [[nodiscard]] std::uint64_t first_round(const Meeting& meeting, std::uint64_t rounds) const {
    return meeting.phase == Phase::after ? rounds : 0;
  }
  [[nodiscard]] std::uint64_t copies(const Meeting& meeting, std::uint64_t rounds) const {
    return meeting.phase == Phase::repeats ? rounds + 1 : 1;
  }
  [[nodiscard]] Copy copy(std::uint32_t meeting, std::uint64_t round, double period_us) const {
    return {meetings_[meeting].start_us + static_cast<double>(round) * period_us, meeting, round};
  }
  [[nodiscard]] std::vector<Copy> chosen(std::uint64_t rounds, double period_us) const;
  void add_earliest(std::span<const std::uint32_t> meetings, std::uint64_t rounds, double period_us,
                    std::size_t most, std::vector<Copy>& copies) const;
  [[nodiscard]] Numbers number(std::uint64_t rounds, double period_us) const;
  [[nodiscard]] std::uint32_t ordinal(const Numbers& numbers, const Copy& copy, std::uint64_t rounds) const;

  std::vector<Meeting> meetings_;          // in the order of first arrivals
  std::vector<ForecastCollective> shown_;  // those that may be listed, as in the Program
  std::vector<std::uint32_t> dearest_;     // meetings that may be listed, those that cost most first
  std::vector<std::uint32_t> of_round_;    // [name] meetings of a round
  std::uint64_t counts_[kPhases] = {};     // [phase] meetings
  std::uint64_t listed_[kPhases] = {};     // [phase] of them with members
  std::size_t most_ = 0;
  std::uint64_t few_rounds_ = 0;  // from so many on, numbers follow from those of few_rounds_
  Numbers few_;
};

}  // namespace stepcast
