#include "checkpoint/meta_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace trainyard::checkpoint {
namespace {

struct SameTensor {
  std::string_view meta, hugging_face;
  bool is_rotated = false;
};

constexpr std::array kOutsideOfLayers = std::to_array<SameTensor>({{"tok_embeddings.weight", "model.embed_tokens.weight"},
                                                                   {"norm.weight", "model.norm.weight"},
                                                                   {"output.weight", "lm_head.weight"}});
constexpr std::array kOfLayer = std::to_array<SameTensor>({{"attention.wq.weight", "self_attn.q_proj.weight", true},
                                                           {"attention.wk.weight", "self_attn.k_proj.weight", true},
                                                           {"attention.wv.weight", "self_attn.v_proj.weight"},
                                                           {"attention.wo.weight", "self_attn.o_proj.weight"},
                                                           {"feed_forward.w1.weight", "mlp.gate_proj.weight"},
                                                           {"feed_forward.w2.weight", "mlp.down_proj.weight"},
                                                           {"feed_forward.w3.weight", "mlp.up_proj.weight"},
                                                           {"attention_norm.weight", "input_layernorm.weight"},
                                                           {"ffn_norm.weight", "post_attention_layernorm.weight"}});

using Spelling = std::string_view SameTensor::*;

std::optional<NamePlace> renamed(std::string_view name, Spelling from, Spelling to, std::string_view layers_from,
                                 std::string_view layers_to) {
  const auto same = std::ranges::find(kOutsideOfLayers, name, from);
  if (same != kOutsideOfLayers.end()) return NamePlace{std::string((*same).*to), same->is_rotated};
  const size_t dot = name.find('.', layers_from.size());
  if (!name.starts_with(layers_from) || dot == std::string_view::npos) return std::nullopt;
  const auto of_layer = std::ranges::find(kOfLayer, name.substr(dot + 1), from);
  if (of_layer == kOfLayer.end()) return std::nullopt;
  const std::string_view layer = name.substr(layers_from.size(), dot - layers_from.size());
  return NamePlace{fmt::format("{}{}.{}", layers_to, layer, (*of_layer).*to), of_layer->is_rotated};
}

constexpr std::string_view kMetaLayers = "layers.", kHuggingFaceLayers = "model.layers.";

}  // namespace

std::optional<NamePlace> hugging_face_name_of(const std::string& meta) {
  return renamed(meta, &SameTensor::meta, &SameTensor::hugging_face, kMetaLayers, kHuggingFaceLayers);
}

std::optional<NamePlace> meta_name_of(const std::string& hugging_face) {
  return renamed(hugging_face, &SameTensor::hugging_face, &SameTensor::meta, kHuggingFaceLayers, kMetaLayers);
}

Tensor reordered_rows(Pairs wanted, int64_t head_rows, int64_t begin, int64_t count,
                      const std::function<Tensor(int64_t begin, int64_t count)>& stored) {
  const int64_t half = head_rows / 2;
  Tensor head = stored(begin - begin % head_rows, head_rows);
  const int64_t columns = head.size(1);
  Tensor rows = Tensor::empty({count, columns}, DType::Float32);
  for (int64_t row = begin; row < begin + count; ++row) {
    const int64_t of_head = row % head_rows;
    if (row > begin && of_head == 0) head = stored(row, head_rows);
    const int64_t from =
        wanted == Pairs::HalfApart ? 2 * (of_head % half) + of_head / half : of_head % 2 * half + of_head / 2;
    std::copy_n(head.data<float>() + from * columns, columns, rows.data<float>() + (row - begin) * columns);
  }
  return rows;
}

}  // namespace trainyard::checkpoint
