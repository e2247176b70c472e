#include "http/json_body.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard::http {
namespace {

constexpr int kDeepest = 128;

/// It is asked before parsing, since a deep tree cannot even be destroyed cheaply. Brackets inside of texts do not
/// count.
bool is_too_deep(const std::string& body) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_text) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_text = false;
      }
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest > kDeepest;
}

/// The reason without the library's own prefix: "[json.exception.parse_error.101] parse error at line 1, …".
std::string reason_of(const Json::exception& error) {
  const std::string_view text = error.what();
  const auto end = text.find("] ");
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

}  // namespace

Json parse_body(const std::string& body) {
  if (body.empty()) throw BadBody("the body is empty; JSON is expected");
  if (is_too_deep(body)) throw BadBody(fmt::format("the body is nested deeper than {} levels", kDeepest));
  try {
    return Json::parse(body);
  } catch (const Json::exception& error) {
    throw BadBody("the body is no JSON: " + reason_of(error));
  }
}

}  // namespace trainyard::http
