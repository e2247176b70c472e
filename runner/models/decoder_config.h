#pragma once

#include "models/family.h"

// What the decoder families have in common in their config.json.
namespace trainyard::models {

/// What transformers 5 takes for fields that a family's config.json leaves out, and which of them may be null.
/// tests/unit/models/absent_fields.json holds what it took, field by field.
struct FamilyDefaults {
  int64_t max_positions;
  int64_t kv_heads = 0;       ///< 0: as many as query heads
  int64_t head_dim = 0;       ///< 0: hidden_size / num_attention_heads
  bool null_kv_heads = true;  ///< null means as many as query heads; else it is refused
  bool null_head_dim = true;  ///< null means hidden_size / num_attention_heads; else it is refused
};

/// The fields of every decoder; refuses activations other than SiLU and scalings of RoPE that no model here has.
/// Sizes of the model (vocabulary, hidden and feed-forward width, layers, heads) have no default.
ModelConfig read_decoder(const Fields& fields, const FamilyDefaults& defaults);

/// Refuses biases: `attention_bias` and `mlp_bias` must be false where they stand.
void refuse_biases(const Fields& fields);

/// Refuses a sliding window by any of its fields.
void refuse_window(const Fields& fields);

/// Qwen's way to say it: sliding_window, from layer max_window_layers on, where use_sliding_window is true.
void read_window_of_upper_layers(const Fields& fields, ModelConfig& config);
void write_window_of_upper_layers(const ModelConfig& config, nlohmann::json& document);

/// How tensor parallelism splits every decoder: attention by heads, the feed-forward by its width, embedding and head
/// by the vocabulary.
nn::Placements decoder_placements();

/// The names under which the head and the embedding of every decoder are stored.
StoredNames decoder_names();

/// The same fields again.
nlohmann::json write_decoder(const ModelConfig& config);

/// A decoder whose head is tied or not: what the presets of a family share, with a size filled in.
struct DecoderSize {
  int64_t hidden, ff, layers, heads, kv_heads, head_dim;
  bool tied;
};
ModelConfig with_size(ModelConfig config, const DecoderSize& size);

}  // namespace trainyard::models
