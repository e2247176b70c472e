#include "checkpoint/full_writer.h"

#include <algorithm>
#include <iterator>

namespace trainyard::checkpoint {

void FullWriter::write_description(const Snapshot& snapshot) {
  write_text("config.json", config_text(snapshot.state, "this run", DType::Float32));
  if (snapshot.files) std::ranges::copy(write_files(disk_, folder_, *snapshot.files), std::back_inserter(written_));
}

void FullWriter::begin(Kind kind, std::span<const Shard> shards) {
  stem_ = kind == Kind::Model ? "model" : "optimizer";
  names_.clear();
  declared_.clear();
  std::vector<uint64_t> bytes;
  for (const Shard& shard : shards) {
    names_.push_back(shard.name);
    declared_.push_back({shard.name, shard.local.dtype(), shard.global_shape});
    bytes.push_back(static_cast<uint64_t>(count_of(shard.global_shape)) * size_of(shard.local.dtype()));
  }
  planned_ = divide(bytes, max_file_bytes_, stem_);
  next_file_ = 0;
  if (!shards.empty()) open_next();
}

void FullWriter::append(const Tensor& whole) {
  if (left_ == 0) {
    close_open();
    open_next();
  }
  open_->append(whole);
  --left_;
}

void FullWriter::end() {
  close_open();
  if (planned_.size() > 1) write_text(index_name(stem_), index_text(planned_, names_));
}

void FullWriter::open_next() {
  const WeightFile& file = planned_.at(next_file_++);
  std::vector<SafetensorsWriter::Declared> declared;
  for (const size_t tensor : file.tensors) declared.push_back(declared_[tensor]);
  seen_.emplace();
  open_.emplace(std::make_unique<ChecksumSink>(disk_.create(folder_ / file.name), *seen_), declared,
                std::map<std::string, std::string>{{"format", "pt"}});
  left_ = declared.size();
}

void FullWriter::close_open() {
  if (!open_) return;
  open_->finish();
  open_.reset();
  written_.push_back({planned_[next_file_ - 1].name, seen_->bytes, seen_->checksum.text()});
}

void FullWriter::write_text(const std::string& name, std::string_view content) {
  write_file(disk_, folder_ / name, content);
  written_.push_back({name, content.size(), checksum_of(content)});
}

}  // namespace trainyard::checkpoint
