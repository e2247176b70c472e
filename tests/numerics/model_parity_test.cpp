// The models by themselves, unsharded, against PyTorch: tolerances of data/parity/README.md.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "parity_case.h"
#include "support/support.h"

namespace trainyard::test {
namespace {

std::unique_ptr<models::Model> model_of(const ParityCase& parity) {
  auto model = models::build(parity.config);
  nn::place_whole(*model);
  for (nn::Parameter* const parameter : model->parameters()) {
    Tensor value = parameter->value();
    copy(parity.weights.read(parameter->name()), value);
  }
  return model;
}

}  // namespace

TEST_CASE("models: logits, loss and every gradient agree with PyTorch", "[parity]") {
  const auto name = GENERATE(from_range(decoder_cases()));
  if (case_folder(name).empty()) return skip("no reference data");
  CAPTURE(name);
  const ParityCase parity = load_case(name);
  const auto model = model_of(parity);

  const Tensor logits = models::language_model(*model).logits(parity.batch()),
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
  const ops::LossSums sums = model->loss(parity.batch(), {1.0F / static_cast<float>(valid), &tape});
  tape.backward();
  CHECK(sums.valid == valid);
  CHECK(sums.loss_sum / static_cast<double>(valid) == Approx(parity.expected.at("loss").get<double>()).epsilon(1e-5));
  for (nn::Parameter* const parameter : model->parameters()) {
    CAPTURE(parameter->name());
    CHECK(relative_l2(std::as_const(parameter->gradient()).values<float>(),
                      std::as_const(parity.golden).read("grad." + parameter->name()).values<float>()) < 1e-4);
  }
}

TEST_CASE("models: recomputed blocks give the same bits", "[parity]") {
  if (test_data().empty()) return skip("no reference data");
  const ParityCase parity = load_case("qwen3-tiny");
  const auto plain = model_of(parity), recomputed = model_of(parity);
  for (nn::Module* const block : recomputed->blocks()) block->set_recompute(true);
  for (models::Model* const model : {plain.get(), recomputed.get()}) {
    nn::Tape tape;
    static_cast<void>(model->loss(parity.batch(), {1.0F, &tape}));
    tape.backward();
  }
  const auto expected = plain->parameters(), got = recomputed->parameters();
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(expected[i]->name());
    CHECK(std::ranges::equal(expected[i]->gradient().values<float>(), got[i]->gradient().values<float>()));
  }
}

TEST_CASE("models: a text continued through the key-value cache sees the logits of the whole text", "[parity]") {
  const auto name = GENERATE(as<std::string>(), "qwen3-tiny", "llama3-tiny", "qwen2-tiny", "mistral-tiny");
  if (case_folder(name).empty()) return skip("no reference data");
  const ParityCase parity = load_case(name);
  const auto built = model_of(parity);
  models::LanguageModel& model = models::language_model(*built);
  const data::Batch batch = parity.batch();
  const Tensor whole = model.logits({batch.input_ids.rows(0, 1), {}});
  const auto ids = batch.input_ids.values<int32_t>();
  const int64_t tokens = batch.input_ids.size(1), vocab = whole.size(2);

  auto caches = model.new_caches(tokens);
  static_cast<void>(model.next_logits({ids.begin(), ids.begin() + 7}, caches));
  for (int64_t t = 7; t < tokens; ++t) {
    const Tensor next = model.next_logits({ids[static_cast<size_t>(t)]}, caches);
    const auto expected = whole.reshape({tokens, vocab}).rows(t, 1);
    CHECK(relative_l2(next.values<float>(), std::as_const(expected).values<float>()) < 1e-5);
  }
}

}  // namespace trainyard::test
