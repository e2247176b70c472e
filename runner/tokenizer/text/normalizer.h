#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::tokenizer {

/// Unicode normalisation forms, by libutf8proc.
enum class Normalization { Nfc, Nfd, Nfkc, Nfkd };

/// `text`, well-formed UTF-8, in the given forms one after another. ASCII passes at memory speed.
std::string normalize(std::string_view text, const std::vector<Normalization>& forms);

}  // namespace trainyard::tokenizer
