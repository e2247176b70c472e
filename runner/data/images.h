#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/loaders.h"

namespace trainyard::data {

/// Labelled images, held in memory.
struct Images {
  int64_t count = 0, height = 0, width = 0;
  std::string pixels;             ///< [count, height, width] bytes
  std::string labels;             ///< [count] bytes, each below the number of classes
  std::string name, fingerprint;  ///< equal for equal images
};

/// The part of a folder of idx files that is learned from, or the one that is held out.
enum class Part { Training, Test };

/// Reads `folder`: train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-… for the test part, as they are or
/// with .gz; also in MNIST/raw below it, where torchvision puts them. Throws InputError for what is not there, for what
/// parse_idx() refuses, for other labels than images, and for a label that is no class, naming file and byte.
std::shared_ptr<const Images> read_images(const std::filesystem::path& folder, Part part, int64_t classes);

struct ImageLoaderOptions {
  Place place;
  int64_t batch_size = 64;  ///< rows a rank and micro-batch
  int64_t accumulation_steps = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  Repeat repeat = Repeat::Forever;
  float mean = 0, std = 1;  ///< of pixels in [0, 1]
};

/// Batches of features float32 [rows, height, width], (pixel / 255 − mean) / std, and targets [rows].
/// Forever: each epoch has an order of its own and is dealt as PyTorch's DistributedSampler and DataLoader do: round
/// robin, as many rows to each rank, for which up to world − 1 images come a second time; its last micro-batch is
/// short. Never: one pass in the order of the files, each image once.
std::unique_ptr<Loader> image_loader(std::shared_ptr<const Images> images, const ImageLoaderOptions& options);

}  // namespace trainyard::data
