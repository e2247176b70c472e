#include "tensor_parallel/functions.h"

#include <utility>

#include "ops/columns.h"
#include "ops/scale.h"
#include "tensor/chunk.h"

namespace trainyard::tensor_parallel {
namespace {

Tensor summed(comm::Communicator& ranks, const Tensor& own, const std::string& label) {
  Tensor sum = empty_like(own);
  copy(own, sum);
  ranks.all_reduce(sum, comm::ReduceOp::Sum, label).wait();
  return sum;
}

Tensor gathered(comm::Communicator& ranks, const Tensor& piece, const std::string& label) {
  Tensor all = Tensor::empty({ranks.world() * piece.size(0), piece.size(1)}, piece.dtype(), piece.device());
  ranks.all_gather(piece, all, label).wait();
  return all;
}

/// `tokens` with zeros behind them up to a multiple of the ranks.
Tensor padded(comm::Communicator& ranks, const Tensor& tokens) {
  const int64_t piece = tokens_of_piece(ranks, tokens.size(0)), missing = ranks.world() * piece - tokens.size(0);
  if (missing == 0) return tokens;
  Tensor all = Tensor::empty({ranks.world() * piece, tokens.size(1)}, tokens.dtype(), tokens.device());
  Tensor first = all.rows(0, tokens.size(0)), rest = all.rows(tokens.size(0), missing);
  copy(tokens, first);
  ops::set_zero(rest);
  return all;
}

Tensor scattered(comm::Communicator& ranks, const Tensor& tokens, const std::string& label) {
  const Tensor all = padded(ranks, tokens);
  Tensor piece = Tensor::empty({all.size(0) / ranks.world(), all.size(1)}, all.dtype(), all.device());
  ranks.reduce_scatter(all, piece, label).wait();
  return piece;
}

}  // namespace

Variable copy_to_ranks(comm::Communicator& ranks, const Variable& x, const std::string& label) {
  if (!x.tape()) return x;
  const Variable y(x.value(), x.tape());
  x.tape()->record(
      y, [&ranks, label, dx = x.gradient()](const Tensor& gradient) { dx->add(summed(ranks, gradient, label)); });
  return y;
}

Variable sum_over_ranks(comm::Communicator& ranks, const Variable& x, const std::string& label) {
  const Variable y(summed(ranks, x.value(), label), x.tape());
  if (x.tape()) x.tape()->record(y, [dx = x.gradient()](Tensor gradient) { dx->add(std::move(gradient)); });
  return y;
}

Variable gather_tokens(comm::Communicator& ranks, const Variable& piece, const std::string& label) {
  const Variable y(gathered(ranks, piece.value(), label), piece.tape());
  if (piece.tape())
    piece.tape()->record(y, [&ranks, label, dpiece = piece.gradient()](const Tensor& gradient) {
      dpiece->add(scattered(ranks, gradient, label));
    });
  return y;
}

Variable scatter_token_sums(comm::Communicator& ranks, const Variable& x, const std::string& label) {
  const Variable y(scattered(ranks, x.value(), label), x.tape());
  if (x.tape())
    x.tape()->record(y, [&ranks, label, tokens = x.value().size(0), dx = x.gradient()](const Tensor& gradient) {
      dx->add(gathered(ranks, gradient, label).rows(0, tokens));
    });
  return y;
}

Variable gather_columns(comm::Communicator& ranks, const Variable& x, int64_t columns, const std::string& label) {
  const Tensor& own = x.value();
  const int64_t tokens = own.size(0), widest = chunk_of(columns, ranks.world(), 0).count;
  Tensor sent = Tensor::empty({tokens, widest}, own.dtype(), own.device());
  if (own.size(1) < widest) ops::set_zero(sent);
  ops::copy_columns(own, 0, own.size(1), sent, 0);
  const Tensor all = gathered(ranks, sent, label);
  Tensor whole = Tensor::empty({tokens, columns}, own.dtype(), own.device());
  for (int rank = 0; rank < ranks.world(); ++rank) {
    const Rows part = chunk_of(columns, ranks.world(), rank);
    ops::copy_columns(all.rows(rank * tokens, tokens), 0, part.count, whole, part.begin);
  }
  const Variable y(std::move(whole), x.tape());
  if (x.tape())
    x.tape()->record(y, [like = own.shape(), begin = chunk_of(columns, ranks.world(), ranks.rank()).begin,
                         dx = x.gradient()](const Tensor& gradient) {
      Tensor part = Tensor::empty(like, gradient.dtype(), gradient.device());
      ops::copy_columns(gradient, begin, like[1], part, 0);
      dx->add(std::move(part));
    });
  return y;
}

}  // namespace trainyard::tensor_parallel
