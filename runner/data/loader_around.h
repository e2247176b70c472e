#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/loader.h"

namespace trainyard::data {

/// A loader that has its place and its lengths from another one. What it hands out is its own affair.
class LoaderAround : public Loader {
 public:
  explicit LoaderAround(std::unique_ptr<Loader> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] nlohmann::json state() const override { return inner_->state(); }
  void load_state(const nlohmann::json& state) override { inner_->load_state(state); }
  [[nodiscard]] int64_t sequences_seen() const override { return inner_->sequences_seen(); }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return inner_->sequences_per_epoch(); }
  [[nodiscard]] int64_t rows_per_epoch() const override { return inner_->rows_per_epoch(); }
  [[nodiscard]] std::optional<int64_t> steps_available() const override { return inner_->steps_available(); }
  [[nodiscard]] int64_t sequences_per_step() const override { return inner_->sequences_per_step(); }
  [[nodiscard]] int64_t sequence_length() const override { return inner_->sequence_length(); }
  [[nodiscard]] int64_t source_length() const override { return inner_->source_length(); }
  [[nodiscard]] int64_t longest_sequence() const override { return inner_->longest_sequence(); }
  [[nodiscard]] int64_t longest_source() const override { return inner_->longest_source(); }

 protected:
  [[nodiscard]] Loader& inner() { return *inner_; }

 private:
  std::unique_ptr<Loader> inner_;
};

}  // namespace trainyard::data
