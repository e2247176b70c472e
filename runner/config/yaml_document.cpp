#include "config/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/error.h"

namespace trainyard::config {
namespace {

/// Remembers where a document begins and nothing else.
class DocumentStart : public YAML::EventHandler {
 public:
  int line = 0;

  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// YAML::LoadAll would tell, but it never ends on text such as `!t,a`, of which the parser takes nothing.
std::optional<int> line_of_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart first, second;
  if (!parser.HandleNextDocument(first) || !parser.HandleNextDocument(second)) return std::nullopt;
  return second.line;
}

[[noreturn]] void fail(const YamlText& source, ptrdiff_t line, const std::string& what) {
  throw InputError(fmt::format("{}:{}: {}", source.name, line + 1, what));
}

}  // namespace

YAML::Node parse_yaml(const YamlText& source) {
  // yaml-cpp takes EOT (0x04) for its own mark of the end, and would read half of such a file without a word.
  if (const auto at = first_unreadable(source.text))
    fail(source, std::count(source.text.begin(), source.text.begin() + static_cast<ptrdiff_t>(*at), '\n'),
         fmt::format("byte 0x{:02x} is no UTF-8 text", static_cast<unsigned char>(source.text[*at])));
  try {
    if (const auto line = line_of_second_document(source.text))
      fail(source, *line, "a second document begins here; one file holds one");
    return YAML::Load(source.text);
  } catch (const YAML::Exception& error) {
    throw InputError(fmt::format("{}:{}:{}: malformed YAML: {}", source.name, error.mark.line + 1,
                                 error.mark.column + 1, shown(error.msg)));
  }
}

}  // namespace trainyard::config
