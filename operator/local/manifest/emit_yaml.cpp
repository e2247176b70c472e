#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>

#include "local/manifest/yaml.h"

namespace trainyard::local {
namespace {

bool has_control_characters(const std::string& text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; });
}

/// YAML 1.1 takes it for a timestamp.
bool looks_like_a_date(const std::string& text) {
  return text.size() >= 8 && text[4] == '-' && std::isdigit(static_cast<unsigned char>(text[0]));
}

/// A text that reads as one: in quotes where it would else be a number, a truth or nothing.
void emit_text(YAML::Emitter& out, const std::string& text) {
  const bool is_block = text.find('\n') != std::string::npos && text.back() == '\n' && text.front() != ' ' &&
                        text.front() != '\n' && !text.ends_with("\n\n") && !has_control_characters(text);
  if (is_block) {  // which ends with a line break by itself
    out << YAML::Literal << text.substr(0, text.size() - 1);
    return;
  }
  if (!plain_value(text).is_string() || looks_like_a_date(text) || text == "<<" || text.find('\n') != std::string::npos)
    out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const Json& json) {
  if (json.is_object()) {
    if (json.empty()) out << YAML::Flow;
    out << YAML::BeginMap;
    for (const auto& [key, value] : json.items()) {
      out << YAML::Key;
      emit_text(out, key);
      out << YAML::Value;
      emit(out, value);
    }
    out << YAML::EndMap;
  } else if (json.is_array()) {
    if (json.empty()) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const Json& item : json) emit(out, item);
    out << YAML::EndSeq;
  } else if (json.is_string()) {
    emit_text(out, json.get_ref<const std::string&>());
  } else if (json.is_null()) {
    out << YAML::Null;
  } else {
    out << json.dump();
  }
}

}  // namespace

std::string to_yaml(const Json& json) {
  YAML::Emitter out;
  emit(out, json);
  return std::string(out.c_str(), out.size()) + "\n";
}

}  // namespace trainyard::local
