#pragma once

#include <map>
#include <string>
#include <string_view>

namespace trainyard::local {

using Variables = std::map<std::string, std::string>;

/// `$(NAME)` becomes the variable's value, and stays as it is where there is none; `$$` is one `$`, so `$$(NAME)` is
/// the text "$(NAME)". Kubernetes' rules for command, args and env.
[[nodiscard]] std::string expand(std::string_view text, const Variables& variables);
/// The same for subPathExpr, where every variable has to be there. Throws Refusal, naming one that is not.
[[nodiscard]] std::string expand_all(std::string_view text, const Variables& variables);

}  // namespace trainyard::local
