// Values that are parsed from JSON on first use. A platform has about a hundred model records, and a forecast
// uses about ten.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast::detail {

// A Model that is read from its JSON once, when first used. Thread-safe. The JSON is released afterwards.
template <class Model>
class OnDemand {
 public:
  using Reader = std::function<Result<Model>(const JsonValue& parameters)>;
  // `known`: the JSON is known to be readable, so that can_be_read() does not have to read it.
  OnDemand(JsonValue parameters, Reader reader, bool known)
      : parameters_(std::move(parameters)), reader_(std::move(reader)), known_(known) {}

  // Reads the JSON only if it is not known to be readable.
  [[nodiscard]] bool can_be_read() const { return known_ || get() != nullptr; }

  // The model. Null: it cannot be read. All threads get the same object.
  [[nodiscard]] const Model* get() const {
    std::call_once(once_, [this] { read(); });
    return model_ ? &*model_ : nullptr;
  }
  // The error message, if it cannot be read; empty otherwise.
  [[nodiscard]] const std::string& problem() const {
    std::call_once(once_, [this] { read(); });
    return problem_;
  }

 private:
  void read() const {
    Result<Model> model = reader_(parameters_);
    if (model)
      model_ = std::move(model).value();
    else
      problem_ = model.error().message();
    parameters_ = JsonValue{};
  }

  mutable std::once_flag once_;
  mutable JsonValue parameters_;
  Reader reader_;
  bool known_;
  mutable std::optional<Model> model_;
  mutable std::string problem_;
};

// A value, or JSON that is parsed into the value on first use and is known to be readable, such as a built-in
// text. Copies share the parsed value.
template <class Value>
class Later {
 public:
  Later() = default;
  Later(Value value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): it is one
  Later(JsonValue json, typename OnDemand<Value>::Reader reader)
      : value_(std::make_shared<const OnDemand<Value>>(std::move(json), std::move(reader), true)) {}

  // Whether the value comes from JSON (parsed or not).
  [[nodiscard]] bool is_later() const { return std::holds_alternative<Source>(value_); }
  [[nodiscard]] const Value& operator*() const {
    const Source* later = std::get_if<Source>(&value_);
    return later == nullptr ? *std::get_if<Value>(&value_) : *(*later)->get();
  }
  [[nodiscard]] const Value* operator->() const { return &**this; }
  // The value for changes. A shared value is copied first.
  [[nodiscard]] Value& edit() {
    if (is_later()) value_ = Value{**this};
    return *std::get_if<Value>(&value_);
  }
  friend bool operator==(const Later& a, const Later& b) { return *a == *b; }

 private:
  using Source = std::shared_ptr<const OnDemand<Value>>;
  std::variant<Value, Source> value_;
};

}  // namespace stepcast::detail
