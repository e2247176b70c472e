#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/images.h"
#include "data/ordered_loader.h"
#include "data/permutation.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class ImageLoader final : public OrderedLoader {
 public:
  ImageLoader(std::shared_ptr<const Images> images, const ImageLoaderOptions& options)
      : OrderedLoader("image_loader", {options.place, options.batch_size, options.accumulation_steps, options.repeat}),
        images_(std::move(images)),
        options_(options) {}

  /// No image is counted twice.
  void skip() override { add_seen(std::min(rows_together(), left())); }

  [[nodiscard]] int64_t sequences_per_epoch() const override { return images_->count; }
  [[nodiscard]] int64_t rows_per_epoch() const override {
    return (images_->count + rows_together() - 1) / rows_together() * rows_together();
  }
  [[nodiscard]] int64_t sequence_length() const override { return 1; }

 protected:
  Batch batch_of(const std::vector<int64_t>& sequences) override {
    const int64_t rows = std::ssize(sequences);
    Batch batch{.targets = Tensor::empty({rows}, DType::Int32),
                .valid_tokens = rows,
                .features = Tensor::empty({rows, images_->height, images_->width}, DType::Float32)};
    for (int64_t row = 0; row < rows; ++row) fill_row(image_at(sequences[static_cast<size_t>(row)]), row, batch);
    return batch;
  }
  [[nodiscard]] json order() const override {
    return {{"images", images_->fingerprint}, {"seed", options_.seed}, {"shuffle", options_.shuffle}};
  }
  [[nodiscard]] std::string name() const override { return images_->name; }
  /// Every rank has as many rows, unless no image may come twice.
  [[nodiscard]] int64_t rows_of_rank() const override {
    if (options_.repeat == Repeat::Never) return OrderedLoader::rows_of_rank();
    const int64_t world = options_.place.world;
    return std::min(options_.batch_size, (left() + world - 1) / world);
  }

 private:
  /// Images of this epoch that were not given out.
  [[nodiscard]] int64_t left() const {
    const bool has_ended = options_.repeat == Repeat::Never && sequences_seen() >= images_->count;
    return has_ended ? 0 : images_->count - sequences_seen() % images_->count;
  }
  /// `sequence` counts on from sequences_seen(), which is in this epoch. Past its end its first images come again.
  [[nodiscard]] int64_t image_at(int64_t sequence) const {
    const int64_t epoch = sequences_seen() / images_->count, index = (sequence - epoch * images_->count) % images_->count;
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
};

}  // namespace

std::unique_ptr<Loader> image_loader(std::shared_ptr<const Images> images, const ImageLoaderOptions& options) {
  return std::make_unique<ImageLoader>(std::move(images), options);
}

}  // namespace trainyard::data
