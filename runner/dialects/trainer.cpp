#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "dialects/tables.h"

namespace trainyard::dialects {
namespace {

std::vector<Row> trainer_rows() {
  std::vector<Row> rows{
      brings("fsdp", "true", "parallel.strategy", "full_shard"),
      only("fsdp", {"false"}, ""),
      maps("full_shard", "parallel.strategy", {{"true", "full_shard"}}),
      maps("shard_grad_op", "parallel.strategy", {{"true", "shard_grad_op"}}),
      maps("no_shard", "parallel.strategy", {{"true", "no_shard"}}),
      maps("hybrid_shard", "parallel.strategy", {{"true", "hybrid_shard"}}),
      maps("hybrid_shard_zero2", "parallel.strategy", {{"true", "hybrid_shard_zero2"}}),
      only("auto_wrap", {"true"}, ""),
      maps("offload", "parallel.offload", {{"true", "true"}}),
  };
  rows.insert(rows.end(), fsdp_rows().begin(), fsdp_rows().end());
  return rows;
}

}  // namespace

const Dialect& trainer() {
  static const std::vector<Row> rows = trainer_rows();
  static const Dialect dialect{
      "Trainer",
      "The words of `--fsdp \"…\"`, or `--fsdp` alone as in version 5; the keys of `--fsdp_config`, a file or the JSON "
      "itself, are [below](#fsdp_).",
      rows};
  return dialect;
}

Document read_trainer_words(const std::string& words) {
  // Trainer 5 turns it on or off; how, says --fsdp_config.
  if (const auto is_on = truth_of(trim(words))) return {{"fsdp", *is_on ? "true" : "false", "--fsdp"}};
  Document document;
  for (const std::string& part : split(words, ' ')) {
    const std::string word(trim(part));
    // Pages write "full shard" for it; alone neither word is one.
    if (word == "shard" && !document.empty() && document.back().key == "full")
      document.back().key = "full_shard";
    else if (!word.empty())
      document.push_back({config::shown(word), "true", "--fsdp"});
  }
  return document;
}

Document read_trainer_config(const config::YamlText& source) {
  Document document = read_document(source);
  for (Entry& entry : document)  // the Trainer takes its keys with and without fsdp_
    if (!entry.key.starts_with("fsdp_") && !entry.key.starts_with("xla")) entry.key.insert(0, "fsdp_");
  return document;
}

}  // namespace trainyard::dialects
