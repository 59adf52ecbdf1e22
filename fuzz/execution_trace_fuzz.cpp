// Any bytes as an execution trace: an error, or a trace whose indices point to something and whose operators
// have operations that can be, or are counted as without.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/rebuild/traced_operations.h"
#include "stepcast/trace/readers.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content{reinterpret_cast<const char*>(data), size};
  const auto trace = stepcast::parse_execution_trace(content, "fuzz");
  if (!trace.ok()) {
    require(!trace.error().message().empty());
    return 0;
  }
  for (const stepcast::EtNode& node : trace->nodes) {
    require(node.name.valid() && node.name.index() < trace->names.size());
    require(node.first_input <= node.first_output && node.first_output <= node.end_output);
    require(node.end_output <= trace->tensors.size());
    require(node.collective >= -1 && node.collective < static_cast<std::int64_t>(trace->collectives.size()));
    static_cast<void>(trace->inputs(node).size() + trace->outputs(node).size());
  }
  const stepcast::TracedOperations traced = stepcast::traced_operations(*trace);
  require(traced.stands_for.size() == trace->nodes.size());
  std::size_t counted = traced.modelled_operators;
  for (const auto& [name, entry] : traced.unmodelled) counted += entry.count;
  require(counted == traced.launching_operators);
  for (const stepcast::TracedOperation& operation : traced.operations)
    require(operation.node < trace->nodes.size() && shape_problem(operation.operation).empty());
  return 0;
}
