// Names of what operations are, as records, reports and rules of framework operators say them.
#pragma once

#include <string_view>

#include "stepcast/base/names.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

inline constexpr auto kDirectionNames = names<Direction>({{Direction::forward, "forward"},
                                                          {Direction::backward, "backward"},
                                                          {Direction::input_gradient, "input_gradient"},
                                                          {Direction::weight_gradient, "weight_gradient"}});

inline constexpr auto kGemmLayoutNames = names<GemmLayout>({{GemmLayout::any, "any"},
                                                            {GemmLayout::tn, "tn"},
                                                            {GemmLayout::nn, "nn"},
                                                            {GemmLayout::nt, "nt"},
                                                            {GemmLayout::tt, "tt"}});

inline constexpr auto kAttentionKernelNames =
    names<AttentionKernel>({{AttentionKernel::any, "any"},
                            {AttentionKernel::flash1, "flash1"},
                            {AttentionKernel::flash2, "flash2"},
                            {AttentionKernel::flash3, "flash3"},
                            {AttentionKernel::efficient, "efficient"}});

inline constexpr auto kNormNames = names<NormKind>({{NormKind::layer_norm, "layer_norm"},
                                                    {NormKind::rms_norm, "rms_norm"},
                                                    {NormKind::batch_norm, "batch_norm"},
                                                    {NormKind::group_norm, "group_norm"}});

inline constexpr auto kSoftmaxNames = names<SoftmaxKind>({{SoftmaxKind::plain, "softmax"},
                                                          {SoftmaxKind::log_softmax, "log_softmax"},
                                                          {SoftmaxKind::causal_masked, "causal_softmax"}});

inline constexpr auto kElementwiseNames =
    names<ElementwiseFunction>({{ElementwiseFunction::other, "elementwise"},
                                {ElementwiseFunction::add, "add"},
                                {ElementwiseFunction::multiply, "multiply"},
                                {ElementwiseFunction::divide, "divide"},
                                {ElementwiseFunction::power, "power"},
                                {ElementwiseFunction::add_scalar, "add_scalar"},
                                {ElementwiseFunction::multiply_scalar, "multiply_scalar"},
                                {ElementwiseFunction::divide_scalar, "divide_scalar"},
                                {ElementwiseFunction::power_scalar, "power_scalar"},
                                {ElementwiseFunction::cast, "cast"},
                                {ElementwiseFunction::masked_fill, "masked_fill"},
                                {ElementwiseFunction::relu, "relu"},
                                {ElementwiseFunction::gelu, "gelu"},
                                {ElementwiseFunction::tanh, "tanh"},
                                {ElementwiseFunction::sigmoid, "sigmoid"},
                                {ElementwiseFunction::silu, "silu"},
                                {ElementwiseFunction::gated_silu, "gated_silu"},
                                {ElementwiseFunction::squared_relu, "squared_relu"},
                                {ElementwiseFunction::exponential, "exponential"},
                                {ElementwiseFunction::dropout, "dropout"},
                                {ElementwiseFunction::rotary, "rotary"},
                                {ElementwiseFunction::residual_add, "residual_add"},
                                {ElementwiseFunction::rotary_unfused, "rotary_unfused"}});

inline constexpr auto kMovementNames = names<MovementKind>({{MovementKind::copy, "copy"},
                                                            {MovementKind::transpose, "transpose"},
                                                            {MovementKind::concatenate, "concatenate"},
                                                            {MovementKind::split, "split"},
                                                            {MovementKind::gather, "gather"},
                                                            {MovementKind::scatter, "scatter"},
                                                            {MovementKind::fill, "fill"}});

inline constexpr auto kTransferNames = names<MemcpyKind>({{MemcpyKind::none, "memset"},
                                                          {MemcpyKind::host_to_device, "memcpy_h2d"},
                                                          {MemcpyKind::device_to_host, "memcpy_d2h"},
                                                          {MemcpyKind::device_to_device, "memcpy_d2d"},
                                                          {MemcpyKind::host_to_host, "memcpy_h2h"},
                                                          {MemcpyKind::peer, "memcpy_peer"}});

// Arithmetic on single elements is one family: what differs is said by the shape.
[[nodiscard]] constexpr std::string_view family_of_elementwise(ElementwiseFunction function) {
  const bool plain = function >= ElementwiseFunction::add && function <= ElementwiseFunction::power_scalar;
  return kElementwiseNames[plain ? ElementwiseFunction::other : function];
}

}  // namespace stepcast::detail
