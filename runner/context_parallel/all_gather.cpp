#include <array>

#include "context_parallel/recorded.h"
#include "ops/add.h"
#include "ops/attention.h"

namespace trainyard::context_parallel {
namespace {

/// Keys and values of whole rows exist in one layer at a time, in forward and again in backward.
class AllGather final : public Recorded {
 public:
  using Recorded::Recorded;

 protected:
  std::vector<Tensor> forward(const Task& task, const Inputs& own) override {
    const Whole whole = gathered(task, own);
    Tensor out = empty_like(own.q);
    Tensor lse = Tensor::empty({parts().pieces() * task.rows, task.heads.query, task.tokens}, DType::Float32,
                               own.q.device());
    for (int piece = 0; piece < parts().pieces(); ++piece) {
      Tensor part = task.piece(out, piece), sums = task.sums_of_piece(lse, piece);
      ops::attention(task.piece(own.q, piece), whole.keys, whole.values, task.shape(task.whole_tokens),
                     options_of(task, piece), part, sums);
    }
    return {out, lse};
  }

  Gradients backward(const Task& task, const Tensor& dout, const Inputs& own,
                     const std::vector<Tensor>& outputs) override {
    const Whole whole = gathered(task, own);
    Gradients gradients{empty_like(own.q), empty_like(own.k), empty_like(own.v)};
    Tensor dkeys, dvalues;  // of the whole rows, from this rank's queries
    for (int piece = 0; piece < parts().pieces(); ++piece) {
      const ops::AttentionGradients of_piece{
          task.piece(gradients.dq, piece), empty_like(whole.keys), empty_like(whole.values), {}};
      const Tensor q = task.piece(own.q, piece), out = task.piece(outputs[0], piece),
                   lse = task.sums_of_piece(outputs[1], piece);
      ops::attention_backward(task.piece(dout, piece), {q, whole.keys, whole.values, out, lse},
                              task.shape(task.whole_tokens), options_of(task, piece), of_piece);
      if (piece == 0) {
        dkeys = of_piece.dk, dvalues = of_piece.dv;
      } else {
        ops::add_to(dkeys, of_piece.dk);
        ops::add_to(dvalues, of_piece.dv);
      }
    }
    const std::array from{by_ranks(task, dkeys), by_ranks(task, dvalues)};
    std::array to{gradients.dk, gradients.dv};
    context().reduce_scatter_coalesced(from, to, task.label("gradients of keys and values")).wait();
    return gradients;
  }

 private:
  struct Whole {
    Tensor keys, values;  ///< [rows · whole tokens, kv_heads · dim]
  };

  Whole gathered(const Task& task, const Inputs& own) {
    const auto of_all = [this](const Tensor& tensor) {
      return Tensor::empty({context().world() * tensor.size(0), tensor.size(1)}, tensor.dtype(), tensor.device());
    };
    const std::array from{own.k, own.v};
    std::array to{of_all(own.k), of_all(own.v)};
    context().all_gather_coalesced(from, to, task.label("keys and values")).wait();
    return {in_order(task, to[0]), in_order(task, to[1])};
  }

  ops::AttentionOptions options_of(const Task& task, int piece) const {
    ops::AttentionOptions options = task.options();
    options.q_offset = parts().place_of(rank(), piece) * task.tokens;
    if (task.own_starts.defined()) options.document_starts = task.piece(task.own_starts, piece);
    return options;
  }
};

}  // namespace

std::unique_ptr<nn::SplitAttention> make_all_gather(comm::Communicator& context, data::RowParts parts) {
  return std::make_unique<AllGather>(context, parts);
}

}  // namespace trainyard::context_parallel
