// Any bytes as a Chakra execution trace: an error, or a graph whose dependencies point to its nodes and that becomes a
// Program of as many tasks, or is refused because its nodes wait for each other.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/rebuild/graph_program.h"
#include "stepcast/trace/readers.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content{reinterpret_cast<const char*>(data), size};
  const auto graph = stepcast::parse_chakra(content, "fuzz");
  if (!graph.ok()) {
    require(!graph.error().message().empty());
    return 0;
  }
  require(!graph->nodes.empty());
  for (const stepcast::GraphNode& node : graph->nodes) {
    require(node.name.valid() && node.name.index() < graph->names.size());
    require(node.first_dependency <= node.end_dependency);
    require(node.end_dependency <= graph->dependencies.size());
    for (const std::uint32_t dependency : graph->dependencies_of(node))
      require(dependency < graph->nodes.size());
  }
  static_cast<void>(summarize(*graph).transfer_bytes);
  const auto recorded = stepcast::graph_program({&*graph, 1});
  if (!recorded.ok()) {
    require(!recorded.error().message().empty());
    return 0;
  }
  require(recorded->program.expanded_task_count() == graph->nodes.size());
  require(recorded->program.check().ok());
  return 0;
}
