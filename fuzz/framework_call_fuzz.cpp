// Any bytes as a call of an operator (name, values, shapes, types, one a line): operations that can be, or an
// error of one line.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stepcast/operation/framework_ops.h"
#include "stepcast/rebuild/detail/call_parser.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  std::string_view text{reinterpret_cast<const char*>(data), size};
  const std::string_view name = next_line(text), values = next_line(text), shapes = next_line(text),
                         types = next_line(text);

  FusedKernelName fused;
  if (parse_fused_kernel_name(name, fused)) {
    require(fused.unknown_parts <= fused.parts.size());
    for (const std::string_view part : fused.parts)
      require(!part.empty() && part.data() >= name.data() &&
              part.data() + part.size() <= name.data() + name.size());
  }

  const TensorUse uses[] = {{.on_gpu = true}, {.on_gpu = true}, {.on_gpu = (size & 1U) != 0}};
  const detail::ParsedArguments in = detail::parse_arguments(values, shapes, types, uses);
  for (const CallArgument& argument : in.arguments)
    require(std::size_t{argument.first_tensor} + argument.tensors <= in.tensors.size());
  for (const bool with_arguments : {false, true}) {
    FrameworkCall call{.name = name, .inputs = in.tensors};
    if (with_arguments) call.arguments = in.arguments;
    const auto operations = operations_of(call);
    if (!operations.ok()) {
      const std::string message = operations.error().message();
      require(!message.empty() && message.find('\n') == std::string::npos);
      continue;
    }
    for (const Operation& operation : *operations) {
      require(shape_problem(operation).empty() && !describe(operation).empty());
      const Work work = work_of(operation);
      require(std::isfinite(work.flops.value()) && work.flops.value() >= 0);
      require(std::isfinite(work.bytes().value()) && work.bytes().value() >= 0);
    }
  }
  return 0;
}
