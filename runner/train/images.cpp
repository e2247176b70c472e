#include "train/images.h"

#include <fmt/format.h>

#include "base/error.h"
#include "train/setup.h"

namespace trainyard::train {

std::unique_ptr<data::Loader> image_loader_of(const config::Config& config, const models::ModelConfig& model,
                                              const data::Place& place, data::Part part, data::Repeat repeat) {
  const models::CnnConfig& cnn = model.cnn;
  const auto images = data::read_images(config.data.images, part, cnn.classes);
  if (images->height != cnn.image_size || images->width != cnn.image_size)
    throw InputError(fmt::format("{}: images of {} x {}, but the model takes {} x {}", images->name, images->height,
                                 images->width, cnn.image_size, cnn.image_size));
  const data::ImageLoaderOptions options{.place = place,
                                         .batch_size = config.training.batch_size,
                                         .accumulation_steps = config.training.accumulation_steps,
                                         .seed = config.data.seed,
                                         .shuffle = config.data.shuffle,
                                         .repeat = repeat,
                                         .mean = static_cast<float>(cnn.image_mean),
                                         .std = static_cast<float>(cnn.image_std)};
  return by_workers(config.data, [&] { return data::image_loader(images, options); });
}

}  // namespace trainyard::train
