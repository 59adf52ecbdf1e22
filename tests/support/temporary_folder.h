#pragma once

// A folder of its own for each object, gone with it. No other test, build or user shares it.
//
//   const TemporaryFolder folder;
//   std::ofstream{folder.path() / "made.csv"} << ...;
#include <filesystem>

namespace stepcast::test {

class TemporaryFolder {
 public:
  // Fails the test where no folder can be made.
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stepcast::test
