#include "models/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trainyard::models {
namespace {

using nlohmann::json;

/// A JSON object whose fields are read with errors that name file and field.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }

  [[nodiscard]] int64_t size(const char* key) const {
    if (!has(key)) fail(key, "is missing; a whole number above 0 is needed");
    const json& value = object_.at(key);
    if (!value.is_number_integer() || value.get<int64_t>() <= 0 || value.get<int64_t>() > kLargest)
      fail(key, fmt::format("is {}; a whole number from 1 to {} is needed", value.dump(), kLargest));
    return value.get<int64_t>();
  }
  [[nodiscard]] int64_t size(const char* key, int64_t otherwise) const { return has(key) ? size(key) : otherwise; }

  [[nodiscard]] double number(const char* key, double otherwise) const {
    if (!has(key)) return otherwise;
    const json& value = object_.at(key);
    if (!value.is_number() || value.get<double>() <= 0)
      fail(key, fmt::format("is {}; a number above 0 is needed", value.dump()));
    return value.get<double>();
  }

  [[nodiscard]] bool flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!object_.at(key).is_boolean()) fail(key, fmt::format("is {}; true or false is needed", object_.at(key).dump()));
    return object_.at(key).get<bool>();
  }

  [[nodiscard]] std::string text(const char* key, const std::string& otherwise) const {
    if (!has(key)) return otherwise;
    if (!object_.at(key).is_string()) fail(key, fmt::format("is {}; a string is needed", object_.at(key).dump()));
    return object_.at(key).get<std::string>();
  }

  [[nodiscard]] Fields object(const char* key) const {
    if (!object_.at(key).is_object()) fail(key, "must be an object");
    return {object_.at(key), where_};
  }

  [[noreturn]] void fail(const char* key, const std::string& what) const {
    throw InputError(fmt::format("{}: {} {}", where_, key, what));
  }

 private:
  static constexpr int64_t kLargest = int64_t{1} << 31;
  const json& object_;
  std::string where_;
};

Family family_of(const Fields& fields) {
  const std::string type = fields.text("model_type", "");
  if (type == "llama") return Family::Llama;
  if (type == "qwen3") return Family::Qwen3;
  fields.fail("model_type", fmt::format("is '{}'; known are llama and qwen3", type));
}

void refuse_unknown_variants(const Fields& fields) {
  if (fields.text("hidden_act", "silu") != "silu") fields.fail("hidden_act", "must be silu");
  if (fields.flag("attention_bias", false)) fields.fail("attention_bias", "is true; models here have no biases");
  if (fields.flag("mlp_bias", false)) fields.fail("mlp_bias", "is true; models here have no biases");
  if (fields.flag("use_sliding_window", false))
    fields.fail("use_sliding_window", "is true; attention here sees the whole sequence");
}

RopeScaling scaling_of(const Fields& rope) {
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  if (type == "default") return {};
  if (type != "llama3") rope.fail("rope_type", fmt::format("is '{}'; known are default and llama3", type));
  RopeScaling scaling;
  scaling.factor = rope.number("factor", 8);
  scaling.low_freq_factor = rope.number("low_freq_factor", 1);
  scaling.high_freq_factor = rope.number("high_freq_factor", 4);
  scaling.original_length = rope.number("original_max_position_embeddings", 8192);
  if (scaling.high_freq_factor <= scaling.low_freq_factor)
    rope.fail("high_freq_factor", "must be above low_freq_factor");
  return scaling;
}

void read_rope(const Fields& fields, ModelConfig& config) {
  config.rope_theta = fields.number("rope_theta", 10000);
  if (fields.has("rope_parameters")) {
    const Fields rope = fields.object("rope_parameters");
    config.rope_theta = rope.number("rope_theta", config.rope_theta);
    config.rope_scaling = scaling_of(rope);
  } else if (fields.has("rope_scaling")) {
    config.rope_scaling = scaling_of(fields.object("rope_scaling"));
  }
}

