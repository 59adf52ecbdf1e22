#include "stepcast/report/sharding_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/report/detail/sharding_fields.h"
#include "stepcast/report/fields/write_fields.h"
#include "stepcast/report/text_table.h"

namespace stepcast {

using Align = TextTable::Align;

std::string sharding_text(const ShardingComparison& all) {
  TextTable table{{{"sharding", Align::left},
                   {"expected\nms"},
                   {"step\nms"},
                   {"p10\nms"},
                   {"p90\nms"},
                   {"lookups of\nbusiest ms"},
                   {"imbalance"},
                   {"sent by\nbusiest MB"},
                   {"exchange\nms"},
                   {"memory\nGiB"},
                   {"samples\nper s"},
                   {"", Align::left}}};
  for (const ComparedSharding& c : all.shardings) {
    const DlrmRank& worst = c.fullest();
    const double us = c.step.time.time.value();
    const bool on_gpu = worst.memory_bytes <= c.step.available_bytes;
    const std::string note =
        c.step.fits ? ""
        : on_gpu    ? fmt::format("does not fit: tables need more than {:.0f} GiB of host memory",
                                  c.step.host_available_bytes / kGiB)
                    : fmt::format("does not fit: rank {} needs {:.1f} GiB of {:.1f}", c.step.worst_rank,
                                  worst.memory_bytes / kGiB, c.step.available_bytes / kGiB);
    table.row({c.plan.name, table_number(c.expected_us * 1e-3, 3), table_number(us * 1e-3, 3),
               table_number(c.step.time.p10.value() * 1e-3, 3),
               table_number(c.step.time.p90.value() * 1e-3, 3), table_number(c.most_lookups_us() * 1e-3, 3),
               table_number(c.step.lookup_imbalance, 2), table_number(c.most_sent_bytes() * 1e-6, 1),
               table_number(c.step.exchange_us * 1e-3, 3), table_number(worst.memory_bytes / kGiB, 1),
               table_number(static_cast<double>(all.global_batch_samples) / us * 1e6, 0), note});
  }
  const ComparedSharding& best = all.shardings.front();
  std::string text = table.text() + "\n" + all.verdict() + "\n";
  if (const double above = best.step.time.time.value() / all.least_step_us - 1;
      best.step.fits && above >= 0) {
    text +=
        fmt::format("No placement of whole tables takes less than {:.3f} ms, which is {:.1f} % below {}.\n",
                    all.least_step_us * 1e-3, 100 * (1 - 1 / (1 + above)), best.plan.name);
  }
  text += "\n";
  TextTable ranks{{{"rank"},
                   {"tables"},
                   {"lookup\nms"},
                   {"backward\nms"},
                   {"tables\nGiB"},
                   {"memory\nGiB"},
                   {"sent MB"}}};
  constexpr std::size_t kMostRanks = 32;
  for (std::size_t r = 0; r < std::min(best.step.ranks.size(), kMostRanks); ++r) {
    const DlrmRank& rank = best.step.ranks[r];
    ranks.row({std::to_string(r), std::to_string(best.tables[r]), table_number(rank.lookup_us * 1e-3, 3),
               table_number(rank.lookup_backward_us * 1e-3, 3), table_number(rank.table_bytes / kGiB, 2),
               table_number(rank.memory_bytes / kGiB, 2), table_number(rank.sent_bytes * 1e-6, 1)});
  }
  text += fmt::format("Ranks of {}:\n{}", best.plan.name, ranks.text());
  if (best.step.ranks.size() > kMostRanks)
    text += fmt::format("and {} more\n", best.step.ranks.size() - kMostRanks);
  return text;
}

std::string sharding_json(const ShardingComparison& all) { return answer_json(all) + "\n"; }

}  // namespace stepcast
