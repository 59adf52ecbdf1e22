// The output folder of a sweep. Each shard writes its results into its own file, and the files are merged at
// the end.
//
//   STEPCAST_ASSIGN(const SweepFolder folder, SweepFolder::open("out", spec));
//   STEPCAST_ASSIGN(const SweepRows done, folder.rows(spec));       // of all shards: these points are skipped
//   STEPCAST_TRY(folder.write("shard-0000-of-0004.jsonl", rows));   // atomic: readers never see a partial file
//   STEPCAST_ASSIGN(const std::string all, merged_rows(spec, done));
//
// A row is one JSON object on one line that begins with the id of its point. The manifest `sweep.json`
// records the hash of the spec and the version of the program, so shards of different specs cannot share a
// folder.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

// Rows without their line breaks, by the id of their point.
using SweepRows = std::map<std::string, std::string, std::less<>>;

// A folder that was checked to belong to a spec. Only open() and existing() make one.
class SweepFolder {
 public:
  // Opens the folder of `spec`. Creates the folder and its manifest if they are missing. With `extends`, the
  // spec may have grown since the folder was made; every row that exists must then be of one of its points.
  // Errors: a folder of another spec or of another version of this program, a folder that cannot be created
  // or written.
  [[nodiscard]] static Result<SweepFolder> open(const std::filesystem::path& folder, const SweepSpec& spec,
                                                bool extends = false);
  // Opens a folder that a sweep has already created. Errors: no manifest, another spec, another version.
  [[nodiscard]] static Result<SweepFolder> existing(const std::filesystem::path& folder,
                                                    const SweepSpec& spec);

  // The row files of all shards, sorted by name.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // The row files and the manifest: the files that no output of the program may overwrite.
  [[nodiscard]] std::vector<std::filesystem::path> own_files() const;
  // Whether `file` lies in this folder and has the name of a row file, so that it would be read as rows.
  [[nodiscard]] bool would_be_row_file(const std::filesystem::path& file) const;
  // The rows of all row files. Errors: a line that is not a row, a row of a point that `spec` does not have,
  // two different rows of one point.
  [[nodiscard]] Result<SweepRows> rows(const SweepSpec& spec) const;
  // Replaces `file` by `rows`, in the order of the spec. Rows of unknown points are left out.
  [[nodiscard]] Status write(const std::string& file, const SweepSpec& spec, const SweepRows& rows) const;
  // The rows of one row file; empty if the file does not exist. Errors as rows().
  [[nodiscard]] Result<SweepRows> rows_of(const std::string& file, const SweepSpec& spec) const;

  // Removes the temporary files that a killed process left behind when it wrote `file`.
  void clear_leftovers(const std::string& file) const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit SweepFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// All rows in the order of the spec, one per line. Error: points without a row, with their number.
[[nodiscard]] Result<std::string> merged_rows(const SweepSpec& spec, const SweepRows& rows);
// The same as CSV. Columns of settings come first ("point.gpus"), then results. Lists are joined by "; ".
[[nodiscard]] Result<std::string> merged_csv(const SweepSpec& spec, const SweepRows& rows);

}  // namespace stepcast
