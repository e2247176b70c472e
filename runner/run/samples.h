#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "config/config.h"
#include "data/pairs.h"
#include "models/language_model.h"
#include "tokenizer/tokenizer.h"
#include "train/snapshot.h"

namespace trainyard::train {

/// Texts that a run's model makes for people to read: of sample.prompt, and of the pairs of sample.path.
/// Collective: every rank calls each method, as each holds a part of the model.
class Samples {
 public:
  /// Reads the pairs. All that is given must outlive this. Without a tokenizer, which is null then, no text is made.
  Samples(const config::Config& config, const tokenizer::Tokenizer* tokenizer, comm::Communicator& world);

  /// Finds, where texts will be made, the ids that end one; rank 0 alone need have the model's folder.
  /// Throws InputError as stop_ids_of does.
  void find_stop_ids(const Description& description, int64_t vocab_size);

  /// sample.prompt and what the model goes on with, under a title. "" where there is no prompt.
  [[nodiscard]] std::string of_prompt(const std::string& title, models::Model& model) const;

  /// The model's answers to the pairs, with their scores. "" where there are none.
  [[nodiscard]] std::string of_pairs(models::Model& model) const;

 private:
  const config::Config& config_;
  const tokenizer::Tokenizer* tokenizer_;
  comm::Communicator& world_;
  std::vector<data::PairText> pairs_;
  std::vector<int32_t> stop_ids_;
};

}  // namespace trainyard::train
