// Reads the vision towers of multimodal models. The families are rows of tables/huggingface_towers.json;
// sizes are found under all names that families use; make_tower() builds the network.
#include "stepcast/formats/detail/huggingface/huggingface_tower.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "stepcast/base/error_text.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/named_members.h"
#include "stepcast/base/names.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/network_builder.h"

namespace stepcast::detail {
namespace {

// Kinds of projectors from the tower to the language model. Merged patches: merge x merge patches as one token.
enum class Projector : std::uint8_t {
  merger,            // norm and two GEMMs of merged patches (Qwen-VL, Kimi)
  one,               // one GEMM (Gemma 4)
  shuffled,          // one GEMM of merged patches (SmolVLM)
  gated_two,         // two GEMMs of merged patches with a gate between them (Command A Vision)
  normed_gated_two,  // gated_two after a norm (Aya)
  normed,            // norm and one GEMM (Gemma 3)
  adapter,           // two GEMMs of shuffled pixels, then one (Llama 4)
  merging_layer,     // norm, a GEMM of merged patches, two more (Mistral 3)
  two,               // two GEMMs of merged patches (LLaVA)
  two_and_line,      // `two`, and a trained vector that ends a row of patches (LLaVA-NeXT)
  normed_two,        // `two` after a norm (InternVL)
  three,             // three GEMMs of merged patches (Muse)
  two_and_merged,    // two GEMMs of every patch, two of merged results (MiniMax M3)
  gated,             // strided convolution, GEMM with a norm, gated FFN (GLM-4V)
  convolutions,      // two strided convolutions and a GEMM (Step 3.7)
  tiles,             // one GEMM of results of several layers, over all tiles of an image (Llama 3.2 Vision)
};

std::string_view to_string(Projector projector) {
  return name_of<Projector::tiles>(
      projector,
      {"merger", "one", "shuffled", "gated_two", "normed_gated_two", "normed", "adapter", "merging_layer",
       "two", "two_and_line", "normed_two", "three", "two_and_merged", "gated", "convolutions", "tiles"});
}

// Fixed properties of the towers of a family, from tables/huggingface_towers.json.
struct TowerRow {
  std::string model_types;  // separated by blanks
  Projector projector = Projector::merger;
  std::string encoder;  // values of `model_type` in vision_config that the row is for; empty: all
  bool layer_norm = true;
  bool patch_bias = true, qkv_bias = true, output_bias = true, ffn_bias = true;  // biases of the GEMMs
  // FFN with a gate; a class token; trained scales of attention and FFN; norms before the first and after the last layer.
  bool gated = false;
  bool class_token = false, layer_scale = false;
  bool norm_in_front = false, norm_behind = false;
  // Norms per layer: 2, or 4 with norms after attention and FFN.
  std::int64_t norms = 2;
  bool head_norms = false;
  bool positions = true;      // trained position table, sized by the image unless the file has a size
  std::int64_t merge = 2;     // patches per side that become one token; default
  std::int64_t pixels = 448;  // pixels per side of an image; default
  std::int64_t heads = 0;     // attention heads; default
};

STEPCAST_MEMBERS(kTowerRow, &TowerRow::model_types, &TowerRow::encoder, &TowerRow::layer_norm,
                 &TowerRow::gated, &TowerRow::class_token, &TowerRow::layer_scale, &TowerRow::norm_in_front,
                 &TowerRow::norm_behind, &TowerRow::norms, &TowerRow::head_norms, &TowerRow::positions,
                 &TowerRow::merge, &TowerRow::pixels, &TowerRow::heads, &TowerRow::projector);

// One row. The column `biases` lists the GEMMs with biases.
Result<TowerRow> read_tower_row(const JsonValue& item, const std::string& file) {
  STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(item, "", file));
  TowerRow row;
  std::string biases = "patch qkv output ffn";
  STEPCAST_TRY(read_members(keys, kTowerRow, row));
  STEPCAST_TRY(keys.optional("biases", biases));
  row.patch_bias = is_among("patch", biases);
  row.qkv_bias = is_among("qkv", biases);
  row.output_bias = is_among("output", biases);
  row.ffn_bias = is_among("ffn", biases);
  STEPCAST_TRY(keys.finish());
  return row;
}

// All rows. The first row that matches is used.
Result<std::vector<TowerRow>> read_tower_rows() {
  const std::string file = "huggingface_towers.json";
  STEPCAST_ASSIGN(const JsonValue table, parse_json(shipped_table(file), file));
  std::vector<TowerRow> rows;
  for (const JsonValue& item : table.items()) {
    STEPCAST_ASSIGN(TowerRow row, read_tower_row(item, file));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Sizes of a tower, read from the config. 0: not given. Sizes are in elements, pixels or patches.
struct TowerSizes {
  std::int64_t layers = 0, width = 0, heads = 0, ffn = 0, patch = 0, channels = 3, frames = 1;
  // positions: rows of the position table. out: width after the merger. text: width of the language model.
  // extra_mergers: mergers of intermediate layers.
  std::int64_t merge = 0, pixels = 0, positions = 0, out = 0, text = 0, extra_mergers = 0;
  std::int64_t adapter_in = 0, adapter_width = 0, adapter_out = 0;  // of Llama 4
  std::int64_t projector_ffn = 0;
  // Llama 3.2 Vision: tiles per image, shapes of tile grids, and additional layers at the end with two gates each.
  std::int64_t tiles = 1, tile_shapes = 0, gated_layers = 0;
  std::int64_t window = 0;            // pixels per side of attention windows; 0: none
  std::vector<std::int64_t> see_all;  // layers with attention to the whole image
  bool projector_bias = true, class_head = false;
  bool qkv_bias = true, layer_norm = true;
  std::int64_t kv_heads = 0;    // 0: as many as heads
  std::int64_t head_norms = 0;  // elements of the norms of queries and of keys; 0: no norms
};

// Reads the first of these keys that is present. For a list such as [14, 14], its first number.
Status first_size(ObjectReader& keys, std::initializer_list<std::string_view> names, std::int64_t& out) {
  for (const std::string_view name : names) {
    if (!keys.has(name)) continue;
    const JsonValue* value = keys.take(name);
    if (value->is_array()) {
      const auto numbers = value->numbers();
      if (!numbers || numbers->empty() || !((*numbers)[0] >= 0 && (*numbers)[0] < 1e9))
        return keys.error(name).found(describe_value(*value)).expected("numbers");
      out = static_cast<std::int64_t>((*numbers)[0]);
      return Ok{};
    }
    return keys.optional(name, out);
  }
  return Ok{};
}

// Length of the list under a key; 0 if there is none.
std::int64_t length_of(ObjectReader& keys, std::string_view key) {
  const JsonValue* list = keys.take(key);
  return list != nullptr && list->is_array() ? static_cast<std::int64_t>(list->items().size()) : 0;
}

// Side of a square with this number of positions.
std::int64_t side_of(std::int64_t positions) {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(positions)));
}

// Reads all sizes. `vision`: vision_config; `around`: the config of the whole model, which has sizes of the
// projector. Sizes that are unreasonably large count as not given, and problem_of() reports them.
Status read_tower_sizes(const TowerRow& row, ObjectReader& vision, ObjectReader& around, TowerSizes& s) {
  STEPCAST_TRY(
      first_size(vision, {"depth", "num_hidden_layers", "vt_num_hidden_layers", "layers"}, s.layers));
  STEPCAST_TRY(first_size(vision, {"embed_dim", "vt_hidden_size", "hidden_size", "width"}, s.width));
  s.heads = row.heads;
  STEPCAST_TRY(first_size(
      vision, {"num_heads", "num_attention_heads", "vt_num_attention_heads", "attention_heads"}, s.heads));
  STEPCAST_TRY(first_size(vision, {"num_key_value_heads"}, s.kv_heads));
  STEPCAST_TRY(first_size(vision, {"intermediate_size", "vt_intermediate_size"}, s.ffn));
  STEPCAST_TRY(first_size(vision, {"patch_size"}, s.patch));
  STEPCAST_TRY(first_size(vision, {"in_channels", "num_channels", "in_chans"}, s.channels));
  STEPCAST_TRY(first_size(vision, {"temporal_patch_size", "patch_temporal"}, s.frames));
  s.merge = row.merge;
  STEPCAST_TRY(first_size(
      vision, {"spatial_merge_size", "merge_kernel_size", "pooling_kernel_size", "merge_size"}, s.merge));
  STEPCAST_TRY(first_size(around, {"spatial_merge_size", "scale_factor", "downsample_factor"}, s.merge));
  STEPCAST_TRY(first_size(around, {"alignment_intermediate_size", "projector_hidden_size"}, s.projector_ffn));
  STEPCAST_TRY(first_size(vision, {"projection_intermediate_size"}, s.projector_ffn));
  STEPCAST_TRY(first_size(vision, {"out_hidden_size"}, s.out));
  STEPCAST_TRY(first_size(vision, {"image_size"}, s.pixels));
  STEPCAST_TRY(first_size(vision, {"num_position_embeddings"}, s.positions));
  std::int64_t side = 0, table = 0, soft_tokens = 0, ratio = 0;
  STEPCAST_TRY(first_size(vision, {"init_pos_emb_height", "pos_emb_height"}, side));
  if (side > 0 && side < 10'000) s.positions = side * side;
  STEPCAST_TRY(first_size(vision, {"position_embedding_size"}, table));
  STEPCAST_TRY(first_size(vision, {"default_output_length"}, soft_tokens));
  constexpr std::int64_t kLargest = 100'000;  // larger sizes count as not given
  for (std::int64_t* size : {&s.layers, &s.width, &s.heads, &s.ffn, &s.patch, &s.channels, &s.frames,
                             &s.merge, &s.out, &s.pixels, &table, &soft_tokens})
    if (*size > kLargest) *size = 0;
  if (s.positions > kLargest * kLargest / 100) s.positions = 0;
  // DeepSeek-VL2 and Qwen2-VL give the FFN width as a multiple of the width. Qwen2-VL's hidden_size is the
  // width after the merger.
  double wider = 0;
  if (s.ffn == 0 && row.model_types == "deepseek_vl_v2") STEPCAST_TRY(vision.optional("mlp_ratio", wider));
  if (wider > 0 && wider < 100) s.ffn = static_cast<std::int64_t>(wider * static_cast<double>(s.width));
  if (row.model_types == "qwen2_vl") {
    if (s.width > 0 && vision.has("embed_dim")) STEPCAST_TRY(first_size(vision, {"hidden_size"}, s.out));
    STEPCAST_TRY(first_size(vision, {"mlp_ratio"}, ratio));
    s.ffn = ratio > 100 ? 0 : ratio * s.width;
    if (s.out > kLargest) s.out = 0;
  }
  // The image size, if it is not given, follows from the position table or the number of tokens.
  if (s.pixels == 0 && s.positions > 0) s.pixels = side_of(s.positions) * s.patch;
  if (s.pixels == 0 && soft_tokens > 0) s.pixels = side_of(soft_tokens) * s.merge * s.patch;
  if (s.pixels == 0) s.pixels = row.pixels;
  // Position tables with a size that follows from the image, or separate tables for both directions (Gemma 4).
  const bool of_image = row.positions && row.projector != Projector::merger && row.encoder != "pixtral";
  if (table > 0) s.positions = 2 * table;
  if (s.positions == 0 && of_image && s.patch > 0) {
    s.positions = (s.pixels / s.patch) * (s.pixels / s.patch) + (row.class_token ? 1 : 0);
  }
  STEPCAST_TRY(first_size(vision, {"max_num_tiles"}, s.tiles));
  STEPCAST_TRY(first_size(vision, {"num_global_layers"}, s.gated_layers));
  s.tile_shapes = length_of(vision, "supported_aspect_ratios");
  // Tiles are modelled as one square image of all tiles.
  if (s.tiles != side_of(s.tiles) * side_of(s.tiles))
    return vision.error("max_num_tiles").expected("a square: 1, 4 or 9");
  s.extra_mergers = length_of(vision, "deepstack_visual_indexes");
  STEPCAST_TRY(vision.optional("window_size", s.window));
  // Muse: windows as large as the position table, except in listed layers.
  const JsonValue* types = row.projector == Projector::three ? vision.take("layer_types") : nullptr;
  for (std::size_t i = 0; types != nullptr && types->is_array() && i < types->items().size(); ++i)
    if (types->items()[i].is_text() && types->items()[i].text() == "full_attention")
      s.see_all.push_back(static_cast<std::int64_t>(i));
  if (types != nullptr) s.window = side_of(s.positions) * s.patch;
  if (const JsonValue* all = vision.take("fullatt_block_indexes"); all != nullptr) {
    const auto layers = all->numbers();
    for (std::size_t i = 0; layers && i < layers->size(); ++i)
      if ((*layers)[i] >= 0 && (*layers)[i] < 1000)
        s.see_all.push_back(static_cast<std::int64_t>((*layers)[i]));
  }
  STEPCAST_TRY(first_size(vision, {"projector_input_dim"}, s.adapter_in));
  STEPCAST_TRY(first_size(vision, {"projector_output_dim"}, s.adapter_width));
  STEPCAST_TRY(first_size(vision, {"vision_output_dim"}, s.adapter_out));
  s.projector_bias = row.projector != Projector::merging_layer;
  STEPCAST_TRY(around.optional("multimodal_projector_bias", s.projector_bias));
  s.qkv_bias = row.qkv_bias;
  s.layer_norm = row.layer_norm;
  s.head_norms = row.head_norms && s.heads > 0 ? s.width / s.heads : 0;
  // InternVL's encoders differ in biases, norms of queries and keys, and the kind of norm.
  if (row.projector == Projector::normed_two) {
    std::string norm;
    bool norms = false;
    for (const std::string_view key : {"attention_bias", "qkv_bias"})
      STEPCAST_TRY(vision.optional(key, s.qkv_bias));
    for (const std::string_view key : {"use_qk_norm", "qk_normalization"})
      STEPCAST_TRY(vision.optional(key, norms));
    STEPCAST_TRY(vision.optional("norm_type", norm));
    if (norms) s.head_norms = s.width;
    s.layer_norm = norm != "rms_norm";
  }
  STEPCAST_TRY(vision.optional("vision_use_head", s.class_head));
  return Ok{};
}

// Adds a layer. `tokens`: tokens of the image; `keys`: tokens in the attention window; `gates`: parameters of gates.
void add_layer(NetworkBuilder& b, const TowerRow& row, const TowerSizes& s, std::int64_t tokens,
               std::int64_t keys, std::int64_t gates = 0) {
  // Fused GEMM for queries, keys and values; keys and values may have fewer heads.
  const std::int64_t kv_width =
      s.width / s.heads * (s.kv_heads > 0 ? std::min(s.kv_heads, s.heads) : s.heads);
  b.norm(s.width, s.layer_norm).linear(s.width, s.width + 2 * kv_width, s.qkv_bias);
  b.parameters(2 * s.head_norms);
  b.attention(keys, s.heads, s.width / s.heads).linear(s.width, s.width, row.output_bias);
  if (row.norms > 2) b.norm(s.width, s.layer_norm);
  b.add_residual(s.width);
  b.norm(s.width, s.layer_norm).linear(s.width, row.gated ? 2 * s.ffn : s.ffn, row.ffn_bias);
  row.gated ? b.activation(s.ffn, true) : b.gelu();
  b.linear(s.ffn, s.width, row.ffn_bias);
  if (row.norms > 2) b.norm(s.width, s.layer_norm);
  b.parameters(gates + (row.layer_scale ? 2 * s.width : 0));
  b.add_residual(s.width).end_block();
  b.tokens(tokens);
}

// Adds a merger. Extra mergers, of intermediate layers, normalise the merged patches instead of single ones.
void add_merger(NetworkBuilder& b, const TowerSizes& s, std::int64_t tokens, bool extra) {
  const std::int64_t merged = s.merge * s.merge * s.width;
  if (!extra) b.norm(s.width, s.layer_norm);
  b.tokens(tokens / (s.merge * s.merge));
  if (extra) b.norm(merged, s.layer_norm);
  b.linear(merged, merged).gelu().linear(merged, s.out > 0 ? s.out : s.text);
}

// Adds the projector and ends the tower's last block.
void add_projector(NetworkBuilder& b, const TowerRow& row, const TowerSizes& s, std::int64_t tokens) {
  const std::int64_t w = s.width, merged = s.merge * s.merge * w, text = s.text,
                     few = tokens / (s.merge * s.merge);
  switch (row.projector) {
    case Projector::merger:
      add_merger(b, s, tokens, false);
      for (std::int64_t i = 0; i < s.extra_mergers; ++i) add_merger(b, s, tokens, true);
      break;
    case Projector::one: b.tokens(few).linear(w, text, row.output_bias); break;
    case Projector::shuffled: b.tokens(few).linear(merged, text, false); break;
    case Projector::gated_two:
    case Projector::normed_gated_two:
      b.tokens(few);
      if (row.projector == Projector::normed_gated_two) b.norm(merged, true);
      b.linear(merged, s.projector_ffn).activation(s.projector_ffn / 2, true);
      b.linear(s.projector_ffn / 2, text);
      break;
    case Projector::normed: b.tokens(few).norm(w, false).linear(w, text, false); break;
    case Projector::adapter:
      b.tokens(few)
          .linear(s.ffn, s.adapter_in, false)
          .gelu()
          .linear(s.adapter_in, s.adapter_width, false)
          .gelu();
      b.linear(s.adapter_out, text, false);
      break;
    case Projector::merging_layer:
      b.norm(w, false).tokens(few).linear(merged, w, false).linear(w, text, s.projector_bias).gelu();
      b.linear(text, text, s.projector_bias);
      break;
    case Projector::tiles: {
      constexpr std::int64_t kWordsOfImages = 8;  // additional rows of the word embedding
      b.linear(s.adapter_out, text).parameters(kWordsOfImages * text);
      break;
    }
    case Projector::two:
    case Projector::two_and_line:
    case Projector::normed_two:
      b.tokens(few);
      if (row.projector == Projector::normed_two) b.norm(merged, true);
      b.linear(merged, text, s.projector_bias).gelu().linear(text, text, s.projector_bias);
      if (row.projector == Projector::two_and_line) b.parameters(text);
      break;
    case Projector::three:
      b.tokens(few).linear(merged, s.projector_ffn, false).gelu();
      b.linear(s.projector_ffn, s.projector_ffn, false).gelu().linear(s.projector_ffn, text, false);
      break;
    case Projector::two_and_merged:
      b.linear(w, s.projector_ffn).gelu().linear(s.projector_ffn, text).tokens(few);
      b.linear(s.merge * s.merge * text, s.projector_ffn).gelu().linear(s.projector_ffn, text);
      break;
    case Projector::gated:
      b.tokens(few).linear(merged, s.out).linear(s.out, s.out, false).norm(s.out, true).gelu();
      b.linear(s.out, 2 * s.projector_ffn, false)
          .activation(s.projector_ffn, true)
          .linear(s.projector_ffn, s.out, false);
      break;
    case Projector::convolutions: {
      const std::int64_t side = s.pixels / s.patch;
      b.tokens(0).at(w, side).convolution(2 * w, 3, 2).bias().convolution(4 * w, 3, 2).bias();
      b.tokens(b.side() * b.side()).linear(4 * w, text, false);
      break;
    }
  }
  b.end_block();
}

// Builds the tower: patches by a convolution, positions, layers, projector.
VisionTower make_tower(const TowerRow& row, const TowerSizes& s) {
  NetworkBuilder b{"tower", s.channels * s.frames, side_of(s.tiles) * s.pixels};
  b.convolution(s.width, s.patch, s.patch, true, 0);
  if (row.patch_bias) b.bias();
  // One class token per tile.
  const std::int64_t patches = b.side() * b.side(), tokens = patches + (row.class_token ? s.tiles : 0);
  b.tokens(tokens).parameters(s.positions * s.width + (row.class_token ? s.width : 0));
  // Gated position tables: within a tile, of tiles before the layers, and of tiles after them.
  if (s.tile_shapes > 0) b.parameters((s.tile_shapes + 1) * s.tiles * (s.positions + 2) * s.width + 3);
  if (s.positions > 0) b.add_vectors(s.width);
  if (row.norm_in_front) b.norm(s.width, row.layer_norm);
  b.end_block();
  // Windows are squares of `across` patches per side.
  const std::int64_t across = s.window > 0 && s.patch > 0 ? s.window / s.patch : 0;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const bool all = across == 0 || std::ranges::count(s.see_all, layer) > 0;
    add_layer(b, row, s, tokens, all ? tokens : std::min(tokens, across * across));
  }
  if (row.norm_behind) b.norm(s.width, row.layer_norm).end_block();
  for (std::int64_t layer = 0; layer < s.gated_layers; ++layer) add_layer(b, row, s, tokens, tokens, 2);
  add_projector(b, row, s, patches);
  Transformer model = b.finish(1);
  VisionTower tower;
  tower.network = *model.network;
  tower.blocks = model.kind_of_layer;
  tower.image_size = s.pixels;
  // Llama 3.2 Vision attends to all tokens of the tower; the others insert merged patches into the text.
  tower.tokens_per_image = row.projector == Projector::tiles ? tokens : patches / (s.merge * s.merge);
  return tower;
}

bool is_one_of(Projector one, std::initializer_list<Projector> many) {
  return std::ranges::find(many, one) != many.end();
}

// Why the tower cannot be modelled; empty if all sizes are present and valid.
std::string problem_of(const TowerSizes& s, const TowerRow& row) {
  constexpr std::int64_t kLargest = 100'000;
  const std::pair<std::string_view, std::int64_t> sizes[] = {
      {"layers", s.layers},    {"hidden size", s.width}, {"heads", s.heads},   {"width of the FFN", s.ffn},
      {"patch size", s.patch}, {"channels", s.channels}, {"frames", s.frames}, {"merge size", s.merge}};
  for (const auto& [what, size] : sizes)
    if (size < 1 || size > kLargest) return fmt::format("its {} are missing", what);
  if (s.gated_layers > 1000 || s.tiles < 1 || s.tiles > 100 || s.tile_shapes > 1000)
    return "its tiles are missing";
  if (row.projector == Projector::tiles && (s.adapter_out < 1 || s.adapter_out > kLargest))
    return "its width after the layers is missing";
  if (s.layers > 1000) return "it has more than 1000 layers";
  if (std::max({s.text, s.projector_ffn, s.adapter_in, s.adapter_width, s.adapter_out, s.window}) > 1'000'000)
    return "its sizes are not valid";
  if (s.width % s.heads != 0) return "its heads do not divide its hidden size";
  if (row.projector == Projector::adapter && std::min({s.adapter_in, s.adapter_width, s.adapter_out}) < 1)
    return "its projector has no sizes";
  const bool has_width = is_one_of(
      row.projector, {Projector::gated, Projector::gated_two, Projector::two_and_merged, Projector::three});
  if ((row.projector == Projector::gated && s.out < 1) || (has_width && s.projector_ffn < 1))
    return "its projector has no sizes";
  if (s.class_head) return "an attention head after it is not modelled";
  return {};
}

}  // namespace

