// The models by themselves, unsharded, against PyTorch: tolerances of data/parity/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "ops/norm.h"
#include "parity_case.h"
#include "support/devices.h"
#include "support/support.h"

namespace trainyard::test {
namespace {

std::unique_ptr<models::Model> model_of(const ParityCase& parity, Device device) {
  auto model = models::build(parity.config);
  nn::place_whole(*model, DType::Float32, device);
  for (nn::Parameter* const parameter : model->parameters()) {
    Tensor value = parameter->value();
    copy(parity.weights.read(parameter->name()), value);
  }
  return model;
}

}  // namespace

TEST_CASE("models: logits, loss and every gradient agree with PyTorch", "[parity]") {
  const auto name = GENERATE(from_range(all_cases()));
  if (case_folder(name).empty()) return skip("no reference data");
  CAPTURE(name);
  const ParityCase parity = load_case(name);
  const Device device = GENERATE(from_range(devices()));
  CAPTURE(to_string(device));
  const auto model = model_of(parity, device);

  const Tensor logits = on_device(models::language_model(*model).logits(parity.batch()), {}),
               expected_logits = parity.golden.read("logits");
  double worst = 0;
  for (int64_t i = 0; i < logits.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    worst = std::max(worst, std::abs(static_cast<double>(logits.values<float>()[at]) -
                                     static_cast<double>(expected_logits.values<float>()[at])));
  }
  CHECK(worst < 1e-4);

  nn::Tape tape;
  const auto valid = parity.expected.at("valid_tokens").get<int64_t>();
  const ops::Loss loss = model->loss(parity.batch(), {1.0F / static_cast<float>(valid), &tape});
  tape.backward();
  const ops::LossSums sums = loss.read();
  CHECK(sums.valid == valid);
  CHECK(sums.loss_sum / static_cast<double>(valid) == Approx(parity.expected.at("loss").get<double>()).epsilon(1e-5));
  for (nn::Parameter* const parameter : model->parameters()) {
    CAPTURE(parameter->name());
    const Tensor gradient = on_device(parameter->gradient(), {});
    CHECK(relative_l2(gradient.values<float>(),
                      std::as_const(parity.golden).read("grad." + parameter->name()).values<float>()) < 1e-4);
  }
}

TEST_CASE("models: recomputed blocks give the same bits, whatever they keep and wherever", "[parity][bit_equal]") {
  using Keep = autograd::Retention::Keep;
  const autograd::Retention retention{GENERATE(Keep::Inputs, Keep::Products), GENERATE(false, true)};
  const auto name = GENERATE(as<std::string>(), "qwen3-tiny", "t5-tiny");
  if (case_folder(name).empty()) return skip("no reference data");
  ParityCase parity = load_case(name);
  parity.config.dropout = 0.2;  // masks too must come out again
  const Device device = GENERATE(from_range(devices()));
  const auto plain = model_of(parity, device), recomputed = model_of(parity, device);
  for (nn::Module* const block : recomputed->blocks()) block->set_recompute(true, retention);
  for (models::Model* const model : {plain.get(), recomputed.get()}) {
    nn::Tape tape;
    static_cast<void>(model->loss(parity.batch(), {1.0F, &tape, 5}));
    tape.backward();
  }
  const auto expected = plain->parameters(), got = recomputed->parameters();
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(expected[i]->name());
    const Tensor a = on_device(expected[i]->gradient(), {}), b = on_device(got[i]->gradient(), {});
    CHECK(std::ranges::equal(a.values<float>(), b.values<float>()));
  }
}

TEST_CASE("models: a text continued through the key-value cache sees the logits of the whole text", "[parity]") {
  const auto name = GENERATE(as<std::string>(), "qwen3-tiny", "llama3-tiny", "qwen2-tiny", "mistral-tiny");
  if (case_folder(name).empty()) return skip("no reference data");
  const ParityCase parity = load_case(name);
  const auto built = model_of(parity, GENERATE(from_range(devices())));
  models::LanguageModel& model = models::language_model(*built);
  const data::Batch batch = parity.batch();
  const Tensor whole = on_device(model.logits({batch.input_ids.rows(0, 1), {}}), {});
  const auto ids = batch.input_ids.values<int32_t>();
  const int64_t tokens = batch.input_ids.size(1), vocab = whole.size(2);

  const auto text = model.begin({{ids.begin(), ids.begin() + 7}}, tokens - 7);
  static_cast<void>(text->next(text->opening()));
  for (int64_t t = 7; t < tokens; ++t) {
    const Tensor next = on_device(text->next({ids[static_cast<size_t>(t)]}), {});
    const auto expected = whole.reshape({tokens, vocab}).rows(t, 1);
    CHECK(relative_l2(next.values<float>(), std::as_const(expected).values<float>()) < 1e-5);
  }
}

