#include "data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::data {
namespace {

/// How many of `all` are trained on; the rest is held out.
int64_t trained_of(int64_t all, double share, const std::string& name) {
  const int64_t held_out = std::max<int64_t>(std::llround(static_cast<double>(all) * share), 1);
  if (held_out < all) return all - held_out;
  throw InputError(
      fmt::format("{}: a validation.split of {} holds out all of the {} sequences that there are; give more data or a "
                  "smaller share",
                  name, share, with_thousands(all)));
}

bool is_training(const Split& split) {
  return split.side == Side::Training;
}

}  // namespace

TokenArray side_of(const TokenArray& corpus, int64_t sequence_length, const Split& split) {
  if (split.share == 0) return corpus;
  const int64_t windows = (corpus.size() - 1) / sequence_length;
  const int64_t cut = trained_of(windows, split.share, corpus.name()) * sequence_length;
  return is_training(split) ? corpus.part(0, cut + 1) : corpus.part(cut, corpus.size());
}

PairArray side_of(const PairArray& pairs, const Split& split) {
  if (split.share == 0) return pairs;
  const int64_t cut = trained_of(pairs.size(), split.share, pairs.name());
  return is_training(split) ? pairs.part(0, cut) : pairs.part(cut, pairs.size());
}

std::shared_ptr<const Images> side_of(std::shared_ptr<const Images> images, const Split& split) {
  if (split.share == 0) return images;
  const int64_t cut = trained_of(images->count, split.share, images->name);
  const int64_t begin = is_training(split) ? 0 : cut, count = (is_training(split) ? cut : images->count) - begin;
  const auto first = static_cast<size_t>(begin), many = static_cast<size_t>(count);
  const auto size = static_cast<size_t>(images->height * images->width);
  return std::make_shared<const Images>(
      Images{.count = count,
             .height = images->height,
             .width = images->width,
             .pixels = images->pixels.substr(first * size, many * size),
             .labels = images->labels.substr(first, many),
             .name = images->name,
             .fingerprint = part_fingerprint(images->fingerprint, begin, begin + count)});
}

}  // namespace trainyard::data
