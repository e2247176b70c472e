#include "api/crd.h"

#include <yaml-cpp/yaml.h>

#include <charconv>

namespace trainyard::api {

extern const char* const kCrdText;  // crd_text.cpp.in

namespace {

/// The few kinds of scalars that our own file has.
Json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // in quotes
  if (text == "true") return true;
  if (text == "false") return false;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? Json(number) : Json(text);
}

Json json_of(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = json_of(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& item : node) list.push_back(json_of(item));
    return list;
  }
  return scalar(node);
}

}  // namespace

const Json& crd() {
  static const Json parsed = json_of(YAML::Load(kCrdText));
  return parsed;
}

const Json& job_schema() {
  return crd().at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema");
}

}  // namespace trainyard::api
