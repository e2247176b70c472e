#pragma once

#include <algorithm>

#include "ops/attention.h"

// The mask and the bias of ops/attention.h, for the kernels of every device.
namespace trainyard::ops {

struct Range {
  int64_t begin, end;
  [[nodiscard]] constexpr int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

/// Which keys a query of batch row `row` sees. Its pointers are those of the options' tensors: it serves where they
/// lie.
class Visibility {
 public:
  Visibility(const AttentionShape& shape, const AttentionOptions& options)
      : q_tokens_(shape.q_tokens),
        kv_tokens_(shape.kv_tokens),
        q_offset_(options.q_offset),
        window_(options.window),
        is_causal_(options.causal),
        document_offset_(options.document_offset),
        starts_(indices(options.document_starts)),
        lengths_(indices(options.key_lengths)) {}

  [[nodiscard]] constexpr Range keys_of(int64_t row, int64_t query) const {
    const int64_t document =
        starts_ ? std::max<int64_t>(starts_[row * q_tokens_ + query] - document_offset_, 0) : 0;
    const int64_t window = window_ > 0 ? q_offset_ + query + 1 - window_ : 0;
    const int64_t keys = lengths_ ? lengths_[row] : kv_tokens_;
    const int64_t begin = std::min(std::max(document, window), keys);
    const int64_t end = is_causal_ ? std::min(q_offset_ + query + 1, keys) : keys;
    return {begin, std::max(begin, end)};
  }

  /// The keys that any of `queries` sees; holes between documents included.
  [[nodiscard]] constexpr Range keys_of(int64_t row, Range queries) const {
    Range all = keys_of(row, queries.begin);
    for (int64_t query = queries.begin + 1; query < queries.end; ++query) {
      const Range keys = keys_of(row, query);
      all = {std::min(all.begin, keys.begin), std::max(all.end, keys.end)};
    }
    return all;
  }

  /// The queries that may see one of `keys`; no other query does.
  [[nodiscard]] constexpr Range queries_of(Range keys) const {
    const int64_t begin = is_causal_ ? std::max<int64_t>(keys.begin - q_offset_, 0) : 0;
    const int64_t end = window_ > 0 ? std::min(keys.end - 1 + window_ - q_offset_, q_tokens_) : q_tokens_;
    return {begin, std::max(begin, end)};
  }

 private:
  static const int32_t* indices(const Tensor& tensor) {
    return tensor.defined() ? reinterpret_cast<const int32_t*>(tensor.raw()) : nullptr;
  }

  int64_t q_tokens_, kv_tokens_, q_offset_, window_;
  bool is_causal_;
  int64_t document_offset_;
  const int32_t *starts_, *lengths_;
};

/// The element of a [heads, span] bias that a query and a key of a head take.
template <typename T>
constexpr T* bias_at(T* bias, const AttentionShape& shape, int64_t head, int64_t query, int64_t key) {
  return bias + head * (shape.q_tokens + shape.kv_tokens - 1) + key - query + shape.q_tokens - 1;
}

}  // namespace trainyard::ops
