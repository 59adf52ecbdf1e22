// Parses the inputs of an operator from the texts of an execution trace, such as types
// `["Tensor(float)","Int"]` with parallel lists of shapes and values. The texts come from files, so depth and
// sizes are limited and damaged texts never fail.
#include "stepcast/rebuild/detail/call_parser.h"

#include "stepcast/base/scan.h"

namespace stepcast::detail {
namespace {

// Limits for nested lists and for dimensions of a tensor.
constexpr int kDeepestList = 16;
constexpr std::size_t kMostDimensions = 32;

std::string_view without_quotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  return text;
}

// Reads a number; `out` is unchanged if the text is not a number.
template <class Number>
bool parse_number(std::string_view text, Number& out) {
  const std::optional<Number> number = scan<Number>(text);
  out = number.value_or(out);
  return number.has_value();
}

// "Tensor(c10::Half)" -> "c10::Half"; empty for other types.
std::string_view element_type(std::string_view type) {
  constexpr std::string_view kTensor = "Tensor(";
  if (!type.starts_with(kTensor) || !type.ends_with(')')) return {};
  return type.substr(kTensor.size(), type.size() - kTensor.size() - 1);
}

// The types between the brackets of "GenericList[...]", split at commas outside of brackets.
std::vector<std::string_view> types_inside(std::string_view type) {
  std::vector<std::string_view> out;
  const std::size_t open = type.find('[');
  if (open == std::string_view::npos || !type.ends_with(']')) return out;
  type = type.substr(open + 1, type.size() - open - 2);
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= type.size(); ++i) {
    const char c = i < type.size() ? type[i] : ',';
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c != ',' || (depth > 0 && i < type.size())) continue;
    if (i > begin) out.push_back(type.substr(begin, i - begin));
    begin = i + 1;
  }
  return out;
}

// A number that identifies the part of a storage that a tensor covers (a hash); 0 if the trace has no
// storage.
std::uint64_t memory_of(const TensorUse& use) {
  if (use.storage == 0) return 0;
  std::uint64_t name = 0;
  for (const std::int64_t part : {use.storage, use.offset, use.elements})
    name = (name ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15ULL;
  return name;
}

// Collects arguments and tensors. `uses` are the tensors of the operator in order, which are consumed one by
// one.
class Parser {
 public:
  explicit Parser(std::span<const TensorUse> uses) : uses_(uses) {}

  // Adds one argument from its type, shape and value.
  void add(std::string_view type, std::string_view shape, std::string_view value) {
    using Kind = CallArgument::Kind;
    CallArgument argument{.first_tensor = static_cast<std::uint32_t>(out_.tensors.size())};
    if (type.find("Tensor(") != std::string_view::npos) {
      add_tensors(type, shape, 0);
      argument.tensors = static_cast<std::uint32_t>(out_.tensors.size()) - argument.first_tensor;
      const bool single = !element_type(type).empty();
      if (!single) argument.kind = Kind::tensors;
      if (single && argument.tensors == 1) argument.kind = Kind::tensor;
    } else if (type == "Int" || type == "SymInt") {
      if (parse_number(value, argument.integer)) argument.kind = Kind::integer;
      argument.real = static_cast<double>(argument.integer);
    } else if (type == "Bool") {
      argument.kind = Kind::boolean;
      argument.integer = value == "true" || value == "1" ? 1 : 0;
    } else if (type == "Double") {
      if (parse_number(value, argument.real)) argument.kind = Kind::real;
    } else if (type == "String") {
      argument.kind = Kind::text;
      argument.text = without_quotes(value).substr(0, 256);
    } else if (type.starts_with("GenericList[") || type.starts_with("Tuple[")) {
      argument.kind = Kind::integers;
      for (const std::string_view item : list_elements(value)) {
        std::int64_t number = 0;
        if (item == "true" || item == "false") {
          number = item == "true" ? 1 : 0;
        } else if (!parse_number(item, number)) {
          argument.kind = Kind::none;
          argument.integers.clear();
          break;
        }
        argument.integers.push_back(number);
      }
    }
    out_.arguments.push_back(std::move(argument));
  }

  ParsedArguments take() { return std::move(out_); }

 private:
  // Adds the tensors of a type, which may be a nested list, with their shapes.
  void add_tensors(std::string_view type, std::string_view shape, int depth) {
    if (const std::string_view element = element_type(type); !element.empty()) {
      const TensorUse* use = next_ < uses_.size() ? &uses_[next_] : nullptr;
      ++next_;
      if (element.starts_with("nullptr")) return;  // an undefined tensor
      TensorArgument tensor{.dtype = parse_dtype(element), .on_gpu = use == nullptr || use->on_gpu};
      if (use != nullptr) tensor.memory = memory_of(*use);
      for (const std::string_view item : list_elements(shape)) {
        std::int64_t extent = 0;
        if (!parse_number(item, extent) || tensor.shape.size() >= kMostDimensions) break;
        tensor.shape.push_back(extent);
      }
      out_.tensors.push_back(std::move(tensor));
      return;
    }
    if (depth >= kDeepestList) return;
    const std::vector<std::string_view> types = types_inside(type);
    const std::vector<std::string_view> shapes = list_elements(shape);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i].find("Tensor(") == std::string_view::npos) continue;
      add_tensors(types[i], i < shapes.size() ? shapes[i] : std::string_view{}, depth + 1);
    }
  }

  ParsedArguments out_;
  std::span<const TensorUse> uses_;
  std::size_t next_ = 0;
};

}  // namespace

// Depth counts brackets and braces outside of texts; commas at depth 0 separate elements.
std::vector<std::string_view> list_elements(std::string_view list) {
  std::vector<std::string_view> out;
  if (list.size() < 2 || list.front() != '[' || list.back() != ']') return out;
  list = list.substr(1, list.size() - 2);
  int depth = 0;
  bool in_text = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const bool end = i == list.size();
    const char c = end ? ',' : list[i];
    if (in_text && !end) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_text = false;
      continue;
    }
    if (c == '"') in_text = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c != ',' || (depth > 0 && !end)) continue;
    if (i > begin) out.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return out;
}

ParsedArguments parse_arguments(std::string_view values, std::string_view shapes, std::string_view types,
                                std::span<const TensorUse> uses) {
  const std::vector<std::string_view> value = list_elements(values);
  const std::vector<std::string_view> shape = list_elements(shapes);
  Parser parser(uses);
  std::size_t i = 0;
  for (const std::string_view type : list_elements(types)) {
    parser.add(without_quotes(type), i < shape.size() ? shape[i] : std::string_view{},
               i < value.size() ? value[i] : std::string_view{});
    ++i;
  }
  return parser.take();
}

}  // namespace stepcast::detail
