#include <utility>

#include "ops/vocabulary_parts.h"
#include "tensor/chunk.h"
#include "tensor_parallel/functions.h"
#include "tensor_parallel/parallelize.h"

namespace trainyard::tensor_parallel {
namespace {

using autograd::Parameter;

/// The rows of the head's weight are split, and so are the columns of the logits.
class SplitOutputHead final : public nn::OutputHead {
 public:
  SplitOutputHead(comm::Communicator& ranks, int64_t vocab, const Options& options)
      : ranks_(ranks), vocab_(vocab), options_(options) {}

  [[nodiscard]] int piece() const override { return options_.sequence_parallel ? ranks_.rank() : 0; }

  [[nodiscard]] Variable whole(const Variable& h, int64_t count) override {
    const char* const label = "head input";
    return autograd::first_rows(
        options_.sequence_parallel ? gather_tokens(ranks_, h, label) : copy_to_ranks(ranks_, h, label), count);
  }

  [[nodiscard]] ops::Loss loss(const Variable& h, Parameter& weight, const ops::Targets& targets,
                               float gradient_scale) override {
    const Variable x = autograd::cast(whole(h, targets.values().count()), weight.value().dtype());
    if (!options_.loss_parallel)
      return autograd::cross_entropy(logits(x, weight), targets.values_on(x.value().device()), gradient_scale);
    const ops::VocabularyPart part{chunk_of(vocab_, ranks_.world(), ranks_.rank()).begin, vocab_};
    const auto gather = [this](const Tensor& own) {
      Tensor all = Tensor::empty({ranks_.world() * own.size(0), own.size(1)}, own.dtype(), own.device());
      ranks_.all_gather(own, all, "softmax sums").wait();
      return all;
    };
    if (!x.tape()) return ops::linear_cross_entropy_of_part(x.value(), weight.value(), part, targets, gather, nullptr);
    ops::LossGradients gradients{gradient_scale, empty_like(x.value()),
                                 weight.is_frozen() ? Tensor() : weight.gradient()};
    ops::Loss loss = ops::linear_cross_entropy_of_part(x.value(), weight.value(), part, targets, gather, &gradients);
    x.tape()->record([gradient = gradients.dh, dx = x.gradient()] { dx->add(gradient); });
    return loss;
  }

  [[nodiscard]] Variable logits(const Variable& h, Parameter& weight) override {
    return gather_columns(ranks_, autograd::linear(h, weight), vocab_, "logits");
  }

 private:
  comm::Communicator& ranks_;
  int64_t vocab_;
  Options options_;
};

}  // namespace

std::unique_ptr<nn::OutputHead> make_output_head(comm::Communicator& ranks, int64_t vocab, const Options& options) {
  return std::make_unique<SplitOutputHead>(ranks, vocab, options);
}

}  // namespace trainyard::tensor_parallel
