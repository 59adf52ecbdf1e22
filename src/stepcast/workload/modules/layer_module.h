// A part of a layer as a module: its trained parameters, its forward and backward work, the tensors kept for
// the backward pass, and the models and layouts that support it.
//
//   for (const LayerPart& part : layer_parts())
//     if (part.applies(model, variant.experts)) part.module(model).forward(writer, list, variant);
//
// Modules have no state: the sizes of a layer come from its Transformer, which has only one kind of layer
// (layer_model()). docs/architecture.md explains how to add a module; kinds of attention are in
// attention_module.h.
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

// Interface of a part of a layer.
class LayerModule {
 public:
  // Adds the trained parameters of one layer.
  virtual void add_parameters(const Transformer& model, ParameterCount& count) const = 0;
  // Adds the items of one rank and micro-batch, without the norm before and the residual after the part.
  virtual void forward(const detail::LayerWriter& writer, WorkList& list,
                       const detail::LayerVariant& variant) const = 0;
  virtual void backward(const detail::LayerWriter& writer, WorkList& list,
                        const detail::LayerVariant& variant) const = 0;
  // Bytes per micro-batch on one rank that the backward pass needs.
  [[nodiscard]] virtual double kept(const detail::ActivationCount& count) const = 0;
  // Errors: sizes outside of their ranges, or parts of a model that do not fit together.
  [[nodiscard]] virtual Status check(const Transformer& model) const;
  // Error: a split by this layout that the part does not support.
  [[nodiscard]] virtual Status check(const Layout& layout, const Transformer& model) const;

 protected:
  ~LayerModule() = default;
};

// The parts that a layer may have, in the order of the forward pass: the table of layer_modules.cpp.
struct LayerPart {
  enum class Slot : std::uint8_t { mixer, feed };  // after the first norm of a layer, or after the second
  Slot slot;
  // Whether a layer has this part; `experts`: the layer has experts.
  bool (*applies)(const Transformer& model, bool experts);
  // The module for this model.
  const LayerModule& (*module)(const Transformer& model);
};
[[nodiscard]] std::span<const LayerPart> layer_parts();

}  // namespace stepcast
