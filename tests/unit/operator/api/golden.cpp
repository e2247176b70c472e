#include "unit/operator/api/golden.h"

#include <yaml-cpp/yaml.h>

#include <fstream>

#include "support/support.h"

namespace trainyard::api {
namespace {

Json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // in quotes
  if (text == "true" || text == "false") return text == "true";
  const bool is_number = !text.empty() && text.find_first_not_of("-0123456789.") == text.npos && text != "-";
  const Json number = is_number ? Json::parse(text, nullptr, false) : Json();
  return number.is_number() ? number : Json(text);
}

Json json_of(const YAML::Node& node) {
  if (node.IsNull()) return nullptr;
  if (node.IsScalar()) return scalar(node);
  Json json = node.IsMap() ? Json::object() : Json::array();
  for (const auto& entry : node)
    if (node.IsMap())
      json[entry.first.Scalar()] = json_of(entry.second);
    else
      json.push_back(json_of(entry));
  return json;
}

Json patched(Json object, const Json& patch) {
  object.merge_patch(patch);
  return object;
}

}  // namespace

std::vector<GoldenRow> golden_rows(const std::string& name) {
  const auto data = test::test_data();
  const auto case_file = data.parent_path() / "conformance/cases" / (name + ".yaml");
  std::ifstream recorded_file(data / "pytorchjob-golden" / (name + ".json"));
  if (data.empty() || !recorded_file || !exists(case_file)) return {};
  const Json recorded = Json::parse(recorded_file).at("snapshots").at("table");
  const Json table = json_of(YAML::LoadFile(case_file.string()));
  std::vector<GoldenRow> rows;
  for (const Json& row : table.at("rows")) {
    const std::string row_name = row.at("name");
    rows.push_back({row_name, patched(table.at("base"), row.value("patch", Json::object())),
                    row.contains("old") ? patched(table.at("base"), row.at("old")) : Json(), recorded.at(row_name)});
  }
  return rows;
}

}  // namespace trainyard::api
