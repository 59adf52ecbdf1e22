// Writes the traces of examples/dlrm_4gpu: one training step of a small recommendation model on four ranks
// that never existed.
//
//   generate_dlrm_example FOLDER        writes kineto_rank0..3.json.gz and et_rank0..3.json.gz, the same
//   bytes every time
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"

#include "lab/kineto_writer.h"
#include "tests/support/trace_generator.h"

namespace {

stepcast::Status write(const stepcast::test::GeneratedRank& rank, const std::filesystem::path& folder,
                       std::size_t number) {
  STEPCAST_TRY(stepcast::write_kineto(rank.recorded, folder / fmt::format("kineto_rank{}.json.gz", number)));
  STEPCAST_ASSIGN(const std::string compressed, stepcast::gzip_compress(rank.execution_trace, 9));
  return stepcast::write_file(folder / fmt::format("et_rank{}.json.gz", number), compressed);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} FOLDER\n", argv[0]);
    return 2;
  }
  const stepcast::test::GeneratedJob job = stepcast::test::generate_job(stepcast::test::dlrm_example());
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    if (const auto status = write(job.ranks[r], argv[1], r); !status.ok()) {
      fmt::print(stderr, "{}\n", status.error().message());
      return 1;
    }
  }
  return 0;
}
