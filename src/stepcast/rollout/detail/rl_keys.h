// Access to the keys of a post-training config or command line. Keys that are never read either have no effect
// (tables/rl_keys.csv) or are listed as not modelled.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/base/yaml_document.h"
#include "stepcast/describe/job.h"

namespace stepcast::detail {

// Keys are paths such as "policy.train_global_batch_size". The first value of a wrong type is kept as the error wrong().
class RlKeys {
 public:
  RlKeys(YamlScalars values, std::string file) : values_(std::move(values)), file_(std::move(file)) {}

  // The text of a key; empty for null and computed values ("${mul:...}"). References "${other.key}" are followed. A variable
  // "${NAME}" that no script sets is returned unchanged.
  [[nodiscard]] std::string text(const std::string& path);
  // Boolean value; `otherwise` if the key is missing.
  [[nodiscard]] bool is_on(const std::string& path, bool otherwise = false);
  // Number; empty if the key is missing.
  [[nodiscard]] std::optional<double> number(const std::string& path);
  // Whole number of at least 0; empty if the key is missing.
  [[nodiscard]] std::optional<std::int64_t> whole(const std::string& path);
  [[nodiscard]] std::int64_t whole_or(const std::string& path, std::int64_t otherwise) {
    return whole(path).value_or(otherwise);
  }
  // A parallel degree; empty if it is 1 or missing.
  [[nodiscard]] std::optional<std::int64_t> degree(const std::string& path);
  // Nodes x GPUs per node; empty if one of them is a variable of the cluster (`$NNODES`).
  [[nodiscard]] std::optional<std::int64_t> gpus(const std::string& nodes, std::int64_t usual_nodes,
                                                 const std::string& in_node, std::int64_t usual_in_node);
  // True if a key with this prefix exists.
  [[nodiscard]] bool has(std::string_view beginning) const;

  // Marks all keys with this prefix as read: they belong to a feature that this run does not use.
  void pass(std::string_view beginning);
  // Marks keys below `section` as read if their values equal those below `other`, as for a reference with the layout of its
  // policy. A leading `renamed` of a name is replaced by `as` in `other`.
  void same(const std::string& section, const std::string& other, std::string_view renamed = {},
            std::string_view as = {});
  // Reads keys directly below `section` as Megatron-LM arguments. Settings already in `job` take precedence.
  void use_megatron(const std::string& section, Job& job);

  // Records an error for a key, unless one was recorded before.
  void refuse(const std::string& path, const std::string& found, std::string expected);
  [[nodiscard]] const std::optional<Error>& wrong() const { return wrong_; }

  // Lists unread keys that may change time or memory. Adds a note for keys that resemble a known key.
  void list_rest(std::string_view framework, std::vector<std::string>& not_modelled,
                 std::vector<std::string>& notes) const;

 private:
  // The text of a key without marking it as read.
  [[nodiscard]] std::string value(const std::string& path) const;

  YamlScalars values_;
  std::string file_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Error> wrong_;
};

}  // namespace stepcast::detail
