#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "api/schema_check.h"
#include "api/validate.h"
#include "support/support.h"
#include "unit/operator/api/golden.h"

namespace trainyard::api {
namespace {

/// Where the contract asks for more than the reference does, with what ours says.
const std::map<std::string, std::string> kOurOwn = {
    {"elastic-min-above-max", "spec.elasticPolicy.minReplicas: Invalid value: 5"},
    {"name-63", "metadata.name: Invalid value"},  // its services' names would be longer than 63
    {"update-managed-by-set", "spec.runPolicy.managedBy: Invalid value: \"kueue.x-k8s.io/multikueue\""},
    {"update-managed-by-changed", "spec.runPolicy.managedBy: Invalid value: \"kueue.x-k8s.io/multikueue\""},
    {"update-managed-by-removed", "spec.runPolicy.managedBy: Invalid value: null"},
};

Json sorted_messages(const Verdict& verdict) {
  std::vector<std::string> messages;
  for (const auto& [path, message] : verdict.violations) messages.push_back(path + ": " + message);
  std::sort(messages.begin(), messages.end());
  messages.erase(std::unique(messages.begin(), messages.end()), messages.end());
  return messages;
}

/// Behind a name that is refused ours has one that would do.
Json without_suggestions(Json messages) {
  for (Json& message : messages) {
    std::string text = message;
    if (text.starts_with("metadata.name: ") && text.ends_with("\" would do")) text.resize(text.rfind("; \""));
    message = text;
  }
  return messages;
}

/// The recorded path "spec.pytorchReplicaSpecs[Master].template" as we write it.
std::string with_dots(std::string path) {
  for (const std::string key : {"Master", "Worker"})
    if (const size_t at = path.find("[" + key + "]"); at != path.npos) path.replace(at, key.size() + 2, "." + key);
  return path;
}

}  // namespace

TEST_CASE("validate: every row of the conformance kit's table has the reference's verdict and words", "[api]") {
  const auto rows = golden_rows("webhook");
  if (rows.empty()) return test::skip("no recordings of the reference");
  for (const GoldenRow& row : rows) {
    INFO(row.name);
    const Verdict verdict = validate(row.object, row.old_object.is_null() ? nullptr : &row.old_object);
    if (const auto own = kOurOwn.find(row.name); own != kOurOwn.end()) {
      CHECK(row.recorded.at("allowed") == true);
      CHECK(verdict.message().starts_with(own->second));
      continue;
    }
    CHECK(verdict.is_allowed() == row.recorded.at("allowed").get<bool>());
    CHECK(without_suggestions(sorted_messages(verdict)) == row.recorded.value("messages", Json::array()));
    if (row.name == "nproc-word") {  // ours warns of it
      CHECK(verdict.warnings.size() == 1);
      continue;
    }
    CHECK(Json(verdict.warnings) == row.recorded.value("warnings", Json::array()));
  }
}

TEST_CASE("validate_schema: every row of the conformance kit's table is accepted or refused as by the API server",
          "[api]") {
  const auto rows = golden_rows("schema");
  if (rows.empty()) return test::skip("no recordings of the reference");
  for (const GoldenRow& row : rows) {
    const Verdict verdict = validate_schema(row.object);
    INFO(row.name << ": " << verdict.message());
    CHECK(verdict.is_allowed() == row.recorded.at("accepted").get<bool>());
    if (!row.recorded.contains("causes")) continue;
    REQUIRE(verdict.violations.size() == row.recorded.at("causes").size());
    CHECK(verdict.violations[0].path == with_dots(row.recorded.at("causes")[0].at("field")));
  }
}

}  // namespace trainyard::api
