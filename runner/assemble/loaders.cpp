#include "assemble/loaders.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "assemble/demo/demo.h"
#include "assemble/images.h"
#include "assemble/line_reading.h"
#include "assemble/pairs.h"
#include "assemble/read_ahead.h"
#include "assemble/tokenizer.h"
#include "base/error.h"
#include "base/text.h"
#include "config/mix.h"
#include "config/value.h"
#include "data/corpus_files.h"
#include "data/packed_corpus.h"
#include "data/split.h"
#include "data/split_rows.h"

namespace trainyard::train {
namespace fs = std::filesystem;
namespace {

constexpr const char *kEmbedded = "embedded", *kRandom = "random";  // in place of a path

/// Documents that nothing ends run into each other.
void check_ends(const config::Data& data, const tokenizer::Tokenizer& tokenizer) {
  if (!data.append_eos || tokenizer.eos_id()) return;
  if (data.path != kEmbedded && data::has_several_documents({.path = data.path, .field = data.field}))
    throw InputError(fmt::format("{} has more than one document, but {}", data.path, no_end_of(data)));
  spdlog::warn("{}: its end is not marked, as the tokenizer {} has no token that ends a document", data.path,
               data.tokenizer);
}

data::CorpusOptions corpus_options_of(const config::Data& settings, const data::Tokenising& how) {
  return {.path = settings.path,
          .field = settings.field,
          .append_eos = settings.append_eos,
          .tokenizer = settings.tokenizer,
          .cache_dir = settings.cache_dir,
          .how = how};
}

/// A corpus whose lines are no texts.
data::TokenArray corpus_of_lines(const config::Data& settings, const LoaderParts& parts) {
  if (settings.path == kEmbedded)
    throw InputError(fmt::format("'{}' is a text, and data.{}_field is for other lines; leave one out", kEmbedded,
                                 settings.messages_field.empty() ? "input_ids" : "messages"));
  const auto reading = line_reading_of(settings, parts.tokenizer, parts.model.vocab_size);
  return data::open_corpus(corpus_options_of(settings, parts.how), *reading);
}

data::TokenArray corpus_of(const config::Data& settings, const LoaderParts& parts) {
  if (has_line_reading(settings)) return corpus_of_lines(settings, parts);
  const tokenizer::Tokenizer& tokenizer = *parts.tokenizer;
  check_ends(settings, tokenizer);
  if (settings.path == kEmbedded)
    return data::tokenise_text(demo::corpus(), tokenizer, settings.append_eos, "the embedded corpus");
  return data::open_corpus(corpus_options_of(settings, parts.how), tokenizer);
}

/// Refuses data that models of this kind do not learn from.
void check_data_fits(const config::Data& data, const models::ModelConfig& model) {
  using models::LearnsFrom;
  const LearnsFrom wanted = models::learns_from(model);
  if (wanted == LearnsFrom::Images && data.images.empty())
    throw InputError(fmt::format("a {} model learns from labelled images; set data.images", model.family));
  if (wanted != LearnsFrom::Images && !data.images.empty())
    throw InputError(fmt::format("data.images is given, but a {} model learns from text; set data.path", model.family));
  if (wanted == LearnsFrom::Pairs && data.tokens.empty() && !is_of_pairs(data))
    throw InputError(
        fmt::format("a {} model learns from pairs of a source and a target; set data.source_field and "
                    "data.target_field",
                    model.family));
}

std::unique_ptr<data::Loader> random_loader_of(const LoaderParts& parts, const BatchSize& batch) {
  return data::random_tokens({.place = parts.place,
                              .sequence_length = batch.sequence_length,
                              .batch_size = batch.rows,
                              .accumulation_steps = batch.accumulation_steps,
                              .seed = parts.config.data.seed,
                              .vocab_size = parts.model.vocab_size});
}

/// The number of sequences of one pass.
int64_t sequences_of(const data::TokenArray& corpus, int64_t sequence_length) {
  return data::PackedCorpus(corpus, {.sequence_length = sequence_length}).windows();
}

/// The corpus of `data`, one side of it, whose ids the model knows.
data::TokenArray checked_corpus_of(const LoaderParts& parts, const config::Data& data, int64_t sequence_length,
                                   const data::Split& split) {
  data::TokenArray corpus = side_of(corpus_of(data, parts), sequence_length, split);
  data::check_ids(corpus, parts.model.vocab_size, parts.how);
  if (corpus.counting() == data::Counting::SomeIds && parts.how.notes == data::Notes::Logged)
    spdlog::info("{}: the loss counts tokens in {} of {} rows; the others are left out", corpus.name(),
                 with_thousands(sequences_of(corpus, sequence_length)),
                 with_thousands((corpus.size() - 1) / sequence_length));
  return corpus;
}

/// The corpora of data.mix.
std::vector<data::WeightedCorpus> mix_of(const LoaderParts& parts, int64_t sequence_length) {
  const std::vector<config::MixedPath> paths = config::mixed_paths(parts.config.data.mix);
  int64_t together = 0;
  for (const config::MixedPath& each : paths) together += each.weight;
  std::vector<data::WeightedCorpus> corpora;
  config::Data data = parts.config.data;
  for (const config::MixedPath& each : paths) {
    data.path = each.path;
    corpora.push_back({checked_corpus_of(parts, data, sequence_length, {}), each.weight});
    if (parts.how.notes == data::Notes::Logged)
      spdlog::info("{}: {} of {} sequences; it begins anew after each {}", each.path, with_thousands(each.weight),
                   with_thousands(together), with_thousands(sequences_of(corpora.back().tokens, sequence_length)));
  }
  return corpora;
}

/// The keys of [data], for the data that is held out.
config::Data of_held_out(const config::Config& config) {
  const config::Validation& validation = config.validation;
  config::Data data = config.data;
  if (validation.split == 0) {
    data.path = validation.path, data.images = validation.images;
    data.max_samples = 0;
  }
  data.num_workers = 0, data.shuffle = false;
  return data;
}

}  // namespace

void require_text_files(const config::Loaded& loaded) {
  const config::Config& config = loaded.config;
  std::vector<std::pair<const char*, std::string>> paths{{"data.path", config.data.path},
                                                         {"validation.path", config.validation.path},
                                                         {"sample.path", config.sample.path}};
  for (const config::MixedPath& each : config::mixed_paths(config.data.mix)) paths.emplace_back("data.mix", each.path);
  for (const auto& [key, path] : paths) {
    if (path.empty() || path == kEmbedded || path == kRandom || data::is_there(path)) continue;
    throw InputError(fmt::format("{} is '{}': no such file or folder, and nothing is downloaded", loaded.subject(key),
                                 config::shown(path)));
  }
}

data::Place place_of(const MeshSize& mesh, int rank) {
  return {mesh.data_rank(rank), mesh.data_ranks()};
}

std::unique_ptr<data::Loader> rows_of_rank(std::unique_ptr<data::Loader> loader, const Sharding& sharding, int rank) {
  if (!loader || sharding.mesh.context == 1) return loader;
  return data::split_rows(std::move(loader), row_parts_of(sharding.mesh, sharding.context),
                          sharding.mesh.place_in(shard::Dimension::Context, rank));
}

std::unique_ptr<data::Loader> loader_of(const LoaderParts& parts, const BatchSize& batch) {
  const config::Data& data = parts.config.data;
  const data::Split split{parts.config.validation.split, data::Side::Training};
  check_data_fits(data, parts.model);
  if (!data.images.empty())
    return image_loader_of(data, batch, parts.model, parts.place, data::Part::Training, data::Repeat::Forever, split);
  if (!data.tokens.empty())
    return data::token_batches(data.tokens, {.place = parts.place,
                                             .accumulation_steps = batch.accumulation_steps,
                                             .vocab_size = parts.model.vocab_size});
  if (is_of_pairs(data))
    return pair_loader_of(data, batch, *parts.tokenizer, parts.model, parts.place, parts.how, data::Repeat::Forever,
                          split);
  if (data.path == kRandom) return random_loader_of(parts, batch);
  const data::PackingOptions options{.place = parts.place,
                                     .sequence_length = batch.sequence_length,
                                     .batch_size = batch.rows,
                                     .accumulation_steps = batch.accumulation_steps,
                                     .seed = data.seed,
                                     .shuffle = data.shuffle};
  if (!data.mix.empty()) {
    const std::vector<data::WeightedCorpus> corpora = mix_of(parts, batch.sequence_length);
    return by_workers(data, [&] { return data::mixed_loader(corpora, options); });
  }
  const data::TokenArray corpus = checked_corpus_of(parts, data, batch.sequence_length, split);
  return by_workers(data, [&] { return data::packed_loader(corpus, options); });
}

std::unique_ptr<data::Loader> validation_loader_of(const LoaderParts& parts, const BatchSize& batch) {
  const config::Validation& validation = parts.config.validation;
  if (!validation.tokens.empty())
    return data::token_batches(
        validation.tokens,
        {.place = parts.place, .prefer = data::Prefer::SingleBatch, .vocab_size = parts.model.vocab_size});
  const data::Split split{validation.split, data::Side::HeldOut};
  if (validation.path.empty() && validation.images.empty() && split.share == 0) return nullptr;
  const config::Data data = of_held_out(parts.config);
  LoaderParts reading = parts;
  if (split.share > 0) reading.how.notes = data::Notes::Unsaid;  // the training data's loader has logged it
  const data::Part part = split.share > 0 ? data::Part::Training : data::Part::Test;
  check_data_fits(data, parts.model);
  if (!data.images.empty())
    return image_loader_of(data, batch, parts.model, parts.place, part, data::Repeat::Never, split);
  if (is_of_pairs(data))
    return pair_loader_of(data, batch, *parts.tokenizer, parts.model, parts.place, reading.how, data::Repeat::Never,
                          split);
  return data::packed_loader(checked_corpus_of(reading, data, batch.sequence_length, split),
                             {.place = parts.place,
                              .sequence_length = batch.sequence_length,
                              .batch_size = batch.rows,
                              .shuffle = false,
                              .repeat = data::Repeat::Never});
}

}  // namespace trainyard::train
