#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/corpus.h"
#include "data/loader.h"

namespace trainyard::data {

/// This rank's place among those that see different data (the data-parallel world).
struct Place {
  int64_t rank = 0;
  int64_t world = 1;
};

/// What follows the last sequence of an epoch: the next one, or nothing, and then the last micro-batch is short.
enum class Repeat { Forever, Never };

struct PackingOptions {
  Place place;
  int64_t sequence_length = 512;
  int64_t batch_size = 8;          ///< rows a rank and micro-batch
  int64_t accumulation_steps = 1;  ///< micro-batches a step
  uint64_t seed = 0;
  bool shuffle = true;  ///< else the order of the corpus
  Repeat repeat = Repeat::Forever;
};

/// Cuts a corpus into windows of sequence_length + 1 ids that overlap by one, so that each id but the first is a target
/// once an epoch; what is left at the end and fills no window is not used. Each epoch has an order of its own, a keyed
/// permutation that takes no memory. Global micro-batch k holds the sequences [k * rows, (k + 1) * rows) of the endless
/// sequence of epochs, rows = batch_size * world, row g of it at rank g % world: no sequence is lost or handed out
/// twice, also where an epoch ends inside a micro-batch.
/// Throws InputError where the corpus is too short for one window.
std::unique_ptr<Loader> packed_loader(TokenArray tokens, const PackingOptions& options);

/// A corpus of a mix. Of as many sequences as the weights of all sum to, `weight` are of this one.
struct WeightedCorpus {
  TokenArray tokens;
  int64_t weight;  ///< 1 or more
};

/// The sequences of several corpora, packed and ordered each as by packed_loader, in the order of a Mixture of their
/// weights. It has no end: a corpus that is through begins its next epoch. `repeat` is not looked at.
/// Throws as packed_loader; std::invalid_argument for weights as Mixture does.
std::unique_ptr<Loader> mixed_loader(std::vector<WeightedCorpus> corpora, const PackingOptions& options);

struct RandomTokenOptions {
  Place place;
  int64_t sequence_length = 512;
  int64_t batch_size = 8;          ///< rows a rank and micro-batch
  int64_t accumulation_steps = 1;  ///< micro-batches a step
  uint64_t seed = 0;
  int64_t vocab_size = 0;  ///< ids are below it
};

/// Rows of ids drawn evenly, without an end: for models that are tried and not taught. targets[t] is what input_ids[t +
/// 1] is, or would be. Which ids follows from the seed and the row's number alone, whatever the number of ranks.
std::unique_ptr<Loader> random_tokens(const RandomTokenOptions& options);

/// Which batches of a file that holds both are taken: a run's, or the single one.
enum class Prefer { TrainingBatches, SingleBatch };

struct TokenBatchOptions {
  Place place;
  Prefer prefer = Prefer::TrainingBatches;
  int64_t accumulation_steps =
      1;                   ///< a rank's rows of a step are split into so many consecutive pieces, some may be empty
  int64_t vocab_size = 0;  ///< of the model; an id outside is an InputError. 0: only negative ids are
};

/// Replays the pre-tokenised batches of a safetensors file, in file order (docs/tokenizers-and-data.md):
///   input_ids [rows, tokens]               one batch for ever
///   train.input_ids [steps, rows, tokens]  one batch a step; next() past the last is an InputError
///   labels, position_ids                   the same shape and prefix, optional
/// int32 or int64, read as they are needed. targets[t] = labels[t + 1], the last kIgnored; without labels, input_ids
/// stand for them. Where position_ids are there, a document begins where they are 0, and its first token is no target;
/// they count on by one otherwise. Row g of a batch is at rank g % world. A file with an attention_mask holds pairs
/// (pair_batches.h).
std::unique_ptr<Loader> token_batches(const std::filesystem::path& file, const TokenBatchOptions& options);

}  // namespace trainyard::data
