#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

// Images, labels and weights by formula: reference/first_models has the same ones.
namespace trainyard::test {

/// An idx file of unsigned bytes.
std::string idx(const std::vector<uint32_t>& sizes, const std::string& values);

/// train-… and t10k-… of 28 x 28 noise, in which a bright bar tells the label.
void write_images(const std::filesystem::path& folder, int64_t training, int64_t test);

/// model.safetensors of the classifier at its published size, and the config.json of reference/mnist.
void write_mnist_weights(const std::filesystem::path& folder);

}  // namespace trainyard::test
