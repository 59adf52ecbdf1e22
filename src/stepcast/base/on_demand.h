// What is read from its JSON when somebody first asks for it. A platform has a hundred records of models, a forecast asks ten
// of them.
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

template <class Model>
class OnDemand {
 public:
  using Reader = std::function<Result<Model>(const JsonValue& parameters)>;
  // `known`: that it can be read is known.
  OnDemand(JsonValue parameters, Reader reader, bool known)
      : parameters_(std::move(parameters)), reader_(std::move(reader)), known_(known) {}

  // Reads it only where that is not known.
  [[nodiscard]] bool can_be_read() const { return known_ || get() != nullptr; }

  // Nothing if it cannot be read. Safe to call from several threads, who all get the same.
  [[nodiscard]] const Model* get() const {
    std::call_once(once_, [this] { read(); });
    return model_ ? &*model_ : nullptr;
  }
  // Why it cannot be read; empty if it can.
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

// A value, or the JSON that gives it when somebody first asks: of a text that is known to be readable, such as one that
// ships. Copies share what was read.
template <class Value>
class Later {
 public:
  Later() = default;
  Later(Value value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): it is one
  Later(JsonValue json, typename OnDemand<Value>::Reader reader)
      : value_(std::make_shared<const OnDemand<Value>>(std::move(json), std::move(reader), true)) {}

  [[nodiscard]] bool is_later() const { return std::holds_alternative<Source>(value_); }
  [[nodiscard]] const Value& operator*() const {
    const Source* later = std::get_if<Source>(&value_);
    return later == nullptr ? *std::get_if<Value>(&value_) : *(*later)->get();
  }
  [[nodiscard]] const Value* operator->() const { return &**this; }
  // The value, to be changed.
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
