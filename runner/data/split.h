#pragma once

#include <memory>

#include "data/corpus.h"
#include "data/images.h"
#include "data/pairs.h"

// Data of which a share, its end, is held out: the same on any number of ranks, as ranks are dealt to only afterwards.
namespace trainyard::data {

enum class Side { Training, HeldOut };

struct Split {
  double share = 0;  ///< that is held out, below 1; 0: nothing is split, and both sides are all
  Side side = Side::Training;
};

// Each returns one side of its data, under a fingerprint of its own, so that a run does not go on with another split.
// The sides share memory with the whole; a side of images is a copy of its part. Throws InputError where a side would be
// empty.

/// Cut between two of the windows that packed_loader() makes: the last target of one side is the first input of the
/// other, and no target is on both.
TokenArray side_of(const TokenArray& corpus, int64_t sequence_length, const Split& split);
PairArray side_of(const PairArray& pairs, const Split& split);
std::shared_ptr<const Images> side_of(std::shared_ptr<const Images> images, const Split& split);

}  // namespace trainyard::data
