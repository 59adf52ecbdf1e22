// A part of a layer as a module: everything that depends on it, in one class. What it has of trained parameters, its work
// forward and backward, what it keeps for the backward pass, and which models and layouts it can be part of.
//
//   for (const LayerPart& part : layer_parts())
//     if (part.applies(model, variant.experts)) part.module(model).forward(writer, list, variant);
//
// Modules have no state: a layer's sizes come from its Transformer, which is one of a single kind of layers
// (layer_model()). docs/architecture.md says how to add one; kinds of attention are in attention_module.h.
#pragma once

#include <cstdint>
#include <span>

#include "stepcast/base/result.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct Layout;

namespace detail {
class ActivationCount;
class LayerWriter;
struct LayerVariant;
}  // namespace detail

class LayerModule {
 public:
  // Adds the trained parameters of one layer.
  virtual void add_parameters(const Transformer& model, ParameterCount& count) const = 0;
  // Adds the items of one rank and micro-batch, without the norm in front and the residual behind.
  virtual void forward(const detail::LayerWriter& writer, WorkList& list,
                       const detail::LayerVariant& variant) const = 0;
  virtual void backward(const detail::LayerWriter& writer, WorkList& list,
                        const detail::LayerVariant& variant) const = 0;
  // Bytes of a micro-batch on one rank that the backward pass needs.
  [[nodiscard]] virtual double kept(const detail::ActivationCount& count) const = 0;
  // Sizes in their ranges, and parts of a model that go together.
  [[nodiscard]] virtual Status check(const Transformer& model) const;
  // What this layout can split.
  [[nodiscard]] virtual Status check(const Layout& layout, const Transformer& model) const;

 protected:
  ~LayerModule() = default;
};

// Modules that a layer may have, in the order of the forward pass: the table of layer_modules.cpp.
struct LayerPart {
  enum class Slot : std::uint8_t { mixer, feed };  // behind the first norm of a layer, or behind the second
  Slot slot;
  bool (*applies)(const Transformer& model, bool experts);
  const LayerModule& (*module)(const Transformer& model);
};
[[nodiscard]] std::span<const LayerPart> layer_parts();

}  // namespace stepcast
