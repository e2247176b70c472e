#include "run/answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "run/generate.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::train {
namespace {

constexpr size_t kSideBySide = 32;  ///< answers made at once: what is gathered for a token serves all of them

/// What prompt_ids() gives, cut off before its end of text where it is longer than the limit.
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

std::vector<int32_t> prompt_ids(const models::LanguageModel& model, const tokenizer::Tokenizer& tokenizer,
                                const std::string& text) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  if (const auto end = tokenizer.eos_id(); end && !model.continues_prompt()) ids.push_back(*end);
  return ids;
}

AnswersReport answer_pairs(models::LanguageModel& model, const tokenizer::Tokenizer& tokenizer,
                           const Answering& answering, const std::vector<data::PairText>& pairs,
                           comm::Communicator& world) {
  const config::Data& options = answering.options;
  const Sampling sampling{.max_new_tokens = options.max_target_length,
                          .temperature = 0,
                          .vocab_size = tokenizer.vocab_size(),
                          .stops = answering.stops};
  AnswersReport report;
  for (size_t begin = 0; begin < pairs.size(); begin += kSideBySide) {
    const size_t end = std::min(begin + kSideBySide, pairs.size());
    std::vector<std::vector<int32_t>> sources;
    for (size_t i = begin; i < end; ++i)
      sources.push_back(source_ids(model, tokenizer, options.prefix + pairs[i].source, options.max_source_length));
    const auto made = generate_all(model, sources, sampling, world);
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
