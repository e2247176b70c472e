#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::models {

/// Llama 3.1's stretching of the slow rotations; factor 1 is none.
struct RopeScaling {
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4, original_length = 8192;
};

/// What T5 has that decoders have not. `layers` are then its encoder's.
struct T5Config {
  int64_t decoder_layers = 0;
  int64_t buckets = 32, max_distance = 128;  ///< of relative positions
  bool is_gated = false;                     ///< v1.1's feed-forward: gelu(wi_0 x) · wi_1 x instead of relu(wi x)
  bool scales_output = true;                 ///< v1.0's: the decoder's output times hidden^-½ goes into the head
  int32_t start_token = 0, pad_token = 0;    ///< of the decoder's input
};

/// What a convolutional classifier has.
struct CnnConfig {
  int64_t image_size = 28;  ///< height and width; one channel
  int64_t channels1 = 32, channels2 = 64;
  int64_t classes = 10;
  double hidden_dropout = 0.5;  ///< before the last layer; ModelConfig::dropout is that before the first
  double image_mean = 0.1307, image_std = 0.3081;  ///< of pixels in [0, 1]: those of MNIST
};

/// The shape of a model, as a config.json gives it.
struct ModelConfig {
  std::string family = "llama";  ///< its name in the registry, which is config.json's model_type
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t max_positions = 0;
  double rms_norm_eps = 1e-6, rope_theta = 10000, initializer_range = 0.02;
  RopeScaling rope_scaling = {};
  bool tied_head = false;
  int64_t sliding_window = 0;        ///< keys that a query sees, its own included; 0: the whole sequence
  int64_t first_windowed_layer = 0;  ///< layers before it see the whole sequence
  double dropout = 0;                ///< rate, of models that have it; the decoders have none
  /// The row of a decoder's embedding that begins at zero and gets no gradient from what is looked up; a negative one
  /// counts from the end.
  std::optional<int64_t> pad_token_id = {};
  T5Config t5 = {};
  CnnConfig cnn = {};
  /// Why it is not to be trained, naming file and field: a field that acts only in training, and that no model here
  /// has. Empty: it can be trained.
  std::string untrainable = {};
};

/// Reads a config.json. Throws InputError naming `path` and the field: missing, of the wrong type, out of range, or
/// asking for what its family does not have here (biases, windows, other activations, other scalings of RoPE).
/// A field that is absent means what transformers 5 takes it for in that family; a size of the model has no default.
ModelConfig parse_config(std::string_view json, const std::filesystem::path& path);

/// The same configuration. Throws InputError where it is not to be trained.
const ModelConfig& for_training(const ModelConfig& config);

/// config.json in the published spelling; transformers loads it.
std::string to_hugging_face(const ModelConfig& config);

/// The same, of a model whose config.json was `given`: that text, in which only what is no longer true of `config` is
/// written anew. Fields that a family does not write are nobody's here and stay as they are, as does the spelling of
/// what stays true. "" or the text of another family: as above. Throws InputError as parse_config() does.
std::string to_hugging_face(const ModelConfig& config, const std::string& given);

/// What files of a family's weights hold beside the parameters of the model, as transformers writes and reads them.
struct StoredNames {
  std::string embedding, head;       ///< parameters; the head is none of a model whose head is tied. "": it has none
  bool may_lack_head = false;        ///< a file without one means a tied head, whatever config.json says
  std::vector<std::string> copies;   ///< further names of the embedding
  std::vector<std::string> ignored;  ///< globs: what can be computed, or is used by no model
};
const StoredNames& stored_names(const ModelConfig& config);

/// What the models of a family learn from: text, pairs of a source and a target, labelled images.
enum class LearnsFrom { Text, Pairs, Images };
LearnsFrom learns_from(const ModelConfig& config);

/// A named size: "qwen3-0.6b", "llama3.1-8b", … and small ones that train on a laptop.
/// Throws InputError with the nearest name and the list.
ModelConfig preset(const std::string& name);

/// How many of the last keys a query of `layer` sees, its own included; 0: the whole sequence.
int64_t window_of(const ModelConfig& config, int64_t layer);

/// All elements of all parameters; a tied head counts once.
int64_t parameter_count(const ModelConfig& config);

/// Tokens of a row, as floating-point operations are counted.
struct RowLengths {
  int64_t tokens = 0;  ///< targets; 1 for an image
  int64_t source = 0;  ///< of an encoder; 0 where there is none
};

/// Floating-point operations of forward and backward for one row. Decoders: for each token 6 · N + 12 · layers · heads
/// · head_dim · tokens, N the matrix parameters (the input embedding only where it is also the head), `tokens` at most
/// the window in a layer that has one. No causal halving, as torchtitan counts.
double flops_per_row(const ModelConfig& config, const RowLengths& lengths);

}  // namespace trainyard::models
