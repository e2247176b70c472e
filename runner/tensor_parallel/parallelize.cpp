#include "tensor_parallel/parallelize.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

#include "tensor/chunk.h"
#include "tensor_parallel/async.h"
#include "tensor_parallel/functions.h"

namespace trainyard::tensor_parallel {
namespace {

using autograd::Parameter;
using autograd::Part;
using nn::Placement;
using nn::Unit;

/// What ranks exchange around split layers, forward; each brings its way back. Null: nothing.
struct Exchanges {
  using Exchange = Variable (*)(comm::Communicator&, const Variable&, const std::string& label);
  using Product = Variable (*)(comm::Communicator&, const Variable&, Parameter& weight, const std::string& label);

  Exchange gather, add_up;
  Exchange region_output;  ///< null where the product of its last layer adds up
  Product last_product;
};

Exchanges exchanges_of(const Options& options) {
  if (!options.sequence_parallel) return {copy_to_ranks, sum_over_ranks, sum_over_ranks, nullptr};
  if (!options.is_async) return {gather_tokens, scatter_token_sums, scatter_token_sums, nullptr};
  return {gather_tokens_by_ring, scatter_token_sums, nullptr, product_scattered_in_parts};
}

class Parallelizer {
 public:
  Parallelizer(const nn::Placements& placements, const nn::Heads& heads, comm::Communicator& ranks,
               const Options& options)
      : placements_(placements),
        heads_(heads),
        ranks_(ranks),
        sequence_parallel_(options.sequence_parallel),
        exchanges_(exchanges_of(options)) {}

  /// `is_in_region`: ranks compute different things there, so what each has whole gets a share of its gradient.
  void apply(nn::Module& module, bool is_in_region) const {
    const nn::ModulePlacement* const line = nn::placement_of(placements_, module.name());
    const bool splits_weights = line && line->splits_weights();
    for (Parameter* const parameter : module.own_parameters())
      splits_weights ? split(*parameter, *line) : replicate(*parameter, is_in_region || sequence_parallel_);
    if (line) module.set_functions(functions_of(module, line->placement, is_in_region));
    const bool begins_region = line && line->placement == Placement::Region;
    for (nn::Module* const child : module.children()) apply(*child, is_in_region || begins_region);
  }

 private:
  /// All ranks have it, and the first counts.
  void replicate(Parameter& parameter, bool is_partial_gradient) const {
    const int64_t rows = parameter.shape()[0];
    parameter.take_part({.shared = ranks_.rank() == 0 ? 0 : rows, .is_partial_gradient = is_partial_gradient}, rows);
  }

  void split(Parameter& parameter, const nn::ModulePlacement& line) const {
    const int dimension = line.placement == Placement::Row ? 1 : 0;
    if (dimension >= std::ssize(parameter.shape()))
      throw std::logic_error(fmt::format("tensor parallel: {} has no columns that could be split", parameter.name()));
    const int64_t size = parameter.shape()[static_cast<size_t>(dimension)];
    const Rows own = part_of(size, line.unit, ranks_.rank());
    Part part{.dimension = dimension, .begin = own.begin};
    if (line.unit == Unit::KeyValueHead) {
      const Rows before = ranks_.rank() == 0 ? Rows{} : part_of(size, line.unit, ranks_.rank() - 1);
      part.shared = std::max<int64_t>(before.begin + before.count - own.begin, 0);
      part.is_partial_gradient = has_shared_heads();
    }
    parameter.take_part(part, own.count);
  }

  /// Those of `size` elements that a rank has.
  Rows part_of(int64_t size, Unit unit, int rank) const {
    switch (unit) {
      case Unit::Element:
        return chunk_of(size, ranks_.world(), rank);
      case Unit::QueryHead:
        return scaled(query_heads_of(rank), size / heads_.query);
      case Unit::KeyValueHead:
        return scaled(nn::kv_heads_of(heads_, query_heads_of(rank)), size / heads_.key_value);
    }
    throw std::logic_error("tensor parallel: no such unit");
  }

  Rows query_heads_of(int rank) const { return chunk_of(heads_.query, ranks_.world(), rank); }
  static Rows scaled(Rows heads, int64_t elements) { return {heads.begin * elements, heads.count * elements}; }

  /// Whether two ranks need the same KV head.
  bool has_shared_heads() const {
    int64_t held = 0;
    for (int rank = 0; rank < ranks_.world(); ++rank) held += nn::kv_heads_of(heads_, query_heads_of(rank)).count;
    return held > heads_.key_value;
  }

  std::function<Variable(const Variable&)> with(Exchanges::Exchange exchange, const std::string& label) const {
    if (!exchange) return nullptr;
    return [&ranks = ranks_, exchange, label](const Variable& x) { return exchange(ranks, x, label); };
  }
  std::function<Variable(const Variable&, Parameter&)> with(Exchanges::Product product,
                                                            const std::string& label) const {
    if (!product) return nullptr;
    return [&ranks = ranks_, product, label](const Variable& x, Parameter& weight) {
      return product(ranks, x, weight, label);
    };
  }

  nn::ModuleFunctions functions_of(const nn::Module& module, Placement placement, bool is_in_region) const {
    switch (placement) {
      case Placement::Region:
        return {.input = with(exchanges_.gather, module.name() + " input"),
                .output = with(exchanges_.region_output, module.name() + " output"),
                .product = {}};
      case Placement::Vocabulary:
        return {.input = {}, .output = with(exchanges_.add_up, module.name() + " output"), .product = {}};
      case Placement::Encoder:
        return {.input = {}, .output = with(exchanges_.gather, module.name() + " input"), .product = {}};
      case Placement::Row:
        if (!is_in_region) return {};
        // It is the region's last layer, and so the region's output.
        return {.input = {}, .output = {}, .product = with(exchanges_.last_product, module.name() + " output")};
      case Placement::Column:
        return {};
    }
    throw std::logic_error("tensor parallel: no such placement");
  }

  const nn::Placements& placements_;
  const nn::Heads& heads_;
  comm::Communicator& ranks_;
  const bool sequence_parallel_;
  const Exchanges exchanges_;
};

}  // namespace

void parallelize(nn::Module& model, const nn::Placements& placements, const nn::Heads& heads, comm::Communicator& ranks,
                 const Options& options) {
  Parallelizer(placements, heads, ranks, options).apply(model, false);
}

}  // namespace trainyard::tensor_parallel
