#include "context_parallel/recorded.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/columns.h"

namespace trainyard::context_parallel {
namespace {

/// Each rank gets the whole rows of some heads, computes their attention as one rank alone would, and gives the tokens
/// back. Where ranks do not divide the KV heads, each query head has a copy of its own of its KV head, and the copies'
/// gradients are added up.
class Ulysses final : public Recorded {
 public:
  using Recorded::Recorded;

 protected:
  bool needs_inputs() const override { return false; }

  std::vector<Tensor> forward(const Task& task, const Inputs& own) override {
    const ops::AttentionShape shape = shape_of(task);
    const Tensor q = to_heads(task, own.q, "queries"), k = to_heads(task, copied(task, own.k), "keys"),
                 v = to_heads(task, copied(task, own.v), "values");
    Tensor out = empty_like(q);
    Tensor lse = Tensor::empty({shape.batch, shape.heads, shape.q_tokens}, DType::Float32, q.device());
    ops::attention(q, k, v, shape, options_of(task), out, lse);
    return {to_tokens(task, out, own.q.size(1), "attention"), q, k, v, out, lse};
  }

  Gradients backward(const Task& task, const Tensor& dout, const Inputs&,
                     const std::vector<Tensor>& outputs) override {
    const Tensor &q = outputs[1], &k = outputs[2], &v = outputs[3];
    const ops::AttentionGradients of_heads{empty_like(q), empty_like(k), empty_like(v), {}};
    ops::attention_backward(to_heads(task, dout, "gradients of attention"), {q, k, v, outputs[4], outputs[5]},
                            shape_of(task), options_of(task), of_heads);
    const int64_t kv_width = kv_heads(task) * task.heads.dim;
    return {to_tokens(task, of_heads.dq, dout.size(1), "gradients of queries"),
            added_up(task, to_tokens(task, of_heads.dk, kv_width, "gradients of keys")),
            added_up(task, to_tokens(task, of_heads.dv, kv_width, "gradients of values"))};
  }

 private:
  /// KV heads that are exchanged, of all ranks.
  int64_t kv_heads(const Task& task) const {
    return task.heads.key_value % context().world() == 0 ? task.heads.key_value : task.heads.query;
  }
  ops::AttentionShape shape_of(const Task& task) const {
    const int64_t ranks = context().world();
    return {task.rows, task.whole_tokens, task.whole_tokens, task.heads.query / ranks, kv_heads(task) / ranks,
            task.heads.dim};
  }
  static ops::AttentionOptions options_of(const Task& task) {
    ops::AttentionOptions options = task.options();
    options.document_starts = task.whole_starts;
    return options;
  }

  /// This rank's tokens of all heads become all tokens of this rank's heads.
  Tensor to_heads(const Task& task, const Tensor& own, const char* what) {
    const int64_t count = own.size(0), width = own.size(1) / context().world();
    Tensor sent = Tensor::empty({context().world() * count, width}, own.dtype(), own.device()), got = empty_like(sent);
    for (int peer = 0; peer < context().world(); ++peer) {
      Tensor place = sent.rows(peer * count, count);
      ops::copy_columns(own, peer * width, width, place, 0);
    }
    context().all_to_all(sent, got, task.label(what)).wait();
    return in_order(task, got);
  }

  /// And back, where all heads are `columns` wide.
  Tensor to_tokens(const Task& task, const Tensor& of_heads, int64_t columns, const char* what) {
    const Tensor sent = by_ranks(task, of_heads);
    Tensor got = empty_like(sent);
    context().all_to_all(sent, got, task.label(what)).wait();
    const int64_t count = sent.size(0) / context().world(), width = sent.size(1);
    Tensor own = Tensor::empty({count, columns}, sent.dtype(), sent.device());
    for (int peer = 0; peer < context().world(); ++peer)
      ops::copy_columns(got.rows(peer * count, count), 0, width, own, peer * width);
    return own;
  }

  /// KV heads as they are exchanged.
  Tensor copied(const Task& task, const Tensor& own) const {
    if (kv_heads(task) == task.heads.key_value) return own;
    Tensor copies = Tensor::empty({own.size(0), task.heads.query * task.heads.dim}, own.dtype(), own.device());
    for (int64_t head = 0; head < task.heads.query; ++head)
      ops::copy_columns(own, of_query(task, head) * task.heads.dim, task.heads.dim, copies, head * task.heads.dim);
    return copies;
  }

  /// The gradients of copied().
  Tensor added_up(const Task& task, const Tensor& copies) const {
    if (kv_heads(task) == task.heads.key_value) return copies;
    const int64_t dim = task.heads.dim, each = task.heads.query / task.heads.key_value;
    Tensor sum = Tensor::empty({copies.size(0), task.heads.key_value * dim}, copies.dtype(), copies.device());
    Tensor addend = empty_like(sum);
    for (int64_t copy = 0; copy < each; ++copy) {
      Tensor& to = copy == 0 ? sum : addend;
      for (int64_t head = 0; head < task.heads.key_value; ++head)
        ops::copy_columns(copies, (head * each + copy) * dim, dim, to, head * dim);
      if (copy > 0) ops::add_to(sum, addend);
    }
    return sum;
  }
  static int64_t of_query(const Task& task, int64_t head) {
    return head / (task.heads.query / task.heads.key_value);
  }
};

}  // namespace

std::unique_ptr<nn::SplitAttention> make_ulysses(comm::Communicator& context, data::RowParts parts) {
  return std::make_unique<Ulysses>(context, parts);
}

}  // namespace trainyard::context_parallel
