#pragma once

#include <memory>

#include "data/loader.h"
#include "data/row_parts.h"

// Context parallelism's side of the data: ranks that get the same rows keep a part of each row's tokens.
namespace trainyard::data {

/// The tokens of `batch` that `rank` has, [pieces · rows, tokens of a piece]: the first pieces of all rows, then the
/// second ones. Positions, targets and documents are those of the whole rows. Rows that do not divide are padded, and
/// padding has no target. Throws std::invalid_argument for a batch of anything but a decoder's tokens.
Batch part_of(const Batch& batch, const RowParts& parts, int rank);

/// The parts of what `loader` gives, which is the same on all ranks of the context. Lengths and counts stay those of
/// whole rows.
std::unique_ptr<Loader> split_rows(std::unique_ptr<Loader> loader, RowParts parts, int rank);

}  // namespace trainyard::data
