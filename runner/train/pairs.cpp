#include "train/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "tokenizer/utf8.h"
#include "train/generate.h"
#include "train/setup.h"

namespace trainyard::train {
namespace {

constexpr size_t kSideBySide = 32;  ///< answers made at once: what is gathered for a token serves all of them

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

void check_fit(const config::Config& config, const tokenizer::Tokenizer& tokenizer, const models::ModelConfig& model) {
  const config::Data& data = config.data;
  if (models::learns_from(model) != models::LearnsFrom::Pairs)
    throw InputError(
        fmt::format("data.source_field is given, but a {} model learns from plain text; leave it out, or "
                    "choose an encoder-decoder such as t5-small",
                    model.family));
  if (config.training.sequence_length != config::Training().sequence_length)
    throw InputError(
        fmt::format("training.sequence_length is {}, but pairs have lengths of their own; leave it out, and set "
                    "data.max_source_length and data.max_target_length",
                    config.training.sequence_length));
  if (data.max_source_length > model.max_positions)
    throw InputError(fmt::format("data.max_source_length is {}, but the model takes sources of {} tokens at most",
                                 data.max_source_length, model.max_positions));
  if (tokenizer.vocab_size() > model.vocab_size)
    throw InputError(fmt::format("data.tokenizer has {} ids, but the model's vocabulary has {}", tokenizer.vocab_size(),
                                 model.vocab_size));
}

/// As prompt_ids(), what is longer than the limit cut off before its end of text.
std::vector<int32_t> source_ids(const models::LanguageModel& model, const tokenizer::Tokenizer& tokenizer,
                                const std::string& text, int64_t limit) {
  std::vector<int32_t> ids = prompt_ids(model, tokenizer, text);
  if (const auto most = static_cast<ptrdiff_t>(limit); std::ssize(ids) > most)
    ids.erase(ids.begin() + most - 1, ids.end() - 1);
  return ids;
}

metrics::Rouge mean_scores(const std::vector<Answered>& all) {
  metrics::Rouge mean;
  const double part = 1 / static_cast<double>(all.size());
  for (const Answered& each : all) {
    const metrics::Rouge scores = metrics::rouge(each.answer, each.reference, metrics::Words::Stems);
    mean.rouge1 += scores.rouge1 * part, mean.rouge2 += scores.rouge2 * part;
    mean.rougeL += scores.rougeL * part, mean.rougeLsum += scores.rougeLsum * part;
  }
  return mean;
}

}  // namespace

bool is_of_pairs(const config::Data& data) {
  return !data.source_field.empty();
}

std::unique_ptr<data::Loader> pair_loader_of(const config::Config& config, const tokenizer::Tokenizer& tokenizer,
                                             const models::ModelConfig& model, const data::Place& place,
                                             data::Repeat repeat) {
  check_fit(config, tokenizer, model);
  const data::PairArray pairs = data::tokenise_pairs(options_of(config.data), tokenizer);
  const data::PairLoaderOptions options{.place = place,
                                        .batch_size = config.training.batch_size,
                                        .accumulation_steps = config.training.accumulation_steps,
                                        .seed = config.data.seed,
                                        .shuffle = config.data.shuffle,
                                        .padding = padding_of(config.data.padding),
                                        .max_source_length = config.data.max_source_length,
                                        .max_target_length = config.data.max_target_length,
                                        .pad_to_multiple_of = config.data.pad_to_multiple_of,
                                        .pad_token = model.t5.pad_token,
                                        .repeat = repeat};
  return by_workers(config.data, [&] { return data::pair_loader(pairs, options); });
}

std::vector<int32_t> prompt_ids(const models::LanguageModel& model, const tokenizer::Tokenizer& tokenizer,
                                const std::string& text) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  if (const auto end = tokenizer.eos_id(); end && !model.continues_prompt()) ids.push_back(*end);
  return ids;
}

std::vector<data::PairText> sample_pairs(const config::Config& config) {
  if (config.sample.path.empty()) return {};
  data::PairOptions options = options_of(config.data);
  options.path = config.sample.path, options.max_samples = config.sample.count;
  try {
    return data::read_pairs(options);
  } catch (const InputError& error) {
    throw InputError(fmt::format("sample.path: {}", error.what()));
  }
}

AnswersReport answer_pairs(models::LanguageModel& model, const tokenizer::Tokenizer& tokenizer,
                           const config::Data& options, const std::vector<data::PairText>& pairs) {
  const Sampling sampling{.max_new_tokens = options.max_target_length,
                          .temperature = 0,
                          .vocab_size = tokenizer.vocab_size(),
                          .stop = tokenizer.eos_id()};
  AnswersReport report;
  for (size_t begin = 0; begin < pairs.size(); begin += kSideBySide) {
    const size_t end = std::min(begin + kSideBySide, pairs.size());
    std::vector<std::vector<int32_t>> sources;
    for (size_t i = begin; i < end; ++i)
      sources.push_back(source_ids(model, tokenizer, options.prefix + pairs[i].source, options.max_source_length));
    const auto made = generate_all(model, sources, sampling);
    for (size_t i = begin; i < end; ++i)
      report.all.push_back({pairs[i].source, pairs[i].target, tokenizer.decode(made[i - begin])});
  }
  report.mean = mean_scores(report.all);
  return report;
}

std::string format_answers(const AnswersReport& report, size_t shown) {
  const metrics::Rouge& mean = report.mean;
  std::string text = fmt::format("ROUGE-1: {:.4f}  ROUGE-2: {:.4f}  ROUGE-L: {:.4f}  ROUGE-Lsum: {:.4f}  over {} pairs",
                                 mean.rouge1, mean.rouge2, mean.rougeL, mean.rougeLsum, report.all.size());
  for (size_t i = 0; i < std::min(shown, report.all.size()); ++i)
    text += fmt::format("\nsource:    {}\nreference: {}\nanswer:    {}",
                        tokenizer::printable(report.all[i].source.substr(0, 200)),
                        tokenizer::printable(report.all[i].reference), tokenizer::printable(report.all[i].answer));
  return text;
}

}  // namespace trainyard::train
