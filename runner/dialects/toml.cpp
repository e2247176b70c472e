#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

// The library is compiled in here and nowhere else: no shared library to ship for one file.
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/error.h"
#include "dialects/document.h"

namespace trainyard::dialects {
namespace {

std::string text_of(const toml::node& node) {
  if (const auto* const text = node.as_string()) return text->get();
  if (const auto* const truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* const whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* const real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* const list = node.as_array()) {
    std::vector<std::string> parts;
    for (const toml::node& part : *list) parts.push_back(part.is_array() || part.is_table() ? "…" : text_of(part));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  return "a date or time";
}

struct Placed {
  uint32_t line;
  Entry entry;
};

void read_table(const config::YamlText& source, const std::string& prefix, const toml::table& table,
                std::vector<Placed>& placed) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + config::shown(name.str());
    const auto* const inner = node.as_table();
    if (inner && !inner->empty())
      read_table(source, key + ".", *inner, placed);
    else
      placed.push_back(
          {name.source().begin.line,
           {key, inner ? "{}" : text_of(node), fmt::format("{}:{}", source.name, name.source().begin.line)}});
  }
}

}  // namespace

Document read_toml(const config::YamlText& source) {
  try {
    std::vector<Placed> placed;
    read_table(source, "", toml::parse(source.text), placed);
    std::ranges::stable_sort(placed, {}, &Placed::line);  // the library has them by name
    Document document;
    for (Placed& each : placed) document.push_back(std::move(each.entry));
    return document;
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    throw InputError(fmt::format("{}:{}:{}: malformed TOML: {}", source.name, at.line, at.column,
                                 config::shown(error.description())));
  }
}

}  // namespace trainyard::dialects