void check_heads(const Fields& fields, const ModelConfig& config) {
  if (config.heads % config.kv_heads != 0)
    fields.fail("num_key_value_heads",
                fmt::format("is {}, which does not divide num_attention_heads {}", config.kv_heads, config.heads));
  if (config.head_dim % 2 != 0)
    fields.fail("head_dim", fmt::format("is {}; rotary positions need an even one", config.head_dim));
}

}  // namespace

ModelConfig parse_config(std::string_view text, const std::filesystem::path& path) {
  json document;
  try {
    document = json::parse(text);
  } catch (const json::parse_error& error) {
    throw InputError(fmt::format("{}: not JSON: {}", path.string(), error.what()));
  }
  if (!document.is_object()) throw InputError(fmt::format("{}: a JSON object is needed", path.string()));
  const Fields fields(document, path.string());

  ModelConfig config;
  config.family = family_of(fields);
  refuse_unknown_variants(fields);
  config.vocab_size = fields.size("vocab_size");
  config.hidden_size = fields.size("hidden_size");
  config.intermediate_size = fields.size("intermediate_size");
  config.layers = fields.size("num_hidden_layers");
  config.heads = fields.size("num_attention_heads");
  config.kv_heads = fields.size("num_key_value_heads", config.heads);
  config.head_dim = fields.size("head_dim", config.family == Family::Qwen3 ? 128 : config.hidden_size / config.heads);
  config.max_positions = fields.size("max_position_embeddings", 2048);
  config.rms_norm_eps = fields.number("rms_norm_eps", 1e-6);
  config.initializer_range = fields.number("initializer_range", 0.02);
  config.tied_head = fields.flag("tie_word_embeddings", false);
  read_rope(fields, config);
  check_heads(fields, config);
  return config;
}

std::string to_hugging_face(const ModelConfig& config) {
  const bool qwen = config.family == Family::Qwen3;
  json document = {
      {"architectures", {qwen ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", name_of(config.family)},
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size},
      {"num_hidden_layers", config.layers},
      {"num_attention_heads", config.heads},
      {"num_key_value_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"hidden_act", "silu"},
      {"max_position_embeddings", config.max_positions},
      {"rms_norm_eps", config.rms_norm_eps},
      {"rope_theta", config.rope_theta},
      {"rope_scaling", nullptr},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"initializer_range", config.initializer_range},
      {"tie_word_embeddings", config.tied_head},
      {"torch_dtype", "float32"},
  };
  if (config.rope_scaling.factor != 1) {
    document["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", config.rope_scaling.factor},
        {"low_freq_factor", config.rope_scaling.low_freq_factor},
        {"high_freq_factor", config.rope_scaling.high_freq_factor},
        {"original_max_position_embeddings", static_cast<int64_t>(config.rope_scaling.original_length)}};
  }
  return document.dump(2) + "\n";
}

int64_t parameter_count(const ModelConfig& c) {
  const int64_t attention = 2 * c.hidden_size * c.head_dim * (c.heads + c.kv_heads);
  const int64_t norms = 2 * c.hidden_size + (c.family == Family::Qwen3 ? 2 * c.head_dim : 0);
  const int64_t block = attention + 3 * c.hidden_size * c.intermediate_size + norms;
  return c.layers * block + (c.tied_head ? 1 : 2) * c.vocab_size * c.hidden_size + c.hidden_size;
}

double flops_per_row(const ModelConfig& c, const RowLengths& lengths) {
  const int64_t block =
      2 * c.hidden_size * c.head_dim * (c.heads + c.kv_heads) + 3 * c.hidden_size * c.intermediate_size;
  const int64_t matrices = c.layers * block + c.vocab_size * c.hidden_size;
  const auto tokens = static_cast<double>(lengths.tokens);
  return tokens *
         (6.0 * static_cast<double>(matrices) + 12.0 * static_cast<double>(c.layers * c.heads * c.head_dim) * tokens);
}

std::string_view name_of(Family family) {
  return family == Family::Qwen3 ? "qwen3" : "llama";
}

}  // namespace trainyard::models
