#include "data/images.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/idx.h"
#include "tokenizer/fingerprint.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

/// The file of this name in `folder`, packed or not, or where torchvision puts it.
fs::path find(const fs::path& folder, const std::string& name) {
  for (const fs::path& place : {folder, folder / "MNIST" / "raw"})
    for (const char* const ending : {"", ".gz"})
      if (const fs::path file = place / (name + ending); fs::is_regular_file(file)) return file;
  throw InputError(fmt::format("{}: neither {} nor {}.gz is there", folder.string(), name, name));
}

void check_labels(const std::string& labels, int64_t classes, const fs::path& file) {
  constexpr size_t kHeader = 8;
  for (size_t i = 0; i < labels.size(); ++i)
    if (const auto label = static_cast<uint8_t>(labels[i]); label >= classes)
      throw InputError(fmt::format("{}: byte {}: label {}, but the model has {} classes (0 to {})", file.string(),
                                   kHeader + i, label, classes, classes - 1));
}

}  // namespace

std::shared_ptr<const Images> read_images(const fs::path& folder, Part part, int64_t classes) {
  const std::string prefix = part == Part::Training ? "train" : "t10k";
  const fs::path images_file = find(folder, prefix + "-images-idx3-ubyte"),
                 labels_file = find(folder, prefix + "-labels-idx1-ubyte");
  IdxArray pixels = read_idx(images_file, 3), labels = read_idx(labels_file, 1);
  const int64_t count = pixels.shape[0];
  if (count != labels.shape[0])
    throw InputError(fmt::format("{} holds {} images, but {} {} labels", images_file.string(), count,
                                 labels_file.string(), labels.shape[0]));
  if (pixels.values.empty()) throw InputError(fmt::format("{}: holds no image", images_file.string()));
  check_labels(labels.values, classes, labels_file);
  tokenizer::Fingerprint fingerprint;
  const std::string hex = fingerprint.add(pixels.values).add(labels.values).hex();
  return std::make_shared<Images>(Images{.count = count,
                                         .height = pixels.shape[1],
                                         .width = pixels.shape[2],
                                         .pixels = std::move(pixels.values),
                                         .labels = std::move(labels.values),
                                         .name = images_file.string(),
                                         .fingerprint = hex});
}

}  // namespace trainyard::data