TEST_CASE("models: answers made token by token, side by side, see the logits of the whole answers", "[parity]") {
  const auto name = GENERATE(as<std::string>(), "t5-tiny", "t5-v1.1-tiny");
  if (case_folder(name).empty()) return skip("no reference data");
  const ParityCase parity = load_case(name);
  const auto built = model_of(parity, GENERATE(from_range(devices())));
  models::LanguageModel& model = models::language_model(*built);
  const data::Batch batch = parity.batch();
  const Tensor whole = on_device(model.logits(batch), {});
  const int64_t rows = batch.targets.size(0), tokens = batch.targets.size(1), vocab = whole.size(2);
  std::vector<std::vector<int32_t>> sources;
  for (int64_t row = 0; row < rows; ++row) {
    const Tensor own = batch.input_ids.rows(row, 1);
    const auto source = own.values<int32_t>().first(
        static_cast<size_t>(batch.input_lengths.values<int32_t>()[static_cast<size_t>(row)]));
    sources.emplace_back(source.begin(), source.end());
  }

  const auto texts = model.begin(sources, tokens);
  std::vector<int32_t> next = texts->opening();
  for (int64_t t = 0; t < tokens; ++t) {
    const Tensor logits = on_device(texts->next(next), {});
    for (int64_t row = 0; row < rows; ++row) {
      const Tensor seen = logits.rows(row, 1),
                   expected = whole.reshape({rows * tokens, vocab}).rows(row * tokens + t, 1);
      CHECK(relative_l2(seen.values<float>(), expected.values<float>()) < 1e-5);
      const int32_t target = batch.targets.values<int32_t>()[static_cast<size_t>(row * tokens + t)];
      next[static_cast<size_t>(row)] = target == data::kIgnored ? 0 : target;
    }
  }
}

TEST_CASE("t5: what is frozen gets no gradient, and the rest the same as without", "[parity]") {
  if (case_folder("t5-tiny").empty()) return skip("no reference data");
  const ParityCase parity = load_case("t5-tiny");
  const Device device = GENERATE(from_range(devices()));
  const auto whole = model_of(parity, device), part = model_of(parity, device);
  const auto is_frozen = [](const std::string& name) {
    return name.starts_with("shared") || name.find("relative_attention_bias") != std::string::npos;
  };
  for (nn::Parameter* const parameter : part->parameters())
    if (is_frozen(parameter->name())) parameter->freeze();
  for (models::Model* const model : {whole.get(), part.get()}) {
    nn::Tape tape;
    static_cast<void>(model->loss(parity.batch(), {1.0F, &tape}));
    tape.backward();
  }
  const auto expected = whole->parameters(), got = part->parameters();
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(expected[i]->name());
    const Tensor wanted = on_device(expected[i]->gradient(), {}), gradient = on_device(got[i]->gradient(), {});
    if (is_frozen(expected[i]->name()))
      CHECK(std::ranges::all_of(gradient.values<float>(), [](float value) { return value == 0; }));
    else
      CHECK(std::ranges::equal(wanted.values<float>(), gradient.values<float>()));
  }
}

TEST_CASE("t5: the row of its pad token gets a gradient, the one that PyTorch gives it", "[parity]") {
  const ParityCase parity = load_case("t5-v1.1-tiny");  // whose pad token begins what the decoder reads
  REQUIRE(parity.config.t5.pad_token == 0);
  const auto model = model_of(parity, GENERATE(from_range(devices())));
  nn::Tape tape;
  const auto valid = parity.expected.at("valid_tokens").get<float>();
  static_cast<void>(model->loss(parity.batch(), {1.0F / valid, &tape}));
  tape.backward();
  const Tensor expected = parity.golden.read("grad.shared.weight").rows(0, 1),
               gradient = on_device(model->parameters().front()->gradient(), {}).rows(0, 1);
  REQUIRE(model->parameters().front()->name() == "shared.weight");
  CHECK(std::ranges::any_of(expected.values<float>(), [](float value) { return value != 0; }));
  CHECK(relative_l2(gradient.values<float>(), expected.values<float>()) < 1e-4);
}

TEST_CASE("t5: a batch without rows has no loss and goes back through the whole model", "[parity]") {
  if (case_folder("t5-tiny").empty()) return skip("no reference data");
  const ParityCase parity = load_case("t5-tiny");
  const auto model = model_of(parity, GENERATE(from_range(devices())));
  const data::Batch all = parity.batch();
  data::Batch none{all.input_ids.rows(0, 0), all.targets.rows(0, 0)};
  none.input_lengths = all.input_lengths.rows(0, 0);
  nn::Tape tape;
  CHECK(model->loss(none, {1.0F, &tape, 3}).read().loss_sum == 0);
  tape.backward();
  for (nn::Parameter* const parameter : model->parameters())
    CHECK(on_device(ops::sums_of_squares({&parameter->gradient(), 1}).total, {}).values<double>()[0] == 0);
}

TEST_CASE("t5: what is dropped follows from the row, not from the batch it came in", "[parity]") {
  if (case_folder("t5-tiny").empty()) return skip("no reference data");
  ParityCase parity = load_case("t5-tiny");
  parity.config.dropout = 0.1;
  const auto model = model_of(parity, GENERATE(from_range(devices())));
  const data::Batch batch = parity.batch();
  const auto loss = [&](const data::Batch& rows, std::optional<uint64_t> seed) {
    return model->loss(rows, {.dropout_seed = seed}).read().loss_sum;
  };
  double apart = 0;
  for (int64_t row = 0; row < 2; ++row)
    apart += loss(
        {batch.input_ids.rows(row, 1), batch.targets.rows(row, 1), {}, 0, batch.input_lengths.rows(row, 1), {}, {row}},
        7);
  CHECK(apart == Approx(loss(batch, 7)).epsilon(1e-6));
  CHECK(loss(batch, 7) == loss(batch, 7));
  CHECK(loss(batch, 7) != loss(batch, 8));
  CHECK(loss(batch, 7) != Approx(loss(batch, std::nullopt)).epsilon(1e-4));
}

}  // namespace trainyard::test
