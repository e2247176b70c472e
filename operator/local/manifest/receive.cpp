#include "local/manifest/receive.h"

#include "api/crd.h"
#include "api/job.h"
#include "api/schema_check.h"
#include "api/schema_defaults.h"
#include "local/ids.h"

namespace trainyard::local {
namespace {

constexpr size_t kLongestBase = 58;  // a generated name has 63 characters at most

bool is_empty(const Json& metadata, const char* field) {
  const auto found = metadata.find(field);
  return found == metadata.end() || *found == "";
}

void give_name(Document& document, Json& metadata) {
  if (!is_empty(metadata, "name") || text_at(metadata, "/generateName").empty()) return;
  metadata["name"] = text_at(metadata, "/generateName").substr(0, kLongestBase) + random_name_end();
  if (const auto line = document.lines.find("/metadata/generateName"); line != document.lines.end())
    document.lines["/metadata/name"] = line->second;
}

void receive_metadata(Document& document, Json& metadata) {
  api::apply_defaults(metadata, api::metadata_schema());
  give_name(document, metadata);
  if (is_empty(metadata, "namespace")) metadata["namespace"] = "default";
  for (const char* const field : {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"})
    metadata.erase(field);
}

void drop_status(Json& job) {
  static const Json& schema = api::job_schema().at("properties").at("status");
  const Json* const status = find(job, "/status");
  if (status && api::check_field_names(*status, schema, "status").is_allowed()) job.erase("status");
}

}  // namespace

void receive(Document& document) {
  Json& object = document.content;
  if (object_at(object, "/metadata")) receive_metadata(document, object["metadata"]);
  if (text_at(object, "/kind") != api::kKind) return;
  api::apply_defaults(object, api::job_schema());
  drop_status(object);
}

}  // namespace trainyard::local
