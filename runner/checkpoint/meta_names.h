#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tensor/tensor.h"

// The names and the order of rows in which Meta and Hugging Face store Llama.
namespace trainyard::checkpoint {

struct NamePlace {
  std::string name;
  bool is_rotated = false;  ///< its rows belong to heads that are rotated, and their order is another one there
};

/// Hugging Face's name for one of Meta's, and the other way round; none where the other side knows no such tensor.
[[nodiscard]] std::optional<NamePlace> hugging_face_name_of(const std::string& meta);
[[nodiscard]] std::optional<NamePlace> meta_name_of(const std::string& hugging_face);

/// Where the two parts of a rotated pair lie among the rows of a head: side by side (Meta: rows 2i and 2i + 1), or half a
/// head apart (Hugging Face: rows i and i + head_rows / 2).
enum class Pairs { SideBySide, HalfApart };

/// Rows [begin, begin + count) as `wanted` orders them of a tensor [heads * head_rows, columns] of float32 that is stored
/// in the other order. `stored` gives its rows [begin, begin + count); a head at a time is asked for.
[[nodiscard]] Tensor reordered_rows(Pairs wanted, int64_t head_rows, int64_t begin, int64_t count,
                                    const std::function<Tensor(int64_t begin, int64_t count)>& stored);

}  // namespace trainyard::checkpoint
