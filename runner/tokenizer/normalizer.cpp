#include "tokenizer/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "tokenizer/utf8.h"

namespace trainyard::tokenizer {
namespace {

utf8proc_option_t options_of(Normalization form) {
  switch (form) {
    case Normalization::Nfc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    case Normalization::Nfd:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    case Normalization::Nfkc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case Normalization::Nfkd:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
  throw std::invalid_argument("normalize: unknown form");
}

void append_normalized(std::string& out, std::string_view text, utf8proc_option_t options) {
  utf8proc_uint8_t* raw = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &raw, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> mapped(raw, &std::free);
  if (length < 0) throw std::runtime_error(fmt::format("normalize: {}", utf8proc_errmsg(length)));
  out.append(reinterpret_cast<const char*>(mapped.get()), static_cast<size_t>(length));
}

/// ASCII characters are the same in every form and start a new combining sequence, so only runs of others, each with
/// the ASCII character before it (a letter that an accent may join), have to go through the tables.
std::string normalize_once(std::string_view text, Normalization form) {
  std::string out;
  out.reserve(text.size());
  size_t copied = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (is_ascii(text[at])) continue;
    const size_t begin = at > copied ? at - 1 : at;
    while (at < text.size() && !is_ascii(text[at])) ++at;
    out.append(text.substr(copied, begin - copied));
    append_normalized(out, text.substr(begin, at - begin), options_of(form));
    copied = at;
  }
  return out.append(text.substr(copied));
}

}  // namespace

std::string normalize(std::string_view text, const std::vector<Normalization>& forms) {
  std::string out(text);
  for (const Normalization form : forms) out = normalize_once(out, form);
  return out;
}

}  // namespace trainyard::tokenizer
