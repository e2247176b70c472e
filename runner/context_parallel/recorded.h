#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/row_parts.h"
#include "nn/attention.h"

namespace trainyard::context_parallel {

/// One attention: what forward and backward have to know beside their tensors.
struct Task {
  nn::Heads heads;
  int layer = 0;
  int64_t rows = 0;          ///< whole ones
  int64_t tokens = 0;        ///< of a piece; a rank's tensors hold pieces · rows · tokens, the first pieces first
  int64_t whole_tokens = 0;  ///< of a row
  Tensor own_starts;         ///< int32 [pieces · rows · tokens]; undefined: a row is one document
  Tensor whole_starts;       ///< int32 [rows · whole_tokens]; undefined with own_starts

  /// What a collective is called: "layers.3 keys and values".
  [[nodiscard]] std::string label(const char* what) const { return "layers." + std::to_string(layer) + " " + what; }
  [[nodiscard]] int64_t rows_of_piece() const { return rows * tokens; }
  /// The part of a rank's tensor [pieces · rows · tokens, …] that is a piece of all rows: a view.
  [[nodiscard]] Tensor piece(const Tensor& own, int index) const {
    return own.rows(index * rows_of_piece(), rows_of_piece());
  }
  /// The same of [pieces · rows, heads, tokens].
  [[nodiscard]] Tensor sums_of_piece(const Tensor& lse, int index) const { return lse.rows(index * rows, rows); }
  [[nodiscard]] ops::AttentionShape shape(int64_t kv_tokens) const {
    return {rows, tokens, kv_tokens, heads.query, heads.key_value, heads.dim};
  }
  [[nodiscard]] ops::AttentionOptions options() const {
    return {.scale = nn::attention_scale(heads), .document_starts = {}, .window = heads.window};
  }
};

/// Gradients of this rank's q, k and v.
struct Gradients {
  Tensor dq, dk, dv;
};

struct Inputs {
  Tensor q, k, v;
};

/// A method as an operation on the tape: it says how it computes and goes back, this records it.
class Recorded : public nn::SplitAttention {
 public:
  Recorded(comm::Communicator& context, data::RowParts parts) : context_(context), parts_(parts) {}
  nn::Variable attend(const nn::Variable& q, const nn::Variable& k, const nn::Variable& v, const nn::Heads& heads,
                      int layer, const nn::DecoderContext& context) final;

 protected:
  /// What attention gives for this rank's queries, like q, and then what backward needs beside the inputs.
  [[nodiscard]] virtual std::vector<Tensor> forward(const Task& task, const Inputs& own) = 0;
  /// `outputs`: what forward() made. `own`: undefined where needs_inputs() is false.
  [[nodiscard]] virtual Gradients backward(const Task& task, const Tensor& dout, const Inputs& own,
                                           const std::vector<Tensor>& outputs) = 0;
  [[nodiscard]] virtual bool needs_inputs() const { return true; }

  [[nodiscard]] comm::Communicator& context() const { return context_; }
  [[nodiscard]] const data::RowParts& parts() const { return parts_; }
  /// This rank's number in the context. A dry run is of the rank that has most to compute.
  [[nodiscard]] int rank() const;

  /// What is gathered from all ranks [ranks · pieces · rows · tokens, …] in the order of the whole rows
  /// [rows · whole tokens, …], and back.
  [[nodiscard]] Tensor in_order(const Task& task, const Tensor& gathered) const {
    return reordered(task, gathered, Order::Rows);
  }
  [[nodiscard]] Tensor by_ranks(const Task& task, const Tensor& whole) const {
    return reordered(task, whole, Order::Ranks);
  }

 private:
  enum class Order { Rows, Ranks };
  /// All pieces, from the other order into this one.
  [[nodiscard]] Tensor reordered(const Task& task, const Tensor& from, Order order) const;

  comm::Communicator& context_;
  const data::RowParts parts_;
};

std::unique_ptr<nn::SplitAttention> make_ring(comm::Communicator& context, data::RowParts parts);
std::unique_ptr<nn::SplitAttention> make_all_gather(comm::Communicator& context, data::RowParts parts);
std::unique_ptr<nn::SplitAttention> make_ulysses(comm::Communicator& context, data::RowParts parts);

}  // namespace trainyard::context_parallel
