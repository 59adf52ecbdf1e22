// Places to write to that are no regular files, and a folder of one's own to put them in.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/support/temporary_folder.h"

namespace stepcast::test {

class OwnFolder {
 public:
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path() / name; }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }
  // The number of files, left-overs included.
  [[nodiscard]] auto count() const {
    return std::distance(std::filesystem::directory_iterator(path()), std::filesystem::directory_iterator{});
  }

 private:
  TemporaryFolder folder_;
};

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

// A node of Linux's memory devices: minor 3 is /dev/null, 7 is /dev/full. False where nodes cannot be made or
// opened, as without the right to or in a folder that is mounted so.
inline bool make_device(const std::filesystem::path& path, unsigned minor) {
  if (::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, minor)) != 0) return false;
  const int opened = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (opened < 0) return false;
  ::close(opened);
  return true;
}

// True if /dev/full is there and is what it should be: every write fails, as on a full disk.
inline bool has_full_device() {
  const int opened = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (opened < 0) return false;
  const bool full = ::write(opened, "x", 1) < 0;
  ::close(opened);
  return full;
}

}  // namespace stepcast::test
