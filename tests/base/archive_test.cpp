#include "stepcast/base/archive.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"

#include "tests/support/fails_with.h"
#include "tests/support/npz_archive.h"
#include "tests/support/tar_archive.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::archive_test {
namespace {

using test::FailsWith;
using test::tar_archive;
using test::zip_archive;
using ::testing::ElementsAre;

// Larger than what is read at once.
std::string text_of(char letter) { return std::string(300'000, letter) + letter; }

std::string gzip(const std::string& content) { return *gzip_compress(content); }

// One archive on the disk.
class Written {
 public:
  explicit Written(const std::string& content, const std::string& name = "a.archive")
      : path_(folder_.path() / name) {
    EXPECT_TRUE(write_file(path_, content).ok());
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  test::TemporaryFolder folder_;
  std::filesystem::path path_;
};

const std::string& plain_tar() {
  static const std::string archive = tar_archive({{"./job/", "", '5'},
                                                  {"./job/a.json", text_of('a')},
                                                  {"job/link", "", '2'},
                                                  {"job/b.json.gz", gzip(text_of('b'))}});
  return archive;
}

TEST(Archive, EveryKindIsReadAsAFolder) {
  const std::string zip = zip_archive({{.name = "job/", .content = ""},
                                       {.name = "job/a.json", .content = text_of('a'), .deflated = true},
                                       {.name = "job/b.json.gz", .content = gzip(text_of('b'))}});
  for (const std::string& content : {plain_tar(), gzip(plain_tar()), zip}) {
    const Written archive{content};
    ASSERT_TRUE(is_archive(archive.path()));
    const auto a = archive.path() / "job/a.json", b = archive.path() / "job/b.json.gz";
    const auto members = archive_members(archive.path());
    ASSERT_TRUE(members.ok()) << members.error().message();
    EXPECT_THAT(*members, ElementsAre(a, b));
    EXPECT_EQ(archive_of(a), archive.path());
    EXPECT_EQ(*read_file(a), text_of('a'));
    EXPECT_EQ(*read_file(b), text_of('b'));
    EXPECT_THAT(read_file(archive.path() / "job/c.json"), FailsWith("no member `job/c.json`"));
    EXPECT_THAT(files_on_disk({b, a, archive.path()}), ElementsAre(archive.path()));
  }
}

TEST(Archive, ContentTellsAndNotTheName) {
  EXPECT_FALSE(is_archive(Written{R"({"traceEvents": []})", "traces.zip"}.path()));
  EXPECT_FALSE(is_archive(Written{std::string(2048, '\0'), "traces.tar"}.path()));
  EXPECT_FALSE(is_archive("/no/such.tar"));
  const Written file{"text"};
  EXPECT_EQ(archive_of(file.path() / "x"), std::nullopt);
  EXPECT_EQ(archive_of(file.path()), std::nullopt);
  EXPECT_THAT(read_file(file.path() / "x"), FailsWith("cannot open: Not a directory"));
}

TEST(Archive, LongNamesOfPaxGnuAndUstar) {
  const std::string long_name = std::string(150, 'd') + "/rank0.json";
  const std::string said = fmt::format("path={}\n", long_name);
  const std::string line = fmt::format("{} {}", said.size() + 4, said);
  for (const std::string& archive :
       {tar_archive({{"pax", line, 'x'}, {"short", "{}"}, {"own", "{}"}}),
        tar_archive({{"././@LongLink", long_name + '\0', 'L'}, {"short", "{}"}, {"own", "{}"}}),
        tar_archive({{"rank0.json", "{}", '0', std::string(150, 'd')}, {"own", "{}"}})}) {
    const auto members = tar_members(archive, "a.tar");
    ASSERT_TRUE(members.ok()) << members.error().message();
    EXPECT_THAT(*members, ElementsAre(long_name, "own"));
  }
}

TEST(Archive, NamesThatLeadOutAreRefused) {
  for (const char* const name : {"../x.json", "/etc/x.json", "a/../../x.json", "a\nb.json", ".."}) {
    EXPECT_THAT(tar_members(tar_archive({{name, "{}"}}), "a.tar"), FailsWith("a.tar: a member: found"))
        << name;
    const Written zip{zip_archive({{.name = name, .content = "{}"}})};
    EXPECT_THAT(archive_members(zip.path()), FailsWith("a member: found")) << name;
  }
  EXPECT_THAT(tar_members(tar_archive({{"a.json", "1"}, {"./a.json", "2"}}), "a.tar"),
              FailsWith("member a.json: found two files of this name"));
}

TEST(Archive, CutOffAnywhereIsAnError) {
  const std::string whole = tar_archive({{"a.json", std::string(700, 'a')}, {"b.json", "{}"}});
  // Not at the end of a member: that may be all of it.
  for (const std::size_t size : {1U, 511U, 513U, 1000U, 1535U, 1537U, 2048U, 2559U})
    EXPECT_FALSE(tar_members(whole.substr(0, size), "a.tar").ok()) << size;
  const Written cut{whole.substr(0, 1000)};
  EXPECT_THAT(archive_members(cut.path()),
              FailsWith("member a.json: found the end of the archive in the middle of it"));
  const std::string packed = gzip(whole);
  EXPECT_THAT(tar_members(std::string_view{packed}.substr(0, packed.size() / 2), "a.tgz"),
              FailsWith("the gzip data ends early"));
}

TEST(Archive, DamagedHeadersAreRefused) {
  std::string archive = tar_archive({{"a.json", "{}"}, {"b.json", "{}"}});
  archive[1024 + 3] ^= 1;
  EXPECT_THAT(tar_members(archive, "a.tar"),
              FailsWith("behind member a.json: found bytes that are not a tar header"));
  EXPECT_THAT(tar_members(tar_archive({{"a.json", "{}", 'S'}}), "a.tar"), FailsWith("with holes"));
  EXPECT_THAT(tar_members(tar_archive({{"x", std::string(70'000, 'x'), 'L'}}), "a.tar"),
              FailsWith("a name of 70000 bytes, expected at most 65536"));
  const std::string huge = "20 size=99999999999\n";
  EXPECT_THAT(tar_members(tar_archive({{"x", huge, 'x'}, {"a.json", "{}"}}), "a.tar"),
              FailsWith("member a.json: found the end of the archive"));
}

TEST(Archive, VisitsInOnePass) {
  const Written archive{gzip(plain_tar())};
  const auto members = archive_members(archive.path());
  ASSERT_TRUE(members.ok());
  std::vector<std::pair<std::string, char>> seen;
  const Status visited = visit_members(archive.path(), *members,
                                       [&](const std::filesystem::path& file, ByteSource& source) -> Status {
                                         STEPCAST_ASSIGN(const std::string_view start, source.peek(1));
                                         seen.emplace_back(file.filename().string(), start.front());
                                         return Ok{};
                                       });
  ASSERT_TRUE(visited.ok()) << visited.error().message();
  EXPECT_THAT(seen, ElementsAre(std::pair{"a.json", 'a'}, std::pair{"b.json.gz", 'b'}));
}

}  // namespace
}  // namespace stepcast::archive_test
