#pragma once

#include <memory>

#include "config/config.h"
#include "data/line_reading.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::train {

/// How the lines of the data are read where they are no texts: conversations, or lists of ids below `vocab_size`, that
/// of the model; null where they are texts. The tokenizer, which may be null for lists of ids, outlives it. Throws
/// InputError where there is no chat template, or what is given for it is wrong.
std::unique_ptr<const data::LineReading> line_reading_of(const config::Data& data,
                                                         const tokenizer::Tokenizer* tokenizer, int64_t vocab_size);

/// Whether its lines are such.
bool has_line_reading(const config::Data& data);

}  // namespace trainyard::train
