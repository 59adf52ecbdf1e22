#include <array>

#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/experts.h"
#include "stepcast/workload/modules/feed_forward.h"
#include "stepcast/workload/modules/layer_module.h"
#include "stepcast/workload/modules/state_mixer.h"

namespace stepcast {
namespace {

// Adapts a module that does not depend on the model.
template <const LayerModule& (*Module)()>
const LayerModule& of_any(const Transformer& /*model*/) {
  return Module();
}
const LayerModule& attention_part(const Transformer& model) { return attention_of(model); }

using Slot = LayerPart::Slot;
// State mixers come before attention, since attention also accounts for a parallel mixer.
constexpr std::array<LayerPart, 4> kParts{{
    {Slot::mixer, [](const Transformer& m, bool) { return is_recurrent(m.mixer); }, of_any<state_mixer>},
    {Slot::mixer, [](const Transformer& m, bool) { return m.attends(); }, attention_part},
    {Slot::feed, [](const Transformer& m, bool experts) { return m.has_ffn && !experts; },
     of_any<feed_forward>},
    {Slot::feed, [](const Transformer& m, bool experts) { return m.has_ffn && experts; }, of_any<experts>},
}};

}  // namespace

Status LayerModule::check(const Transformer& /*model*/) const { return Ok{}; }

Status LayerModule::check(const Layout& /*layout*/, const Transformer& /*model*/) const { return Ok{}; }

std::span<const LayerPart> layer_parts() { return kParts; }

}  // namespace stepcast
