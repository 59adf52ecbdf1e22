#include "stepcast/sources/recorded_source.h"

namespace stepcast {

std::string RecordedSource::device() const {
  for (const RecordedRank& rank : traces_.ranks)
    if (!rank.devices.empty() && !rank.devices.front().name.empty()) return rank.devices.front().name;
  return {};
}

}  // namespace stepcast
