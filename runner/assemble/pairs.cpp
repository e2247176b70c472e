#include "assemble/pairs.h"

#include <fmt/format.h>

#include <stdexcept>

#include "assemble/read_ahead.h"
#include "base/error.h"
#include "ops/threads.h"

namespace trainyard::train {
namespace {

data::PairOptions options_of(const config::Data& data) {
  return {.path = data.path,
          .source_field = data.source_field,
          .target_field = data.target_field,
          .prefix = data.prefix,
          .max_source_length = data.max_source_length,
          .max_target_length = data.max_target_length,
          .overlong = data.truncate ? data::Overlong::Truncate : data::Overlong::Refuse,
          .max_samples = data.max_samples};
}

data::Padding padding_of(config::Padding padding) {
  switch (padding) {
    case config::Padding::Bucket:
      return data::Padding::Bucket;
    case config::Padding::Longest:
      return data::Padding::Longest;
    case config::Padding::MaxLength:
      return data::Padding::MaxLength;
  }
  throw std::logic_error("padding_of: no such padding");
}

void check_fit(const config::Data& data, const tokenizer::Tokenizer& tokenizer, const models::ModelConfig& model) {
  if (models::learns_from(model) != models::LearnsFrom::Pairs)
    throw InputError(
        fmt::format("data.source_field is given, but a {} model learns from plain text; leave it out, or "
                    "choose an encoder-decoder such as t5-small",
                    model.family));
  if (data.max_source_length > model.max_positions)
    throw InputError(fmt::format("data.max_source_length is {}, but the model takes sources of {} tokens at most",
                                 data.max_source_length, model.max_positions));
  if (tokenizer.vocab_size() > model.vocab_size)
    throw InputError(fmt::format("data.tokenizer has {} ids, but the model's vocabulary has {}", tokenizer.vocab_size(),
                                 model.vocab_size));
}

}  // namespace

bool is_of_pairs(const config::Data& data) {
  return !data.source_field.empty();
}

std::unique_ptr<data::Loader> pair_loader_of(const config::Data& data, const BatchSize& batch,
                                             const tokenizer::Tokenizer& tokenizer, const models::ModelConfig& model,
                                             const data::Place& place, const data::Tokenising& how, data::Repeat repeat,
                                             const data::Split& split) {
  check_fit(data, tokenizer, model);
  data::PairOptions reading = options_of(data);
  reading.how = how, reading.how.threads = ops::threads();
  const data::PairArray pairs = side_of(data::tokenise_pairs(reading, tokenizer), split);
  const data::PairLoaderOptions options{.place = place,
                                        .batch_size = batch.rows,
                                        .accumulation_steps = batch.accumulation_steps,
                                        .seed = data.seed,
                                        .shuffle = data.shuffle,
                                        .padding = padding_of(data.padding),
                                        .max_source_length = data.max_source_length,
                                        .max_target_length = data.max_target_length,
                                        .pad_to_multiple_of = data.pad_to_multiple_of,
                                        .pad_token = model.t5.pad_token,
                                        .repeat = repeat};
  return by_workers(data, [&] { return data::pair_loader(pairs, options); });
}

std::vector<data::PairText> sample_pairs(const config::Config& config, data::Notes notes) {
  if (config.sample.path.empty()) return {};
  data::PairOptions options = options_of(config.data);
  options.path = config.sample.path, options.max_samples = config.sample.count;
  options.how.notes = notes;
  try {
    return data::read_pairs(options);
  } catch (const InputError& error) {
    throw InputError(fmt::format("sample.path: {}", error.what()));
  }
}

}  // namespace trainyard::train
