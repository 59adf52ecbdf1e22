// Folders of generated traces, removed when the test is over.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/trace/kineto_writer.h"

#include "tests/support/trace_generator.h"

namespace stepcast::testing {

class TraceFolder {
 public:
  TraceFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path{::testing::TempDir()} /
            ("stepcast_" + std::string{test->test_suite_name()} + "_" + test->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;
  ~TraceFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    EXPECT_TRUE(write_file_atomically(path_ / name, content).ok()) << name;
    return path_ / name;
  }
  std::filesystem::path write(const std::string& name, const RecordedRank& rank) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    EXPECT_TRUE(write_kineto(rank, path_ / name).ok()) << name;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace stepcast::testing
