#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"

namespace trainyard::models {
namespace {

struct Size {
  int64_t hidden, ff, layers, heads, kv_heads, head_dim;
  bool tied;
};

ModelConfig qwen3(const Size& size, int64_t vocab = 151936, int64_t positions = 40960) {
  ModelConfig c;
  c.family = Family::Qwen3;
  c.vocab_size = vocab;
  c.hidden_size = size.hidden, c.intermediate_size = size.ff, c.layers = size.layers;
  c.heads = size.heads, c.kv_heads = size.kv_heads, c.head_dim = size.head_dim, c.tied_head = size.tied;
  c.max_positions = positions;
  c.rope_theta = 1e6, c.rms_norm_eps = 1e-6;
  return c;
}

ModelConfig llama3(const Size& size, double rope_factor) {
  ModelConfig c = qwen3(size, 128256, rope_factor == 1 ? 8192 : 131072);
  c.family = Family::Llama;
  c.rope_theta = 5e5, c.rms_norm_eps = 1e-5;
  c.rope_scaling.factor = rope_factor;
  return c;
}

ModelConfig llama2(const Size& size) {
  ModelConfig c = qwen3(size, 32000, 4096);
  c.family = Family::Llama;
  c.rope_theta = 1e4, c.rms_norm_eps = 1e-5;
  return c;
}

const std::map<std::string, ModelConfig>& presets() {
  static const std::map<std::string, ModelConfig> all{
      {"qwen3-0.6b", qwen3({1024, 3072, 28, 16, 8, 128, true})},
      {"qwen3-1.7b", qwen3({2048, 6144, 28, 16, 8, 128, true})},
      {"qwen3-4b", qwen3({2560, 9728, 36, 32, 8, 128, true})},
      {"qwen3-8b", qwen3({4096, 12288, 36, 32, 8, 128, false})},
      {"qwen3-14b", qwen3({5120, 17408, 40, 40, 8, 128, false})},
      {"qwen3-32b", qwen3({5120, 25600, 64, 64, 8, 128, false})},
      {"llama3-8b", llama3({4096, 14336, 32, 32, 8, 128, false}, 1)},
      {"llama3.2-1b", llama3({2048, 8192, 16, 32, 8, 64, true}, 32)},
      {"llama3.2-3b", llama3({3072, 8192, 28, 24, 8, 128, true}, 32)},
      {"llama3.1-8b", llama3({4096, 14336, 32, 32, 8, 128, false}, 8)},
      {"llama3.1-70b", llama3({8192, 28672, 80, 64, 8, 128, false}, 8)},
      {"llama3.1-405b", llama3({16384, 53248, 126, 128, 8, 128, false}, 8)},
      {"llama2-7b", llama2({4096, 11008, 32, 32, 32, 128, false})},
      {"llama2-13b", llama2({5120, 13824, 40, 40, 40, 128, false})},
      {"llama2-70b", llama2({8192, 28672, 80, 64, 8, 128, false})},
      // Small ones for a laptop, byte-level (256 bytes and an end mark, padded to 512) or with a small tokenizer.
      {"qwen3-tiny", qwen3({128, 384, 4, 4, 2, 32, true}, 512, 1024)},
      {"qwen3-30m", qwen3({512, 1536, 8, 8, 4, 64, true}, 8192, 2048)},
  };
  return all;
}

/// Case and hyphens aside: "Llama-3.1-8B" is llama3.1-8b.
std::string plain(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

}  // namespace

ModelConfig preset(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [known_name, config] : presets()) {
    if (plain(known_name) == plain(name)) return config;
    known.push_back(known_name);
  }
  const auto near = nearest(name, known);
  throw InputError(fmt::format("model.preset '{}' is not known{}; known are {}", name,
                               near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(known, ", ")));
}

}  // namespace trainyard::models
