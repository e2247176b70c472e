#include "context_parallel/attention.h"

#include <stdexcept>
#include <utility>

#include "autograd/recompute.h"
#include "context_parallel/recorded.h"
#include "tensor/dry_run.h"

namespace trainyard::context_parallel {

std::unique_ptr<nn::SplitAttention> make_attention(comm::Communicator& context, Method method, data::RowParts parts) {
  switch (method) {
    case Method::Ring:
      return make_ring(context, parts);
    case Method::AllGather:
      return make_all_gather(context, parts);
    case Method::Ulysses:
      return make_ulysses(context, parts);
  }
  throw std::logic_error("make_attention: no such method");
}

nn::Variable Recorded::attend(const nn::Variable& q_input, const nn::Variable& k_input, const nn::Variable& v_input,
                              const nn::Heads& heads, int layer, const nn::DecoderContext& context) {
  const bool is_one_dtype = q_input.value().dtype() == k_input.value().dtype() &&
                            q_input.value().dtype() == v_input.value().dtype();
  const auto promoted = [is_one_dtype](const nn::Variable& x) {
    return is_one_dtype ? x : autograd::cast(x, DType::Float32);
  };
  const nn::Variable q = promoted(q_input), k = promoted(k_input), v = promoted(v_input);
  const Task task{.heads = heads,
                  .layer = layer,
                  .rows = context.rows / parts_.pieces(),
                  .tokens = context.tokens,
                  .whole_tokens = context.whole_tokens,
                  .own_starts = context.document_starts,
                  .whole_starts = context.whole_document_starts};
  const Inputs own{q.value(), k.value(), v.value()};
  std::vector<Tensor> outputs = autograd::kept([&] { return forward(task, own); });
  const nn::Variable y(outputs.front(), q.tape());
  if (q.tape()) {
    q.tape()->record(y, [this, task, own = needs_inputs() ? own : Inputs{}, outputs = std::move(outputs),
                         dq = q.gradient(), dk = k.gradient(), dv = v.gradient()](const Tensor& dout) {
      Gradients gradients = backward(task, dout, own, outputs);
      dq->add(std::move(gradients.dq));
      dk->add(std::move(gradients.dk));
      dv->add(std::move(gradients.dv));
    });
  }
  return y;
}

int Recorded::rank() const {
  return dry_run() ? context_.world() - 1 : context_.rank();
}

Tensor Recorded::reordered(const Task& task, const Tensor& from, Order order) const {
  if (task.rows == 1 && parts_.pieces() == 1) return from;  // both orders are one
  Tensor to = empty_like(from);
  for (int rank = 0; rank < parts_.ranks(); ++rank)
    for (int piece = 0; piece < parts_.pieces(); ++piece)
      for (int64_t row = 0; row < task.rows; ++row) {
        int64_t source = ((rank * parts_.pieces() + piece) * task.rows + row) * task.tokens;
        int64_t target = row * task.whole_tokens + parts_.place_of(rank, piece) * task.tokens;
        if (order == Order::Ranks) std::swap(source, target);
        Tensor place = to.rows(target, task.tokens);
        copy(from.rows(source, task.tokens), place);
      }
  return to;
}

}  // namespace trainyard::context_parallel
