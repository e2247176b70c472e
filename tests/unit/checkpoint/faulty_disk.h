#pragma once

#include <atomic>
#include <memory>
#include <system_error>

#include "checkpoint/disk.h"

namespace trainyard::checkpoint {

enum class Fault {
  Once,     ///< operation n fails, as a disk does that is full for a moment
  Forever,  ///< operation n and all later ones fail: what is on the disk then is what a kill at n leaves
};

/// The real disk, but operation n (counted from 0, over all calls and every write) fails.
class FaultyDisk : public Disk {
 public:
  FaultyDisk(int64_t fails_at, Fault fault) : state_(std::make_shared<State>(fails_at, fault)) {}

  [[nodiscard]] bool has_failed() const { return state_->failed; }

  void create_folders(const std::filesystem::path& folder) override {
    state_->count(folder), disk_->create_folders(folder);
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    state_->count(to), disk_->rename(from, to);
  }
  void swap_in(const std::filesystem::path& from, const std::filesystem::path& to) override {
    state_->count(to), disk_->swap_in(from, to);
  }
  void remove_all(const std::filesystem::path& path) override { state_->count(path), disk_->remove_all(path); }
  void sync_folder(const std::filesystem::path& folder) override { state_->count(folder), disk_->sync_folder(folder); }
  std::unique_ptr<ByteSink> create(const std::filesystem::path& file) override {
    state_->count(file);
    return std::make_unique<Sink>(disk_->create(file), state_, file);
  }

 private:
  struct State {
    State(int64_t at, Fault kind) : fails_at(at), fault(kind) {}
    void count(const std::filesystem::path& path) {
      const int64_t now = operations++;
      if (now != fails_at && !(fault == Fault::Forever && now > fails_at)) return;
      failed = true;
      throw std::filesystem::filesystem_error("injected", path, std::make_error_code(std::errc::no_space_on_device));
    }
    const int64_t fails_at;
    const Fault fault;
    std::atomic<int64_t> operations{0};
    std::atomic<bool> failed{false};
  };
  class Sink : public ByteSink {
   public:
    Sink(std::unique_ptr<ByteSink> next, std::shared_ptr<State> state, std::filesystem::path path)
        : next_(std::move(next)), state_(std::move(state)), path_(std::move(path)) {}
    using ByteSink::write;
    void write(std::span<const std::byte> bytes) override { state_->count(path_), next_->write(bytes); }
    void finish() override { state_->count(path_), next_->finish(); }

   private:
    std::unique_ptr<ByteSink> next_;
    std::shared_ptr<State> state_;
    std::filesystem::path path_;
  };

  std::shared_ptr<Disk> disk_ = real_disk();
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::checkpoint
