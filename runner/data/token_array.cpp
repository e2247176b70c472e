#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "data/batch.h"
#include "data/cache_file.h"
#include "data/corpus.h"

namespace trainyard::data {

TokenArray::TokenArray(std::vector<int32_t> ids, std::string name, std::string fingerprint, Counting counting)
    : held_(std::make_shared<const std::vector<int32_t>>(std::move(ids))),
      ids_(std::span<const int32_t>(*held_)),
      size_(static_cast<int64_t>(held_->size())),
      counting_(counting),
      name_(std::move(name)),
      fingerprint_(std::move(fingerprint)) {}

TokenArray TokenArray::map(const std::filesystem::path& cache_file, std::string name) {
  TokenArray tokens;
  tokens.file_ = std::make_shared<const MappedFile>(cache_file);
  const CacheHeader header = read_cache_header(*tokens.file_);
  const std::byte* const data = tokens.file_->bytes().data() + sizeof(CacheHeader);
  if (header.bytes_an_id == sizeof(uint16_t))
    tokens.ids_ = std::span(reinterpret_cast<const uint16_t*>(data), header.ids);
  else
    tokens.ids_ = std::span(reinterpret_cast<const int32_t*>(data), header.ids);
  tokens.size_ = static_cast<int64_t>(header.ids);
  tokens.counting_ = header.magic == kSomeCount ? Counting::SomeIds : Counting::AllIds;
  tokens.name_ = std::move(name);
  tokens.fingerprint_ = std::string(header.key.begin(), header.key.end());
  return tokens;
}

TokenArray TokenArray::part(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > size_)
    throw std::out_of_range(fmt::format("{}: ids [{}, {}) of {}", name_, begin, end, size_));
  TokenArray part = *this;
  std::visit([&](auto& ids) { ids = ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)); },
             part.ids_);
  part.size_ = end - begin;
  part.fingerprint_ = part_fingerprint(fingerprint_, begin, end);
  return part;
}

std::string part_fingerprint(const std::string& whole, int64_t begin, int64_t end) {
  return fmt::format("{} [{}, {})", whole, begin, end);
}

int32_t TokenArray::operator[](int64_t index) const {
  int32_t id = 0;
  copy(index, {&id, 1});
  return id;
}

void TokenArray::copy(int64_t begin, std::span<int32_t> ids) const {
  copy_stored(begin, ids);
  if (counting_ == Counting::AllIds) return;
  for (int32_t& id : ids)
    if (id < 0) id = ~id;
}

int64_t TokenArray::copy_targets(int64_t begin, std::span<int32_t> targets) const {
  copy_stored(begin, targets);
  if (counting_ == Counting::AllIds) return std::ssize(targets);
  int64_t count = 0;
  for (int32_t& target : targets) {
    if (target < 0)
      target = kIgnored;
    else
      ++count;
  }
  return count;
}

void TokenArray::copy_stored(int64_t begin, std::span<int32_t> ids) const {
  if (begin < 0 || begin > size_ || static_cast<int64_t>(ids.size()) > size_ - begin)
    throw std::out_of_range(
        fmt::format("{}: ids [{}, {}) of {}", name_, begin, begin + static_cast<int64_t>(ids.size()), size_));
  std::visit(
      [&](const auto& all) { std::ranges::copy(all.subspan(static_cast<size_t>(begin), ids.size()), ids.begin()); },
      ids_);
}

void check_ids(const TokenArray& tokens, int64_t vocab_size, const Tokenising& how) {
  constexpr int64_t kAtOnce = int64_t{1} << 18;
  std::vector<int32_t> ids;
  for (int64_t begin = 0; begin < tokens.size(); begin += kAtOnce) {
    stop_if_asked(how, "checking the ids of " + tokens.name());
    ids.resize(static_cast<size_t>(std::min(kAtOnce, tokens.size() - begin)));
    tokens.copy(begin, ids);
    const auto bad = std::ranges::find_if(ids, [&](int32_t id) { return id < 0 || id >= vocab_size; });
    if (bad != ids.end())
      throw InputError(
          fmt::format("{}: token {} has id {}, but the model's vocabulary ends at {}; the tokenizer and the model do "
                      "not belong together",
                      tokens.name(), begin + (bad - ids.begin()), *bad, vocab_size - 1));
  }
}

}  // namespace trainyard::data
