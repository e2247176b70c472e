#include "local/expand.h"

namespace trainyard::local {

std::string expand(std::string_view text, const Variables& variables) {
  std::string expanded;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$' || at + 1 == text.size()) {
      expanded += text[at];
    } else if (text[at + 1] == '$') {
      expanded += '$';
      ++at;
    } else if (const size_t end = text.find(')', at); text[at + 1] == '(' && end != std::string_view::npos) {
      const std::string_view reference = text.substr(at, end + 1 - at);
      const auto found = variables.find(std::string(reference.substr(2, reference.size() - 3)));
      expanded += found == variables.end() ? reference : std::string_view(found->second);
      at = end;
    } else {
      expanded += '$';
    }
  }
  return expanded;
}

}  // namespace trainyard::local
