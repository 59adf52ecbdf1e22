#include "stepcast/base/read_scope.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/npz_file.h"
#include "stepcast/base/parallel.h"

#include "tests/support/temporary_folder.h"

namespace stepcast::read_scope_test {
namespace {

namespace fs = std::filesystem;

TEST(ReadScope, OpensWhatLiesInItsFoldersAlone) {
  const test::TemporaryFolder folder;
  const auto at = [&](const char* name) { return folder.path() / name; };
  fs::create_directories(at("given/inner"));
  fs::create_directories(at("given_too"));
  for (const char* name : {"given/inner/a.json", "given_too/b.json", "secret.json"})
    std::ofstream{at(name)} << "{}";
  fs::create_symlink(at("secret.json"), at("given/link.json"));
  const auto opens = [&](const char* name) { return ByteSource::open(at(name)).ok(); };
  const std::vector<fs::path> given = canonical_folders({at("given/../given")});
  {
    const ReadScope scope{&given};
    EXPECT_TRUE(opens("given/inner/a.json"));
    EXPECT_TRUE(opens("given_too/../given/inner/a.json"));
    for (const char* name : {"given_too/b.json", "secret.json", "given/link.json", "given/../secret.json"}) {
      EXPECT_FALSE(opens(name)) << name;
      EXPECT_THAT(NpzFile::open(at(name)).error().message(),
                  testing::HasSubstr("not in a folder that was given at the start"));
    }
    EXPECT_FALSE(parallel_for(8, 4, [&](std::size_t) { return may_read(at("secret.json")); }).ok());
    const ReadScope all{nullptr};
    EXPECT_TRUE(opens("secret.json"));
  }
  EXPECT_TRUE(opens("secret.json"));
}

}  // namespace
}  // namespace stepcast::read_scope_test
