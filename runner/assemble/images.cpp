#include "assemble/images.h"

#include <fmt/format.h>

#include "assemble/read_ahead.h"
#include "base/error.h"

namespace trainyard::train {

std::unique_ptr<data::Loader> image_loader_of(const config::Data& data, const BatchSize& batch,
                                              const models::ModelConfig& model, const data::Place& place, data::Part part,
                                              data::Repeat repeat, const data::Split& split) {
  const models::CnnConfig& cnn = model.cnn;
  const auto images = side_of(data::read_images(data.images, part, cnn.classes), split);
  if (images->height != cnn.image_size || images->width != cnn.image_size)
    throw InputError(fmt::format("{}: images of {} x {}, but the model takes {} x {}", images->name, images->height,
                                 images->width, cnn.image_size, cnn.image_size));
  const data::ImageLoaderOptions options{.place = place,
                                         .batch_size = batch.rows,
                                         .accumulation_steps = batch.accumulation_steps,
                                         .seed = data.seed,
                                         .shuffle = data.shuffle,
                                         .repeat = repeat,
                                         .mean = static_cast<float>(cnn.image_mean),
                                         .std = static_cast<float>(cnn.image_std)};
  return by_workers(data, [&] { return data::image_loader(images, options); });
}

}  // namespace trainyard::train
