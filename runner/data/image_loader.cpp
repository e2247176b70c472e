#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "data/images.h"
#include "data/loader_state.h"
#include "data/permutation.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class ImageLoader : public Loader {
 public:
  ImageLoader(std::shared_ptr<const Images> images, const ImageLoaderOptions& options)
      : images_(std::move(images)), options_(options) {}

  Batch next() override {
    const int64_t rows = rows_of_rank();
    Batch batch{.targets = Tensor::empty({rows}, DType::Int32),
                .valid_tokens = rows,
                .features = Tensor::empty({rows, images_->height, images_->width}, DType::Float32)};
    for (int64_t row = 0; row < rows; ++row) {
      batch.sequences.push_back(seen_ + row * options_.place.world + options_.place.rank);
      fill_row(image_at(batch.sequences.back()), row, batch);
    }
    skip();
    return batch;
  }
  void skip() override { seen_ += std::min(rows_together(), left()); }

  [[nodiscard]] json state() const override {
    json state = order();
    state["sequences_seen"] = seen_;
    return state;
  }
  void load_state(const json& state) override {
    require_same(state, order(), images_->name);
    seen_ = count_in(state, "sequences_seen");
  }

  [[nodiscard]] int64_t sequences_seen() const override { return seen_; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return images_->count; }
  [[nodiscard]] int64_t rows_per_epoch() const override {
    return (images_->count + rows_together() - 1) / rows_together() * rows_together();
  }
  [[nodiscard]] int64_t sequences_per_step() const override { return rows_together() * options_.accumulation_steps; }
  [[nodiscard]] int64_t sequence_length() const override { return 1; }

 private:
  /// What the order of images follows from.
  [[nodiscard]] json order() const {
    return {{"images", images_->fingerprint}, {"seed", options_.seed}, {"shuffle", options_.shuffle}};
  }

  /// Of all ranks in a full micro-batch.
  [[nodiscard]] int64_t rows_together() const { return options_.batch_size * options_.place.world; }
  /// Images of this epoch that were not given out.
  [[nodiscard]] int64_t left() const {
    const bool has_ended = options_.repeat == Repeat::Never && seen_ >= images_->count;
    return has_ended ? 0 : images_->count - seen_ % images_->count;
  }
  /// In the next micro-batch: as many on every rank, unless no image may come twice.
  [[nodiscard]] int64_t rows_of_rank() const {
    const auto [rank, world] = options_.place;
    if (options_.repeat == Repeat::Never)
      return rows_left(options_.repeat, options_.place, options_.batch_size, images_->count, seen_);
    return std::min(options_.batch_size, (left() + world - 1) / world);
  }

  /// `sequence` counts on from seen_, which is in this epoch; past its end its first images come again.
  [[nodiscard]] int64_t image_at(int64_t sequence) const {
    const int64_t epoch = seen_ / images_->count, index = (sequence - epoch * images_->count) % images_->count;
    if (!options_.shuffle) return index;
    const Permutation order = order_of_epoch(images_->count, options_.seed, epoch);
    return static_cast<int64_t>(order(static_cast<uint64_t>(index)));
  }

  void fill_row(int64_t image, int64_t row, Batch& batch) const {
    const auto at = static_cast<size_t>(image), size = static_cast<size_t>(images_->height * images_->width);
    const auto to = batch.features.values<float>().subspan(static_cast<size_t>(row) * size, size);
    // In float32 and in this order, as torchvision's ToTensor and Normalize compute it.
    std::transform(images_->pixels.begin() + static_cast<ptrdiff_t>(at * size),
                   images_->pixels.begin() + static_cast<ptrdiff_t>((at + 1) * size), to.begin(), [this](char pixel) {
                     return (static_cast<float>(static_cast<uint8_t>(pixel)) / 255.0F - options_.mean) / options_.std;
                   });
    batch.targets.values<int32_t>()[static_cast<size_t>(row)] = static_cast<uint8_t>(images_->labels[at]);
  }

  std::shared_ptr<const Images> images_;
  ImageLoaderOptions options_;
  int64_t seen_ = 0;  ///< images given out to all ranks, none counted twice
};

}  // namespace

std::unique_ptr<Loader> image_loader(std::shared_ptr<const Images> images, const ImageLoaderOptions& options) {
  const auto& [rank, world] = options.place;
  if (options.batch_size < 1 || options.accumulation_steps < 1 || world < 1 || rank < 0 || rank >= world)
    throw std::invalid_argument(fmt::format("image_loader: batch_size {}, accumulation_steps {}, rank {} of {}",
                                            options.batch_size, options.accumulation_steps, rank, world));
  return std::make_unique<ImageLoader>(std::move(images), options);
}

}  // namespace trainyard::data
