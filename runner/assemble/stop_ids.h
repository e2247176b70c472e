#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::train {

/// Where a model's folder says which ids end a text that the model makes. The end of a document in a corpus is another
/// thing: that is the tokenizer's alone.
struct StopSources {
  std::string generation_config;  ///< the text of generation_config.json; "" where there is none
  std::string config_json;        ///< that of config.json
  std::string where;              ///< the model's folder, for messages
};

/// The text of the generation_config.json that belongs to the weights at `weights`; "" where there is none.
/// Throws InputError where it cannot be read.
std::string generation_config_of(const std::filesystem::path& weights);

/// eos_token_id, one id or several, of the first of generation_config.json, config.json and the tokenizer that has one;
/// null counts as none. Empty: nothing ends a text.
/// Throws InputError, naming the file, for a value that is no id below `vocab_size`, nor a list of such.
std::vector<int32_t> stop_ids_of(const StopSources& sources, const tokenizer::Tokenizer& tokenizer, int64_t vocab_size);

/// The same on every rank, though rank 0 alone asks for the sources: only it need have the model's folder. Collective.
std::vector<int32_t> stop_ids_of_rank_0(const std::function<StopSources()>& sources, const tokenizer::Tokenizer& tokenizer,
                                        int64_t vocab_size, comm::Communicator& world);

}  // namespace trainyard::train
