// The folder in which the shards of a sweep put their results, and what becomes of them.
//
//   STEPCAST_ASSIGN(const SweepFolder folder, SweepFolder::open("out", spec));
//   STEPCAST_ASSIGN(const SweepRows done, folder.rows(spec));       // of all shards: what is done is not done again
//   STEPCAST_TRY(folder.write("shard-0000-of-0004.jsonl", rows));   // as a whole: nobody ever reads a part of a row
//   STEPCAST_ASSIGN(const std::string all, merged_rows(spec, done));
//
// A row is one JSON object on one line, which begins with the id of its point. `sweep.json` says which spec the folder is
// of: shards of different specs cannot share one.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

// Lines without their breaks, by id.
using SweepRows = std::map<std::string, std::string, std::less<>>;

class SweepFolder {
 public:
  // Makes the folder and its sweep.json where they are missing. Errors: a folder of another spec or of another version of
  // this program; one that cannot be written. With `extends`, the spec may have become longer: all rows that are there
  // must be of its points.
  [[nodiscard]] static Result<SweepFolder> open(const std::filesystem::path& folder, const SweepSpec& spec,
                                                bool extends = false);
  // One that is there already.
  [[nodiscard]] static Result<SweepFolder> existing(const std::filesystem::path& folder,
                                                    const SweepSpec& spec);

  // What shards have written, by name.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // With what says which sweep this is: nothing of it may be written over.
  [[nodiscard]] std::vector<std::filesystem::path> own_files() const;
  // Whether a file of this name would be taken for the rows of a shard.
  [[nodiscard]] bool would_be_row_file(const std::filesystem::path& file) const;
  // Of all these files. Errors: a line that is no row, or the row of a point that `spec` does not have.
  [[nodiscard]] Result<SweepRows> rows(const SweepSpec& spec) const;
  // Replaces the file. Rows in the order of the spec.
  [[nodiscard]] Status write(const std::string& file, const SweepSpec& spec, const SweepRows& rows) const;
  // The rows of this file alone; none if it is not there.
  [[nodiscard]] Result<SweepRows> rows_of(const std::string& file, const SweepSpec& spec) const;

  // What a process that was killed while it wrote the file has left of it.
  void clear_leftovers(const std::string& file) const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit SweepFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// All rows in the order of the spec, a line each. Errors: points without a row, with how many.
[[nodiscard]] Result<std::string> merged_rows(const SweepSpec& spec, const SweepRows& rows);
// The same as CSV: settings first ("point.gpus"), then what came out; lists are joined by "; ".
[[nodiscard]] Result<std::string> merged_csv(const SweepSpec& spec, const SweepRows& rows);

}  // namespace stepcast
