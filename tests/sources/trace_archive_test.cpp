// Archives of traces, which are read like the folder that was packed.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/sources/trace_set.h"

#include "tests/support/fails_with.h"
#include "tests/support/npz_archive.h"
#include "tests/support/tar_archive.h"
#include "tests/support/trace_files.h"

namespace stepcast::trace_archive_test {
namespace {

using fixtures::TraceFolder;
using test::FailsWith;
using test::TarMember;
using Paths = std::vector<std::filesystem::path>;

const test::GeneratedJob& job() {
  static const test::GeneratedJob made = test::generate_job({.ranks = 2});
  return made;
}

std::string json_of(std::size_t rank) {
  const TraceFolder folder;
  return *read_file(folder.write("one.json", job().ranks[rank].recorded));
}

std::vector<TarMember> two_ranks(const std::string& folder) {
  return {{folder + "rank1.json", json_of(1)}, {folder + "rank0.json.gz", *gzip_compress(json_of(0))}};
}

TEST(TraceArchive, HoldsTheSameAsTheFolder) {
  const TraceFolder folder;
  std::vector<TarMember> members = two_ranks("job/traces/");
  members.push_back({"job/traces/README.md", "not a trace"});
  const std::string tar = test::tar_archive(members);
  std::vector<test::ZipMember> zipped;
  for (const TarMember& m : members)
    zipped.push_back({.name = m.name, .content = m.content, .deflated = true});
  for (const auto& place :
       {folder.write("a.tar", tar), folder.write("a.tgz", *gzip_compress(tar)),
        folder.write("a.zip", test::zip_archive(zipped)), folder.path() / "a.tgz/job/traces/"}) {
    const auto listing = list_traces(Paths{place});
    ASSERT_TRUE(listing.ok()) << listing.error().message();
    EXPECT_TRUE(listing->others.empty());
    const auto set = read_trace_set(*listing, {.one_step = true, .large_from_bytes = 1});  // read twice
    ASSERT_TRUE(set.ok()) << set.error().message();
    ASSERT_EQ(set->ranks.size(), 2U) << place;
    for (std::size_t r = 0; r < 2; ++r)
      EXPECT_EQ(set->ranks[r].gpu_ops.size(), job().ranks[r].recorded.gpu_ops.size()) << place;
  }
}

TEST(TraceArchive, OpensOnlyTheRanksAskedFor) {
  const TraceFolder folder;
  const auto place = folder.write("a.tar", test::tar_archive(two_ranks("")));
  const auto listing = list_traces(Paths{place}, {.ranks = {1}});
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->files(), Paths{place / "rank1.json"});
  EXPECT_EQ(listing->unopened, Paths{place / "rank0.json.gz"});
}

TEST(TraceArchive, OneMemberAndOneOfSeveralMomentsCanBeNamed) {
  const TraceFolder folder;
  std::vector<TarMember> members = two_ranks("job/step-1/");
  for (TarMember& m : two_ranks("job/step-2/")) members.push_back(std::move(m));
  const auto place = folder.write("a.tgz", *gzip_compress(test::tar_archive(members)));
  EXPECT_THAT(list_traces(Paths{place}), FailsWith("a.tgz/job/step-2"));
  EXPECT_EQ(list_traces(Paths{place / "job/step-1"})->files().size(), 2U);
  EXPECT_EQ(list_traces(Paths{place / "job/step-2/rank1.json"})->files().size(), 1U);
  EXPECT_THAT(list_traces(Paths{place / "job/step-3"}), FailsWith("no such file or folder in the archive"));
}

TEST(TraceArchive, WhatCannotBeReadIsSaidInOneLine) {
  const TraceFolder folder;
  const auto nested = folder.write("a.tar", test::tar_archive({{"in.tar.gz", "x"}, {"rank0.json", "{}"}}));
  EXPECT_THAT(list_traces(Paths{nested}), FailsWith("in.tar.gz: found an archive inside an archive"));
  const auto empty = folder.write("b.tar", test::tar_archive({{"job/", "", '5'}}));
  EXPECT_THAT(list_traces(Paths{empty}), FailsWith("b.tar: the archive has no file"));
  const std::string whole = test::tar_archive(two_ranks(""));
  const auto cut = folder.write("c.tar", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(list_traces(Paths{cut}), FailsWith("found the end of the archive in the middle of it"));
}

}  // namespace
}  // namespace stepcast::trace_archive_test
