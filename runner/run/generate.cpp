#include "run/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "ops/cast.h"

namespace trainyard::train {
namespace {

/// The result is on the host.
Tensor as_float(const Tensor& logits) {
  Tensor floats = Tensor::empty(logits.shape(), DType::Float32, logits.device());
  ops::cast(logits, floats);
  return on_device(floats, {});
}

/// Probabilities of softmax(logits / temperature), in double.
std::vector<double> probabilities(std::span<const float> logits, double temperature) {
  const double largest = *std::ranges::max_element(logits);
  std::vector<double> p(logits.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i)
    sum += p[i] = std::exp((static_cast<double>(logits[i]) - largest) / temperature);
  for (double& value : p) value /= sum;
  return p;
}

/// The indices of the likeliest tokens, likeliest first, whose probabilities together reach `top_p`.
std::vector<size_t> nucleus(const std::vector<double>& p, double top_p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return p[a] > p[b]; });
  double reached = 0;
  size_t count = 0;
  while (count < order.size() && (count == 0 || reached < top_p)) reached += p[order[count++]];
  order.resize(count);
  return order;
}

void check_prompt(const models::LanguageModel& model, std::span<const int32_t> prompt, int64_t max_new_tokens) {
  const models::ModelConfig& config = model.config();
  if (prompt.empty()) throw InputError("the prompt is empty; give at least one token of text");
  for (const int32_t id : prompt)
    if (id < 0 || id >= config.vocab_size)
      throw InputError(
          fmt::format("the prompt has token id {}, but the model's vocabulary ends at {}: is this its tokenizer?", id,
                      config.vocab_size - 1));
  if (!model.continues_prompt()) {
    if (static_cast<int64_t>(prompt.size()) > config.max_positions)
      throw InputError(
          fmt::format("the source has {} tokens, but the model takes {}", prompt.size(), config.max_positions));
    return;
  }
  const int64_t wanted = static_cast<int64_t>(prompt.size()) + max_new_tokens;
  if (wanted > config.max_positions)
    throw InputError(fmt::format("{} tokens of prompt and {} new ones are more than the model's {} positions",
                                 prompt.size(), max_new_tokens, config.max_positions));
}

/// Collective.
std::vector<int32_t> of_rank_0(comm::Communicator& world, const std::vector<int32_t>& own) {
  Tensor tokens = Tensor::from<int32_t>(own, {static_cast<int64_t>(own.size())});
  world.broadcast(tokens, 0, "drawn tokens").wait();
  const auto drawn = tokens.values<int32_t>();
  return {drawn.begin(), drawn.end()};
}

}  // namespace

int32_t draw(const Tensor& logits, double temperature, double top_p, std::mt19937_64& random) {
  const Tensor held = as_float(logits);
  const auto values = held.values<float>();
  if (temperature == 0) return static_cast<int32_t>(std::ranges::max_element(values) - values.begin());
  const std::vector<double> p = probabilities(values, temperature);
  const std::vector<size_t> choices = nucleus(p, top_p);
  double total = 0;
  for (const size_t choice : choices) total += p[choice];
  // Not std::uniform_real_distribution, whose numbers differ between libraries.
  double left = total * static_cast<double>(random() >> 11U) * 0x1.0p-53;
  for (const size_t choice : choices)
    if ((left -= p[choice]) < 0) return static_cast<int32_t>(choice);
  return static_cast<int32_t>(choices.back());
}

std::vector<int32_t> generate(models::LanguageModel& model, std::span<const int32_t> prompt, const Sampling& sampling,
                              comm::Communicator& world, const std::function<void(int32_t)>& on_token) {
  const std::vector<std::vector<int32_t>> one(1, std::vector(prompt.begin(), prompt.end()));
  return generate_all(model, one, sampling, world, on_token).front();
}

std::vector<std::vector<int32_t>> generate_all(models::LanguageModel& model,
                                               const std::vector<std::vector<int32_t>>& prompts,
                                               const Sampling& sampling, comm::Communicator& world,
                                               const std::function<void(int32_t)>& on_token) {
  for (const auto& prompt : prompts) check_prompt(model, prompt, sampling.max_new_tokens);
  const auto texts = model.begin(prompts, sampling.max_new_tokens);
  const int64_t vocab = model.config().vocab_size;
  const int64_t choices = sampling.vocab_size == 0 ? vocab : std::min(vocab, sampling.vocab_size);
  std::mt19937_64 random(sampling.seed);
  std::vector<std::vector<int32_t>> made(prompts.size());
  std::vector<bool> has_ended(prompts.size());
  std::vector<int32_t> next = texts->opening();
  for (int64_t n = 0; n < sampling.max_new_tokens && !std::ranges::all_of(has_ended, std::identity()); ++n) {
    const Tensor logits = texts->next(next);
    next.resize(prompts.size());
    for (size_t text = 0; text < prompts.size() && world.rank() == 0; ++text) {
      if (has_ended[text]) continue;  // goes on with its last token, which nobody sees
      const Tensor own = logits.rows(static_cast<int64_t>(text), 1).reshape({vocab}).rows(0, choices);
      next[text] = draw(own, sampling.temperature, sampling.top_p, random);
    }
    next = of_rank_0(world, next);
    for (size_t text = 0; text < prompts.size(); ++text) {
      if (has_ended[text]) continue;
      has_ended[text] = std::ranges::find(sampling.stops, next[text]) != sampling.stops.end();
      if (has_ended[text]) continue;
      made[text].push_back(next[text]);
      if (on_token) on_token(next[text]);
    }
  }
  return made;
}

}  // namespace trainyard::train
