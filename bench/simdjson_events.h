// The members of trace events that an import needs, taken with simdjson's On-Demand interface: what the reader of this project is
// measured against (import_main.cpp). It takes the same members, parses their numbers, and goes on to the next event where
// read_kineto_event() does. It needs the whole text in memory.
#pragma once

#include <cstdint>
#include <string_view>

#include <simdjson.h>

#include "stepcast/trace/detail/json_cursor.h"

namespace stepcast::bench {

struct TakenValues {
  std::uint64_t events = 0, bytes = 0, numbers = 0;  // the sum of all numbers, modulo 2^64
};

class SimdjsonEvents {
 public:
  // Nothing where the text is not a trace.
  TakenValues take_all(const simdjson::padded_string& text) {
    taken_ = {};
    simdjson::ondemand::document document;
    simdjson::ondemand::array events;
    if (parser_.iterate(text).get(document) != simdjson::SUCCESS ||
        document["traceEvents"].get_array().get(events) != simdjson::SUCCESS)
      return {};
    for (auto element : events) {
      simdjson::ondemand::object event;
      if (element.get_object().get(event) != simdjson::SUCCESS) return {};
      ++taken_.events;
      take_event(event);
    }
    return taken_;
  }

 private:
  using Value = simdjson::simdjson_result<simdjson::ondemand::value>;

  void take_event(simdjson::ondemand::object& event) {
    bool is_complete = false, is_frame = false;
    for (auto field : event) {
      std::string_view key, text;
      if (field.unescaped_key().get(key) != simdjson::SUCCESS) return;
      if (key == "ph") {
        take(field.value(), text);
        is_complete = text == "\"X\"";
        if (!is_complete && text != "\"M\"" && text != "\"i\"") return;
      } else if (key == "cat") {
        take(field.value(), text);
        is_frame = text == "\"python_function\"" || text == "\"overhead\"";
        if (is_complete && !is_frame && !is_kept(text)) return;
      } else if (key == "name") {
        take(field.value(), text);
        if (is_complete && is_frame) return;
      } else if (key == "args") {
        take_args(field.value());
      } else if (key == "ts" || key == "dur") {
        take(field.value(), text);
        std::int64_t ns = 0;
        if (stepcast::detail::parse_microseconds(text, ns) == stepcast::detail::TimeError::none)
          taken_.numbers += static_cast<std::uint64_t>(ns);
      } else if (key == "pid" || key == "tid") {
        take(field.value(), text);
        add_integer(text);
      }
    }
  }

  void take_args(Value value) {
    simdjson::ondemand::object args;
    if (value.get_object().get(args) != simdjson::SUCCESS) return;
    for (auto field : args) {
      std::string_view key, text;
      if (field.unescaped_key().get(key) != simdjson::SUCCESS || !is_arg(key)) continue;
      take(field.value(), text);
      add_integer(text);
    }
  }

  void add_integer(std::string_view text) {
    std::int64_t number = 0;
    if (stepcast::detail::parse_integer(text, number)) taken_.numbers += static_cast<std::uint64_t>(number);
  }

  void take(Value value, std::string_view& text) {
    simdjson::ondemand::json_type type{};
    simdjson::ondemand::array list;
    if (value.type().get(type) != simdjson::SUCCESS) return;
    if (type == simdjson::ondemand::json_type::array) {
      if (value.get_array().get(list) != simdjson::SUCCESS || list.raw_json().get(text) != simdjson::SUCCESS)
        return;
    } else {
      text = value.raw_json_token().value_unsafe();
      while (text.ends_with(' ') || text.ends_with('\n')) text.remove_suffix(1);
    }
    taken_.bytes += text.size();
  }

  static bool is_kept(std::string_view category) {
    for (const std::string_view kept :
         {"\"cpu_op\"", "\"Operator\"", "\"kernel\"", "\"Kernel\"", "\"cuda_runtime\"", "\"cuda_driver\"",
          "\"Runtime\"", "\"user_annotation\"", "\"gpu_memcpy\"", "\"Memcpy\"", "\"gpu_memset\"",
          "\"Memset\"", "\"cuda_sync\""})
      if (category == kept) return true;
    return false;
  }

  static bool is_arg(std::string_view key) {
    switch (key.size()) {
      case 3: return key == "Seq";
      case 4: return key == "grid" || key == "name";
      case 5: return key == "bytes" || key == "dtype";
      case 6: return key == "Ev Idx" || key == "stream" || key == "device";
      case 10:
        return key == "Input Dims" || key == "Input dims" || key == "Input type" || key == "Group size";
      case 11: return key == "External id" || key == "external id" || key == "correlation";
      case 13: return key == "blocks per SM" || key == "In msg nelems" || key == "In split size";
      case 14: return key == "wait_on_stream" || key == "cuda_sync_kind" || key == "Out msg nelems";
      case 15: return key == "Concrete Inputs" || key == "Sequence number" || key == "Collective name";
      case 18: return key == "Record function id" || key == "Process Group Name";
      case 20: return key == "Profiler Event Index";
      case 33: return key == "wait_on_cuda_event_record_corr_id";
      default: return false;
    }
  }

  simdjson::ondemand::parser parser_;
  TakenValues taken_;
};

}  // namespace stepcast::bench
