#include "assemble/tokenizer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "assemble/line_reading.h"
#include "base/error.h"

namespace trainyard::train {

namespace {

/// A chat template writes special tokens.
tokenizer::SpecialTokensAre in_text(const config::Data& data) {
  const bool are_parsed = data.special_tokens == config::SpecialTokens::Parse || !data.messages_field.empty();
  return are_parsed ? tokenizer::SpecialTokensAre::Parsed : tokenizer::SpecialTokensAre::Text;
}

/// Who writes data.append_eos wants ends.
void check_wanted_end(const config::Loaded& loaded, const tokenizer::Tokenizer& tokenizer) {
  constexpr const char* kKey = "data.append_eos";
  const config::Data& data = loaded.config.data;
  const bool is_text = (!data.path.empty() || !data.mix.empty()) && !has_line_reading(data);
  if (data.append_eos && is_text && loaded.layer(kKey) != config::kDefaultLayer && !tokenizer.eos_id())
    throw InputError(fmt::format("{}, but {}", loaded.statement(kKey), no_end_of(data)));
}

}  // namespace

std::string no_end_of(const config::Data& data) {
  return fmt::format(
      "the tokenizer {} has no token that ends a document; set data.append_eos to false, or name one as "
      "eos_token in its tokenizer_config.json",
      data.tokenizer);
}

std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const config::Loaded& loaded) {
  const std::string& path = loaded.config.data.tokenizer;
  const std::string from = loaded.origin("data.tokenizer");
  try {
    if (path.empty()) return nullptr;
    auto loaded_tokenizer = tokenizer::load_tokenizer(path, in_text(loaded.config.data));
    check_wanted_end(loaded, *loaded_tokenizer);
    return loaded_tokenizer;
  } catch (const InputError& error) {
    if (!from.starts_with("default of ")) throw;
    throw InputError(fmt::format("{}. No key names a tokenizer, so this path is the {}; name yours by that key or by "
                                 "data.tokenizer",
                                 error.what(), from));
  }
}

void warn_of_other_ids(const config::Data& data, const std::string& family) {
  if (data.tokenizer.empty()) return;
  const std::string name = tokenizer::other_class_beside(family, data.tokenizer);
  if (name.empty()) return;
  spdlog::warn(
      "{}: beside the config.json of a {} model transformers' AutoTokenizer splits text as {} does, which gives other "
      "ids than here; have \"tokenizer_class\": \"PreTrainedTokenizerFast\" in its tokenizer_config.json, and where it "
      "has that, load it with PreTrainedTokenizerFast",
      data.tokenizer, family, name);
}

}  // namespace trainyard::train
