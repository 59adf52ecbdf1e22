// The keys of one config or command line of post-training, asked for one by one: what nobody asks for is known to change
// nothing (tables/rl_keys.csv) or is listed as not modelled.
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

class RlKeys {
 public:
  RlKeys(YamlScalars values, std::string file) : values_(std::move(values)), file_(std::move(file)) {}

  // Nothing for what is null, or computed ("${mul:...}"); "${other.key}" is the value of that key, and "${NAME}", a variable
  // that no script sets, itself.
  [[nodiscard]] std::string text(const std::string& path);
  [[nodiscard]] bool is_on(const std::string& path, bool otherwise = false);
  [[nodiscard]] std::optional<double> number(const std::string& path);
  [[nodiscard]] std::optional<std::int64_t> whole(const std::string& path);
  [[nodiscard]] std::int64_t whole_or(const std::string& path, std::int64_t otherwise) {
    return whole(path).value_or(otherwise);
  }
  // A degree: nothing where it is 1 or not said.
  [[nodiscard]] std::optional<std::int64_t> degree(const std::string& path);
  // Nodes x GPUs of one; nothing where a variable of the cluster says them (`$NNODES`).
  [[nodiscard]] std::optional<std::int64_t> gpus(const std::string& nodes, std::int64_t usual_nodes,
                                                 const std::string& in_node, std::int64_t usual_in_node);
  // Whether a key begins so.
  [[nodiscard]] bool has(std::string_view beginning) const;

  // Keys that begin so stand for something that this run does not have.
  void pass(std::string_view beginning);
  // Keys below `section` that say what those below `other` do: a reference that is spread as its policy. `renamed` in
  // front of a name is `as` there.
  void same(const std::string& section, const std::string& other, std::string_view renamed = {},
            std::string_view as = {});
  // Keys right below `section` are named as arguments of Megatron-LM: what they set, under what `job` says.
  void use_megatron(const std::string& section, Job& job);

  void refuse(const std::string& path, const std::string& found, std::string expected);
  [[nodiscard]] const std::optional<Error>& wrong() const { return wrong_; }

  // Keys that nobody asked for and that may change time or memory; in the notes those that are spelled almost like one
  // that acts.
  void list_rest(std::string_view framework, std::vector<std::string>& not_modelled,
                 std::vector<std::string>& notes) const;

 private:
  [[nodiscard]] std::string value(const std::string& path) const;

  YamlScalars values_;
  std::string file_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Error> wrong_;
};

}  // namespace stepcast::detail
