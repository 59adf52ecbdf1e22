// Any bytes as a rank file, with and without the frame that tells accidents: an error, or a recording that is written as it
// was read and that a replay can be tried of.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stepcast/trace/rank_file.h"
#include "stepcast/trace/recorded_program.h"
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
  const std::string content = stepcast::rank_file_content(*file);
  const auto again = stepcast::parse_rank_file_content(content, "again");
  require(again.ok() && stepcast::rank_file_content(*again) == content);
  static_cast<void>(stepcast::summarize(file->rank, stepcast::can_be_replayed));
  const stepcast::RecordedInput input{&file->rank, file->execution_trace ? &*file->execution_trace : nullptr};
  const auto recorded = stepcast::rebuild_program({&input, 1});
  require(recorded.ok() || !recorded.error().message().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content{reinterpret_cast<const char*>(data), size};
  check(stepcast::parse_rank_file(content, "fuzz"));
  check(stepcast::parse_rank_file_content(content, "fuzz"));
  return 0;
}
