#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/loaders.h"

namespace trainyard::data {

/// By which rules a corpus becomes ids. A state says by which its data was read, and those of before 2 did not. 2 reads
/// linked folders, endings in any case and each file once, and ends empty documents; 3 finds added tokens in text, reads
/// the split patterns of a tokenizer.json as Oniguruma does, puts spaces before pieces as transformers does, takes a
/// SentencePiece folder's eos_token from its configuration, and cuts long documents at borders alone.
inline constexpr int kReadingRules = 3;

/// Throws InputError, naming the first that differs, where `state` does not have every member of `ours` with the same
/// value: the place it tells of is one in other data, or in another order. `data` is what messages call the data. Rules of
/// reading that have changed since are named as what may have made the difference.
void require_same(const nlohmann::json& state, const nlohmann::json& ours, const std::string& data);

/// The non-negative whole number `name` of `state`. Throws InputError where it is none.
int64_t count_in(const nlohmann::json& state, const char* name);

/// A rank's rows in the next micro-batch: `batch_size`, or without repetition those that are left to it of an epoch of
/// `all` sequences, of which `seen` were given out to all ranks.
int64_t rows_left(Repeat repeat, const Place& place, int64_t batch_size, int64_t all, int64_t seen);

}  // namespace trainyard::data
