// Reads the JSON members of one node of an execution trace. Both layouts (flat members, or "attrs" with names
// and values) fill the same fields. Members of unexpected type are skipped, since schemas change between
// releases.
#include "stepcast/trace/detail/et_node.h"

#include "stepcast/trace/detail/quote.h"

namespace stepcast::detail {
namespace {

using namespace std::string_view_literals;

// Reads an integer, also in quotes. Any other value leaves `out` unchanged and returns false.
bool integer(JsonCursor& c, std::int64_t& out) {
  std::string_view text;
  if (c.peek() == '"') {
    JsonText quoted;
    if (!c.string(quoted)) return false;
    text = quoted.raw;
  } else if (!c.raw_value(text)) {
    return false;
  }
  return parse_integer(text, out);
}

// Reads a text; skips other values.
void string(JsonCursor& c, JsonText& out) {
  if (c.peek() == '"')
    c.string(out);
  else
    c.skip_value();
}

// Reads true or false, also in quotes. Any other value leaves `out` unchanged.
void flag(JsonCursor& c, bool& out) {
  std::string_view text;
  c.raw_value(text);
  if (text == "true"sv || text == "\"true\""sv) out = true;
  if (text == "false"sv || text == "\"false\""sv) out = false;
}

// Takes the raw text of a list; skips other values.
void list(JsonCursor& c, std::string_view& out) {
  if (c.peek() == '[')
    c.raw_value(out);
  else
    c.skip_value();
}

// Reads a field that is a member in the flat layout and an attribute in the later one. False if the key is
// none of them.
bool read_field(JsonCursor& c, std::string_view key, EtNodeText& node) {
  if (key == "rf_id"sv) return integer(c, node.rf_id), true;
  if (key == "fw_parent"sv) return integer(c, node.forward_parent), true;
  if (key == "seq_id"sv) return integer(c, node.sequence_number), true;
  if (key == "tid"sv) return integer(c, node.thread), true;
  if (key == "fw_tid"sv) return integer(c, node.forward_thread), true;
  if (key == "collective_name"sv) return string(c, node.collective_name), true;
  if (key == "dtype"sv) return string(c, node.dtype), true;
  if (key == "in_msg_nelems"sv) return integer(c, node.elements_in), true;
  if (key == "out_msg_nelems"sv) return integer(c, node.elements_out), true;
  if (key == "in_split_size"sv) return string(c, node.in_split), true;
  if (key == "out_split_size"sv) return string(c, node.out_split), true;
  if (key == "pg_name"sv) return string(c, node.group_name), true;
  if (key == "pg_size"sv) return integer(c, node.group_size), true;
  if (key == "stream"sv) return integer(c, node.stream), true;
  if (key == "runtime_before"sv) return string(c, node.runtime_before), true;
  if (key == "copy"sv) return string(c, node.copy), true;
  if (key == "sync"sv) return string(c, node.sync), true;
  if (key == "async"sv) return flag(c, node.waits_later), true;
  return false;
}

// Reads the list "attrs".
void read_attributes(JsonCursor& c, EtNodeText& node) {
  if (c.peek() != '[') {
    c.skip_value();
    return;
  }
  for (c.enter('['); c.next_element();) {
    if (c.peek() != '{') {
      c.skip_value();
      continue;
    }
    // In all known files the name precedes the value. In the other order the value is read again.
    JsonText name;
    std::string_view value;
    std::string_view key;
    bool taken = false;
    for (c.enter('{'); c.next_member(key);) {
      if (key == "name"sv) {
        string(c, name);
      } else if (key == "value"sv && !name.raw.empty()) {
        taken = true;
        if (!read_field(c, name.raw, node)) c.skip_value();
      } else if (key == "value"sv) {
        c.raw_value(value);
      } else {
        c.skip_value();
      }
    }
    if (!taken && !value.empty()) {
      JsonCursor again(value);
      read_field(again, name.raw, node);
    }
  }
}

// "inputs" or "outputs": a list of values, or an object with values, shapes and types.
void read_values(JsonCursor& c, std::string_view& values, std::string_view* shapes, std::string_view& types) {
  if (c.peek() != '{') {
    list(c, values);
    return;
  }
  std::string_view key;
  for (c.enter('{'); c.next_member(key);)
    if (key == "values"sv)
      list(c, values);
    else if (key == "shapes"sv && shapes != nullptr)
      list(c, *shapes);
    else if (key == "types"sv)
      list(c, types);
    else
      c.skip_value();
}

// Reads one member of a node.
void read_member(JsonCursor& c, std::string_view key, EtNodeText& node) {
  if (key == "id"sv) {
    node.has_id = integer(c, node.id);
  } else if (key == "name"sv) {
    string(c, node.name);
  } else if (key == "parent"sv || key == "ctrl_deps"sv) {
    integer(c, node.parent);
  } else if (key == "inputs"sv) {
    read_values(c, node.inputs, &node.input_shapes, node.input_types);
  } else if (key == "outputs"sv) {
    read_values(c, node.outputs, &node.output_shapes, node.output_types);
  } else if (key == "input_shapes"sv) {
    list(c, node.input_shapes);
  } else if (key == "input_types"sv) {
    list(c, node.input_types);
  } else if (key == "output_types"sv) {
    list(c, node.output_types);
  } else if (key == "output_shapes"sv) {
    list(c, node.output_shapes);
  } else if (key == "attrs"sv) {
    read_attributes(c, node);
  } else if (key == "ph"sv) {
    node.is_merged_event = true;
    c.skip_value();
  } else if (key == "cat"sv) {
    node.is_merged_event = true;
    string(c, node.category);
  } else if (!read_field(c, key, node)) {
    c.skip_value();
  }
}

}  // namespace

bool read_et_node(std::string_view text, EtNodeText& node, EtProblem& problem) {
  node = EtNodeText{};
  JsonCursor c(text);
  std::string_view key;
  for (c.enter('{'); c.next_member(key);) read_member(c, key, node);
  if (c.failed()) {
    problem.position = c.position();
    problem.found =
        problem.position < text.size() ? quote_for_message(text.substr(problem.position, 20)) : "its end";
    problem.expected = c.problem();
    return false;
  }
  if (!node.has_id && !node.is_merged_event) {
    problem = {"a node without a whole number as \"id\"", "one", 0};
    return false;
  }
  return true;
}

}  // namespace stepcast::detail
