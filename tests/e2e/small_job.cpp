#include "small_job.h"

#include <fmt/format.h>

#include <fstream>

namespace trainyard::test {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfig =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 257, "hidden_size": 32,
 "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5,
 "rope_theta": 10000.0, "max_position_embeddings": 128, "tie_word_embeddings": true, "hidden_act": "silu"})";

}  // namespace

SmallJob::SmallJob() {
  write_text(folder_ / "config.json", kConfig);
  std::string corpus;
  for (int line = 0; line < 2000; ++line)
    corpus += fmt::format("{} times {} is {}.\n", line % 41, line % 13, (line % 41) * (line % 13));
  write_text(folder_ / "corpus.txt", corpus);
}

Words SmallJob::train(int steps, Words more) const {
  return Words{"train",
               "--model.config",
               (folder_ / "config.json").string(),
               "--data.path",
               (folder_ / "corpus.txt").string(),
               "--data.tokenizer",
               "bytes",
               "--training.sequence_length",
               "32",
               "--training.batch_size",
               "2",
               "--training.steps",
               std::to_string(steps),
               "--optimizer.lr",
               "0.01",
               "--checkpoint.dir",
               checkpoints().string(),
               "--metrics.dir",
               folder_.path().string(),
               "--metrics.interval",
               "1",
               "--device.threads",
               "1"} +
         more;
}

nlohmann::json SmallJob::config() const {
  return nlohmann::json::parse(kConfig);
}
std::vector<nlohmann::json> SmallJob::metrics() const {
  return json_lines(folder_ / "metrics.jsonl");
}
std::vector<double> SmallJob::losses() const {
  return column(metrics(), "loss");
}

std::vector<nlohmann::json> json_lines(const fs::path& file) {
  std::vector<nlohmann::json> records;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) records.push_back(nlohmann::json::parse(line));
  return records;
}

std::vector<double> column(const std::vector<nlohmann::json>& records, const std::string& key) {
  std::vector<double> values;
  for (const auto& record : records) values.push_back(record.at(key).get<double>());
  return values;
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace trainyard::test
