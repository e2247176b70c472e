#include "tokenizer/files/tokenizer_class.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace trainyard::tokenizer {
namespace {

// The lists are those of transformers 5.17.
/// GPT-2's class and those with its steps; the last four are other names of RoBERTa's.
constexpr auto kLikeGpt2 = std::to_array<std::string_view>({"GPT2Tokenizer", "RobertaTokenizer", "CodeGenTokenizer",
                                                            "WhisperTokenizer", "DebertaTokenizer", "BartTokenizer",
                                                            "LEDTokenizer", "LongformerTokenizer", "MvpTokenizer"});

/// Families whose folders are of a class although they name none.
constexpr auto kOfGpt2 = std::to_array<std::string_view>(
    {"bart", "codegen", "dbrx", "deberta", "gpt2", "gpt_neo", "gptj", "jais2", "led", "longformer", "mvp", "opt", "phi",
     "roberta", "roberta-prelayernorm", "starcoder2", "whisper"});
constexpr auto kOfGptNeoX = std::to_array<std::string_view>(
    {"falcon_mamba", "gpt_neox", "mamba", "mamba2", "mpt", "olmo", "olmoe", "rwkv", "xlstm"});
constexpr auto kOfQwen2 = std::to_array<std::string_view>(
    {"qwen2", "qwen2_5_omni", "qwen2_5_vl", "qwen2_audio", "qwen2_moe", "qwen2_vl", "qwen3", "qwen3_asr", "qwen3_moe",
     "qwen3_next", "qwen3_omni_moe", "qwen3_vl", "qwen3_vl_moe"});

/// Families that AutoTokenizer reads by tokenizer.json, whatever class their folders name.
constexpr auto kByFile = std::to_array<std::string_view>({
    "arctic",
    "aria",
    "bigbird_pegasus",
    "canary",
    "chameleon",
    "chatlm",
    "cohere_asr",
    "deepseek_ocr",
    "deepseek_ocr2",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "deepseek_v4",
    "deepseek_vl",
    "deepseek_vl_hybrid",
    "deepseek_vl_v2",
    "ernie4_5",
    "ernie4_5_moe",
    "flex_olmo",
    "fuyu",
    "glm",
    "glm4",
    "glm4_moe",
    "glm4_moe_lite",
    "glm4v",
    "glm4v_moe",
    "glm_image",
    "glmasr",
    "got_ocr2",
    "gpt_bigcode",
    "granite",
    "granitemoe",
    "granitemoehybrid",
    "granitemoeshared",
    "h2ovl_chat",
    "hyperclovax",
    "hyperclovax_vlm",
    "internlm2",
    "jamba",
    "janus",
    "kimi_k25",
    "kimi_linear",
    "kosmos-2",
    "llava",
    "llava_next",
    "mimo_v2_flash",
    "minicpm3",
    "minicpmv",
    "minicpmv4_6",
    "minimax_m2",
    "ministral",
    "ministral3",
    "mistral",
    "mistral3",
    "mixtral",
    "modernbert",
    "molmo",
    "molmo2",
    "nemotron",
    "nystromformer",
    "olmo2",
    "olmo3",
    "olmo_hybrid",
    "opencua",
    "openvla",
    "paddleocr_vl",
    "pegasus_x",
    "persimmon",
    "phi3",
    "phi3_v",
    "phimoe",
    "pix2struct",
    "pixtral",
    "smolvlm",
    "stablelm",
    "step3_vl",
    "step3p5",
    "umt5",
    "vipllava",
    "voxtral",
    "voxtral_realtime",
});

bool has(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string_view class_of_family(std::string_view model_type) {
  if (has(kOfGpt2, model_type)) return "GPT2Tokenizer";
  if (has(kOfGptNeoX, model_type)) return "GPTNeoXTokenizer";
  return has(kOfQwen2, model_type) ? "Qwen2Tokenizer" : "";
}

}  // namespace

std::string_view class_of(const SpecialTokens& special) {
  constexpr std::string_view kQwen2 = "Qwen2Tokenizer", kGptNeoX = "GPTNeoXTokenizer";
  if (has(kByFile, special.model_type)) return "";
  if (special.model_type == "qwen2") return kQwen2;
  const bool is_named = !special.tokenizer_class.empty();
  const std::string_view name = is_named ? special.tokenizer_class : class_of_family(special.model_type);
  return name == kQwen2 || name == kGptNeoX || has(kLikeGpt2, name) ? name : "";
}

std::optional<TextSteps> steps_of_class(const SpecialTokens& special) {
  const std::string_view name = class_of(special);
  if (name.empty()) return std::nullopt;
  TextSteps steps{.add_prefix_space = special.add_prefix_space.value_or(false)};
  if (name == "Qwen2Tokenizer") {
    steps.normalization = {Normalization::Nfc};
    steps.before = {{kQwen2Pattern}};
    return steps;
  }
  steps.rules = {{kGpt2Pattern}};
  if (name == "GPTNeoXTokenizer") steps.normalization = {Normalization::Nfc};
  return steps;
}

}  // namespace trainyard::tokenizer
