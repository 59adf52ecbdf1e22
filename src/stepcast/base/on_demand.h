// What is read from its JSON when somebody first asks for it. A platform has a hundred records of models, a forecast asks ten
// of them.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

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

}  // namespace stepcast::detail
