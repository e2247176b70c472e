#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace host_nccl {

/// Values and bytes, one after the other.
class Writer {
 public:
  template <typename T>
  void add(const T& value) {
    add_bytes(&value, sizeof value);
  }
  void add_bytes(const void* from, size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + bytes);
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  template <typename T>
  T next() {
    T value;
    std::memcpy(&value, next_bytes(sizeof value), sizeof value);
    return value;
  }
  const std::byte* next_bytes(size_t bytes) {
    const std::byte* const first = left_.data();
    left_ = left_.subspan(bytes);
    return first;
  }

 private:
  std::span<const std::byte> left_;
};

/// How ranks that are processes of one machine exchange bytes: each leaves a letter of a name for all, in a folder that
/// whoever started them removes. Letters stay: nothing has to be agreed on but names.
class Mailbox {
 public:
  Mailbox(std::filesystem::path folder, std::string name, size_t rank, size_t ranks)
      : folder_(std::move(folder)), name_(std::move(name)), rank_(rank), ranks_(ranks) {}

  /// That of some of these ranks.
  [[nodiscard]] Mailbox part(const std::string& name, size_t rank, size_t ranks) const {
    return {folder_, name_ + "." + name, rank, ranks};
  }

  void put(const std::string& letter, std::span<const std::byte> bytes) const {
    const std::filesystem::path file = path_of(letter, rank_), unfinished = file.string() + "~";
    std::ofstream(unfinished, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    std::filesystem::rename(unfinished, file);
  }
  [[nodiscard]] bool has(const std::string& letter, size_t rank) const {
    return std::filesystem::exists(path_of(letter, rank));
  }
  [[nodiscard]] bool has_all(const std::string& letter) const {
    for (size_t rank = 0; rank < ranks_; ++rank)
      if (!has(letter, rank)) return false;
    return true;
  }
  [[nodiscard]] std::vector<std::byte> read(const std::string& letter, size_t rank) const {
    std::ifstream file(path_of(letter, rank), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

 private:
  [[nodiscard]] std::filesystem::path path_of(const std::string& letter, size_t rank) const {
    return folder_ / (name_ + "." + letter + "." + std::to_string(rank));
  }

  std::filesystem::path folder_;
  std::string name_;
  size_t rank_, ranks_;
};

}  // namespace host_nccl
