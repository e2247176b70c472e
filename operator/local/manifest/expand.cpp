#include "local/manifest/expand.h"

#include <fmt/format.h>

#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

enum class Unset { Stays, IsRefused };

std::string expanded_text(std::string_view text, const Variables& variables, Unset unset) {
  std::string expanded;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$' || at + 1 == text.size()) {
      expanded += text[at];
    } else if (text[at + 1] == '$') {
      expanded += '$';
      ++at;
    } else if (const size_t end = text.find(')', at); text[at + 1] == '(' && end != std::string_view::npos) {
      const std::string_view reference = text.substr(at, end + 1 - at);
      const std::string name(reference.substr(2, reference.size() - 3));
      const auto found = variables.find(name);
      if (found == variables.end() && unset == Unset::IsRefused)
        throw Refusal(fmt::format("'{}' needs the variable {}, which the container has not", text, name));
      expanded += found == variables.end() ? reference : std::string_view(found->second);
      at = end;
    } else {
      expanded += '$';
    }
  }
  return expanded;
}

}  // namespace

std::string expand(std::string_view text, const Variables& variables) {
  return expanded_text(text, variables, Unset::Stays);
}

std::string expand_all(std::string_view text, const Variables& variables) {
  return expanded_text(text, variables, Unset::IsRefused);
}

}  // namespace trainyard::local
