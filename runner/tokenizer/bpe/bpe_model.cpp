#include "tokenizer/bpe/bpe_model.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"

namespace trainyard::tokenizer {
namespace {

constexpr uint64_t kEmpty = ~uint64_t{0};

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32U | static_cast<uint32_t>(right);
}

uint64_t mixed(uint64_t key) {  // the finisher of splitmix64
  key = (key ^ (key >> 30U)) * 0xbf58476d1ce4e5b9U;
  key = (key ^ (key >> 27U)) * 0x94d049bb133111ebU;
  return key ^ (key >> 31U);
}

}  // namespace

BpeModel::MergeTable::MergeTable(std::span<const Merge> merges)
    : slots_(std::bit_ceil(merges.size() * 2 + 1), Slot{kEmpty, {}}), mask_(slots_.size() - 1) {
  uint32_t rank = 0;
  for (const Merge& merge : merges) {
    const uint64_t key = pair_key(merge.left, merge.right);
    uint64_t at = mixed(key) & mask_;
    while (slots_[at].pair != kEmpty && slots_[at].pair != key) at = (at + 1) & mask_;
    slots_[at] = {key, {rank++, merge.result}};  // a pair listed twice has the later rank, as in `tokenizers`
  }
}

const BpeModel::Joined* BpeModel::MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t key = pair_key(left, right);
  for (uint64_t at = mixed(key) & mask_;; at = (at + 1) & mask_) {
    if (slots_[at].pair == key) return &slots_[at].joined;
    if (slots_[at].pair == kEmpty) return nullptr;
  }
}

size_t BpeModel::HashBytes::operator()(std::string_view bytes) const {
  return XXH3_64bits(bytes.data(), bytes.size());
}

BpeModel::BpeModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)), merges_(vocabulary_.merges) {
  vocabulary_.merges = {};
  ids_.reserve(vocabulary_.pieces.size());
  for (size_t id = 0; id < vocabulary_.pieces.size(); ++id)
    if (const auto& piece = vocabulary_.pieces[id]) ids_.emplace(*piece, static_cast<int32_t>(id));
  for (const auto& [bytes, id] : vocabulary_.also) ids_.emplace(bytes, id);
}

const std::optional<std::string>& BpeModel::piece(int64_t id) const {
  static const std::optional<std::string> kNone;
  return id >= 0 && id < size() ? vocabulary_.pieces[static_cast<size_t>(id)] : kNone;
}

std::optional<int32_t> BpeModel::find(std::string_view bytes) const {
  const auto found = ids_.find(bytes);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

void BpeModel::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (vocabulary_.whole_piece == WholePiece::First) {
    if (const auto whole = find(piece)) return ids.push_back(*whole);
  }
  fill_symbols(piece, scratch.symbols);
  scratch.heap.clear();
  for (size_t at = 0; at + 1 < scratch.symbols.size(); ++at) propose(static_cast<int32_t>(at), scratch);
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end());
    const Scratch::Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    join(best, scratch);
  }
  for (const Scratch::Symbol& symbol : scratch.symbols)
    if (symbol.id >= 0) ids.push_back(symbol.id);
}

void BpeModel::fill_symbols(std::string_view piece, std::vector<Scratch::Symbol>& symbols) const {
  symbols.clear();
  bool after_unknown = false;
  for (const char byte : piece) {
    const int32_t known = vocabulary_.byte_ids[static_cast<unsigned char>(byte)];
    const bool is_unknown = known < 0;
    if (is_unknown && !vocabulary_.missing_unknown.empty())
      throw InputError(
          fmt::format("the text has the byte 0x{:02x}, which has no token, and unk_token '{}', which would "
                      "stand for it, is in no vocabulary",
                      static_cast<unsigned char>(byte), vocabulary_.missing_unknown));
    if (is_unknown && (!vocabulary_.unknown || (after_unknown && vocabulary_.fuse_unknown))) continue;
    const auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({is_unknown ? *vocabulary_.unknown : known, at - 1, at + 1});
    after_unknown = is_unknown;
  }
  if (!symbols.empty()) symbols.back().next = -1;
}

void BpeModel::propose(int32_t at, Scratch& scratch) const {
  const Scratch::Symbol& left = scratch.symbols[static_cast<size_t>(at)];
  if (left.next < 0) return;
  const Joined* const joined = merges_.find(left.id, scratch.symbols[static_cast<size_t>(left.next)].id);
  if (!joined) return;
  scratch.heap.push_back({joined->rank, at, joined->result});
  std::push_heap(scratch.heap.begin(), scratch.heap.end());
}

void BpeModel::join(const Scratch::Candidate& best, Scratch& scratch) const {
  Scratch::Symbol& left = scratch.symbols[static_cast<size_t>(best.at)];
  if (left.id < 0 || left.next < 0) return;
  Scratch::Symbol& right = scratch.symbols[static_cast<size_t>(left.next)];
  const Joined* const joined = merges_.find(left.id, right.id);
  if (!joined || joined->result != best.result) return;  // a neighbour has been joined since
  left.id = best.result;
  right.id = -1;
  left.next = right.next;
  if (left.next >= 0) scratch.symbols[static_cast<size_t>(left.next)].previous = best.at;
  propose(best.at, scratch);
  if (left.previous >= 0) propose(left.previous, scratch);
}

}  // namespace trainyard::tokenizer