Result<std::shared_ptr<const VisionTower>> read_tower(std::string_view model_type, ObjectReader& vision,
                                                      ObjectReader& around, const Transformer& text,
                                                      const VisionSettings& settings, std::string& missing) {
  using Tower = std::shared_ptr<const VisionTower>;
  std::string encoder;
  STEPCAST_TRY(vision.optional("model_type", encoder));
  static const std::vector<TowerRow> kTowers = as_shipped(read_tower_rows());
  auto row = std::ranges::find_if(kTowers, [&](const TowerRow& one) {
    return is_among(model_type, one.model_types) &&
           (one.encoder.empty() || encoder.empty() || is_among(encoder, one.encoder));
  });
  // An unknown model with a known tower: the tower's type names its family, "kimi_k25_vision".
  const std::string_view whose = std::string_view{encoder}.substr(0, encoder.rfind("_vision"));
  if (row == kTowers.end() && !whose.empty())
    row =
        std::ranges::find_if(kTowers, [&](const TowerRow& one) { return is_among(whose, one.model_types); });
  if (row == kTowers.end()) {
    missing = "vision and audio towers are not counted";
    return Tower{};
  }
  TowerSizes s;
  // Defaults of projectors with sizes that other sizes imply.
  STEPCAST_TRY(read_tower_sizes(*row, vision, around, s));
  s.text = text.hidden_size;
  if (row->projector == Projector::normed_gated_two && s.projector_ffn == 0) s.projector_ffn = s.text;
  if (row->projector == Projector::gated && s.projector_ffn == 0 && !row->positions)
    s.projector_ffn = s.channels * s.out;  // GLM-OCR
  if (row->projector == Projector::gated && s.projector_ffn == 0) {
    // The FFN of a layer is as wide as the result, and `intermediate_size` is that of the projector.
    s.projector_ffn = s.ffn;
    s.ffn = s.out;
  }
  if (std::string problem = problem_of(s, *row); !problem.empty()) {
    missing = fmt::format("vision and audio towers are not counted ({})", problem);
    return Tower{};
  }
  // An image must contain at least one merged patch.
  const std::int64_t step = s.patch * s.merge;
  if (settings.image_size) {
    constexpr std::int64_t kLargest = 8192;
    if (*settings.image_size < step || *settings.image_size > kLargest ||
        *settings.image_size % s.patch != 0) {
      return bad_value(
          "--image-size", *settings.image_size,
          fmt::format("pixels in either direction: a multiple of {} from {} to {}", s.patch, step, kLargest));
    }
    s.pixels = *settings.image_size;
  }
  constexpr std::int64_t kWidest = 100'000'000;
  if (s.pixels < step || s.pixels > 100'000 || s.merge * s.merge * s.width > kWidest) {
    missing = "vision and audio towers are not counted (image size is missing)";
    return Tower{};
  }
  VisionTower tower = make_tower(*row, s);
  tower.images = settings.images.value_or(1);
  return Tower{std::make_shared<const VisionTower>(std::move(tower))};
}

}  // namespace stepcast::detail
