#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "context_parallel/recorded.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/attention_parts.h"
#include "ops/cast.h"
#include "ops/sum.h"

namespace trainyard::context_parallel {
namespace {

/// Keys and values of one rank at a time, which go once around the ring. In backward their gradients follow them, so
/// that each rank adds its own, and come home in the end. Sums are float32.
class Ring final : public Recorded {
 public:
  using Recorded::Recorded;

 protected:
  std::vector<Tensor> forward(const Task& task, const Inputs& own) override {
    Tensor out = Tensor::zeros(own.q.shape(), DType::Float32, own.q.device());
    Tensor lse = Tensor::empty({parts().pieces() * task.rows, task.heads.query, task.tokens}, DType::Float32,
                               own.q.device());
    ops::fill(lse, -std::numeric_limits<float>::infinity());
    Tensor part = empty_like(task.piece(own.q, 0)), part_lse = empty_like(task.sums_of_piece(lse, 0));
    Passing passing(context(), own, task.label("keys and values"));
    for (int step = 0; step < context().world(); ++step) {
      passing.begin_next(step);
      for_each_pair(task, step, [&](int query, int key, const ops::AttentionOptions& options) {
        const ops::AttentionShape shape = task.shape(task.tokens);
        ops::attention(task.piece(own.q, query), task.piece(passing.keys(), key), task.piece(passing.values(), key),
                       shape, options, part, part_lse);
        Tensor to = task.piece(out, query), to_lse = task.sums_of_piece(lse, query);
        ops::merge_attention(part, part_lse, shape, to, to_lse);
      });
      passing.end_next();
    }
    if (own.q.dtype() == DType::Float32) return {out, lse};
    Tensor rounded = empty_like(own.q);
    ops::cast(out, rounded);
    return {rounded, lse};
  }

  Gradients backward(const Task& task, const Tensor& dout, const Inputs& own,
                     const std::vector<Tensor>& outputs) override {
    const Tensor &out = outputs[0], &lse = outputs[1];
    Tensor dq = Tensor::zeros(own.q.shape(), DType::Float32, own.q.device());
    Tensor dq_part = empty_like(task.piece(own.q, 0)), dk_part = empty_like(task.piece(own.k, 0)),
           dv_part = empty_like(task.piece(own.v, 0));
    const int64_t count = own.k.size(0);
    Passing passing(context(), own, task.label("keys and values"));
    Tensor passed;      // the gradients that others have added up for what is here
    Tensor leaving;     // those that go on to the next rank
    comm::Work coming;  // of `passed`
    for (int step = 0; step < context().world(); ++step) {
      passing.begin_next(step);
      Tensor added = Tensor::zeros({2 * count, own.k.size(1)}, DType::Float32, own.k.device());
      const Tensor dk = added.rows(0, count), dv = added.rows(count, count);
      for_each_pair(task, step, [&](int query, int key, const ops::AttentionOptions& options) {
        const Tensor q = task.piece(own.q, query), k = task.piece(passing.keys(), key),
                     v = task.piece(passing.values(), key), y = task.piece(out, query),
                     sums = task.sums_of_piece(lse, query);
        ops::attention_backward(task.piece(dout, query), {q, k, v, y, sums}, task.shape(task.tokens), options,
                                {dq_part, dk_part, dv_part, {}});
        Tensor to_q = task.piece(dq, query), to_k = task.piece(dk, key), to_v = task.piece(dv, key);
        ops::add_to(to_q, dq_part);
        ops::add_to(to_k, dk_part);
        ops::add_to(to_v, dv_part);
      });
      if (step > 0) {
        coming.wait();
        ops::add_to(added, passed);
      }
      leaving = std::move(added);
      passed = empty_like(leaving);
      coming = context().shift(leaving, passed, task.label("gradients of keys and values"));
      passing.end_next();
    }
    coming.wait();
    return {in_dtype_of(own.q, dq), in_dtype_of(own.k, passed.rows(0, count)),
            in_dtype_of(own.v, passed.rows(count, count))};
  }

 private:
  /// Keys and values on their way from rank to rank, in one tensor: the first half are keys.
  class Passing {
   public:
    Passing(comm::Communicator& context, const Inputs& own, std::string label)
        : context_(context), label_(std::move(label)), count_(own.k.size(0)) {
      here_ = Tensor::empty({2 * count_, own.k.size(1)}, own.k.dtype(), own.k.device());
      Tensor keys = here_.rows(0, count_), values = here_.rows(count_, count_);
      copy(own.k, keys);
      copy(own.v, values);
    }
    [[nodiscard]] Tensor keys() const { return here_.rows(0, count_); }
    [[nodiscard]] Tensor values() const { return here_.rows(count_, count_); }
    /// Begins to fetch those of the step after `step`; there is none after the last.
    void begin_next(int step) {
      if (step + 1 == context_.world()) return;
      next_ = empty_like(here_);
      coming_ = context_.shift(here_, next_, label_);
    }
    void end_next() {
      if (!next_.defined()) return;
      coming_.wait();
      here_ = std::exchange(next_, Tensor());
    }

   private:
    comm::Communicator& context_;
    std::string label_;
    int64_t count_;
    Tensor here_, next_;
    comm::Work coming_;
  };

  /// Calls body(piece of the queries, piece of the keys, how they see them) for what is not hidden as a whole. After
  /// `step` exchanges the keys of the rank so many before are here.
  template <typename Body>
  void for_each_pair(const Task& task, int step, const Body& body) const {
    const int source = (rank() - step + parts().ranks()) % parts().ranks();
    for (int query = 0; query < parts().pieces(); ++query)
      for (int key = 0; key < parts().pieces(); ++key)
        if (const auto options = how_seen(task, query, parts().place_of(rank(), query), parts().place_of(source, key)))
          body(query, key, *options);
  }

  /// How queries of a piece see the keys of another; none: they see none of them.
  static std::optional<ops::AttentionOptions> how_seen(const Task& task, int piece, int query_place, int key_place) {
    if (key_place > query_place) return std::nullopt;
    ops::AttentionOptions options = task.options();
    options.q_offset = (query_place - key_place) * task.tokens;
    if (task.own_starts.defined()) {
      options.document_starts = task.piece(task.own_starts, piece);
      options.document_offset = key_place * task.tokens;
    }
    const bool is_earlier = key_place < query_place;
    if (options.window > 0 && options.q_offset - (task.tokens - 1) >= options.window) return std::nullopt;
    // Earlier keys are all visible where neither a window nor a document ends, without a mask.
    if (is_earlier && options.window == 0 && !options.document_starts.defined()) {
      options.causal = false;
      options.q_offset = 0;
    }
    return options;
  }

  static Tensor in_dtype_of(const Tensor& like, const Tensor& sum) {
    Tensor made = empty_like(like);
    ops::cast(sum, made);
    return made;
  }
};

}  // namespace

std::unique_ptr<nn::SplitAttention> make_ring(comm::Communicator& context, data::RowParts parts) {
  return std::make_unique<Ring>(context, parts);
}

}  // namespace trainyard::context_parallel
