#pragma once

#include <memory>

#include "assemble/run_spec.h"
#include "config/load.h"
#include "data/loader.h"
#include "data/loaders.h"
#include "models/config.h"
#include "tokenizer/tokenizer.h"

// The keys of [data] and [validation] become loaders here.
namespace trainyard::train {

/// Refuses a path of data.path, data.mix, validation.path or sample.path that is not there, by the name under which it
/// was given.
void require_text_files(const config::Loaded& loaded);

/// What the loaders of a rank are made of. All of it is used during the call alone.
struct LoaderParts {
  const config::Config& config;           ///< where the data is, and in which order
  const tokenizer::Tokenizer* tokenizer;  ///< null: the data is none of text
  const models::ModelConfig& model;
  data::Place place;
  /// The threads are for a corpus, which others of this node wait for; pairs are read by each rank with its own.
  data::Tokenising how = {};
};

/// A rank's place among those that get rows of their own.
data::Place place_of(const MeshSize& mesh, int rank);

/// What `rank` has of the rows that come to its place: all of them, or with context parallelism a part of each.
std::unique_ptr<data::Loader> rows_of_rank(std::unique_ptr<data::Loader> loader, const Sharding& sharding, int rank);

/// This rank's loader. Throws InputError where the data and the model do not fit each other, and TerminatedError where
/// it is asked to stop.
std::unique_ptr<data::Loader> loader_of(const LoaderParts& parts, const BatchSize& batch);

/// This rank's loader of the held-out data: one pass in the order of the data. Null where none is given.
std::unique_ptr<data::Loader> validation_loader_of(const LoaderParts& parts, const BatchSize& batch);

}  // namespace trainyard::train
