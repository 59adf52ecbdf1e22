#include "stepcast/base/output_file.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/output_places.h"

namespace stepcast::test::output_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string refused(const fs::path& path, const std::vector<fs::path>& inputs = {}) {
  const auto output = OutputFile::at(path, inputs);
  EXPECT_FALSE(output.ok()) << path;
  return output.ok() ? std::string{} : output.error().message();
}

mode_t mode_of(const fs::path& path) {
  struct stat found {};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found.st_mode;
}

TEST(OutputFile, ReplacesWholeFiles) {
  const OwnFolder folder;
  ASSERT_TRUE(write_file(folder.file("a"), "one").ok());
  ASSERT_TRUE(write_file(folder.file("a"), "two").ok());
  EXPECT_EQ(text_of(folder.file("a")), "two");
  EXPECT_EQ(folder.count(), 1) << "a temporary file is left";
}

TEST(OutputFile, KeepsTheModeOfWhatItReplaces) {
  const OwnFolder folder;
  ASSERT_TRUE(write_file(folder.file("private"), "one").ok());
  ASSERT_EQ(::chmod(folder.file("private").c_str(), 0640), 0);
  ASSERT_TRUE(write_file(folder.file("private"), "two").ok());
  EXPECT_EQ(mode_of(folder.file("private")) & 07777U, 0640U);
}

TEST(OutputFile, WritesWhereLinksLead) {
  const OwnFolder folder;
  fs::create_directory(folder.file("runs"));
  ASSERT_TRUE(write_file(folder.file("runs/7.json"), "old").ok());
  fs::create_symlink("runs/7.json", folder.file("latest"));
  fs::create_symlink("latest", folder.file("newest"));
  ASSERT_TRUE(write_file(folder.file("newest"), "new").ok());
  EXPECT_EQ(text_of(folder.file("runs/7.json")), "new");
  EXPECT_TRUE(fs::is_symlink(folder.file("newest")));
  EXPECT_TRUE(fs::is_symlink(folder.file("latest")));

  fs::create_symlink("runs/8.json", folder.file("next"));  // leads to no file yet
  ASSERT_TRUE(write_file(folder.file("next"), "first").ok());
  EXPECT_TRUE(fs::is_symlink(folder.file("next")));
  EXPECT_EQ(text_of(folder.file("runs/8.json")), "first");

  fs::create_symlink("b", folder.file("a"));
  fs::create_symlink("a", folder.file("b"));
  EXPECT_THAT(refused(folder.file("a")), HasSubstr("links that lead in a circle"));
}

TEST(OutputFile, WritesIntoFifosAndLeavesThemThere) {
  const OwnFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  const int reader = ::open(folder.file("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(write_file(folder.file("fifo"), "through").ok());
  char read[16] = {};
  EXPECT_EQ(::read(reader, read, sizeof read), 7);
  EXPECT_STREQ(read, "through");
  ::close(reader);
  EXPECT_TRUE(S_ISFIFO(mode_of(folder.file("fifo"))));
  EXPECT_EQ(folder.count(), 1);
}

TEST(OutputFile, WritesToDevicesAndLeavesThemThere) {
  const OwnFolder folder;
  if (!make_device(folder.file("null"), 3)) GTEST_SKIP() << "no device nodes can be made here";
  fs::create_symlink("null", folder.file("link"));
  EXPECT_TRUE(write_file(folder.file("null"), "away").ok());
  EXPECT_TRUE(write_file(folder.file("link"), "away").ok());
  EXPECT_TRUE(S_ISCHR(mode_of(folder.file("null"))));
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
}

TEST(OutputFile, AFullDeviceIsAFaultOfTheMachine) {
  const OwnFolder folder;
  if (!make_device(folder.file("full"), 7)) GTEST_SKIP() << "no device nodes can be made here";
  const auto status = write_file(folder.file("full"), "text");
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().is_of_machine());
  EXPECT_THAT(status.error().message(), EndsWith("cannot write: No space left on device"));
}

// Files of this process may for a while not grow beyond `bytes`: what a full disk does, for any user.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(OutputFile, LeavesTheOldContentWhereTheNewDoesNotFit) {
  const OwnFolder folder;
  ASSERT_TRUE(write_file(folder.file("a"), "old").ok());
  const auto status = [&] {
    const FileSizeLimit limit{4096};
    return write_file(folder.file("a"), std::string(10'000, 'x'));
  }();
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().is_of_machine());
  EXPECT_THAT(status.error().message(), HasSubstr("cannot write: "));
  EXPECT_EQ(text_of(folder.file("a")), "old");
  EXPECT_EQ(folder.count(), 1) << "a temporary file is left";
}

TEST(OutputFile, WritesToOpenDescriptorsFromWhereTheyAre) {
  const OwnFolder folder;
  const int opened = ::open(folder.file("log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(opened, 0);
  ASSERT_EQ(::write(opened, "before ", 7), 7);
  EXPECT_TRUE(write_file("/dev/fd/" + std::to_string(opened), "between").ok());
  EXPECT_EQ(::write(opened, " behind", 7), 7);
  ::close(opened);
  EXPECT_EQ(text_of(folder.file("log")), "before between behind");
  EXPECT_EQ(folder.count(), 1);
}

TEST(OutputFile, IsNotOneOfTheInputsByAnyName) {
  const OwnFolder folder;
  ASSERT_TRUE(write_file(folder.file("data.csv"), "measured").ok());
  fs::create_hard_link(folder.file("data.csv"), folder.file("hard.csv"));
  fs::create_symlink("data.csv", folder.file("soft.csv"));
  const std::vector<fs::path> inputs = {folder.file("none"), folder.file("data.csv")};
  EXPECT_TRUE(OutputFile::at(folder.file("new.csv"), inputs).ok());
  for (const char* name : {"data.csv", "hard.csv", "soft.csv"}) {
    EXPECT_THAT(refused(folder.file(name), inputs),
                HasSubstr("is read to make the result; writing would destroy it"));
  }
  EXPECT_EQ(text_of(folder.file("data.csv")), "measured");
}

TEST(OutputFile, SaysWhatIsNoFileToWriteTo) {
  const OwnFolder folder;
  EXPECT_EQ(refused(""), "the name of a file to write is empty");
  EXPECT_THAT(refused(folder.path()), HasSubstr("found a folder, expected a file to write to"));
  EXPECT_THAT(refused(folder.file("no/such/folder")), EndsWith("cannot write: No such file or directory"));
  const auto missing = OutputFile::at(folder.file("no/such/folder"));
  EXPECT_FALSE(missing.error().is_of_machine());
}

TEST(OutputFile, DoesNotReplaceWhatMustNotBeWritten) {
  const OwnFolder folder;
  ASSERT_TRUE(write_file(folder.file("kept"), "old").ok());
  ASSERT_EQ(::chmod(folder.file("kept").c_str(), 0400), 0);
  if (::access(folder.file("kept").c_str(), W_OK) == 0) GTEST_SKIP() << "this user may write everything";
  EXPECT_THAT(refused(folder.file("kept")), EndsWith("cannot write: Permission denied"));
}

}  // namespace
}  // namespace stepcast::test::output_file_test
