// Folders of generated traces, removed when the test is over.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "stepcast/base/output_file.h"

#include "lab/kineto_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trace_generator.h"

namespace stepcast::fixtures {

class TraceFolder {
 public:
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((path() / name).parent_path());
    EXPECT_TRUE(write_file(path() / name, content).ok()) << name;
    return path() / name;
  }
  std::filesystem::path write(const std::string& name, const RecordedRank& rank) const {
    std::filesystem::create_directories((path() / name).parent_path());
    EXPECT_TRUE(write_kineto(rank, path() / name).ok()) << name;
    return path() / name;
  }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace stepcast::fixtures
