// Any bytes as a rank file, compressed or not: an error, or a recording that is written as it was read and that a replay can be
// tried of.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/rank_file.h"
#include "stepcast/trace/trace_summary.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const stepcast::Result<stepcast::RankFile>& file) {
  if (!file.ok()) {
    require(!file.error().message().empty());
    return;
  }
  const auto bytes = stepcast::rank_file_bytes(*file);
  require(bytes.ok());
  const auto again = stepcast::parse_rank_file(*bytes, "again");
  require(again.ok() && stepcast::rank_file_bytes(*again).value() == *bytes);
  static_cast<void>(stepcast::summarize(file->rank, stepcast::can_be_replayed));
  const stepcast::RecordedInput input{&file->rank, file->execution_trace ? &*file->execution_trace : nullptr};
  const auto recorded = stepcast::rebuild_program({&input, 1});
  require(recorded.ok() || !recorded.error().message().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(stepcast::parse_rank_file({reinterpret_cast<const char*>(data), size}, "fuzz"));
  return 0;
}
