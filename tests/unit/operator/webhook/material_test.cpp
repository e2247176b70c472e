#include "webhook/material.h"

#include <catch2/catch.hpp>

#include "base/base64.h"

using namespace trainyard;
using namespace trainyard::webhook;

TEST_CASE("material: what is put into a Secret is read again, and all else stays", "[certificates]") {
  const Material material{"ca", "ca key", {"leaf", "leaf key"}, std::string("\0\xff", 2)};
  const Json secret = {{"metadata", {{"resourceVersion", "7"}}}, {"data", {{"other", "eA=="}}}};
  const Json with = with_material(secret, material);
  CHECK(material_of(with) == material);
  CHECK(text_at(with, "/data/other") == "eA==");
  CHECK(text_at(with, "/metadata/resourceVersion") == "7");
  CHECK_FALSE(with_material(Json::object(), {.token_key = "k"})["data"].contains("ca.key"));
}

TEST_CASE("material: what is missing or no base64 is empty", "[certificates]") {
  CHECK(material_of(Json::object()) == Material{});
  CHECK(material_of(nullptr) == Material{});
  CHECK(material_of({{"data", nullptr}}) == Material{});
  CHECK(material_of({{"data", {{"ca.crt", "%%%"}, {"tls.key", 7}}}}) == Material{});
}

TEST_CASE("material: the names of a service", "[certificates]") {
  const auto names = names_of_service("op", "ns");
  CHECK(names[0] == "op.ns.svc");
  CHECK(std::ranges::count(names, "op.ns.svc.cluster.local") == 1);
  CHECK(std::ranges::count(names, "localhost") == 1);
}

TEST_CASE("publication: only webhooks that call this service get the bundle, guarded by the version",
          "[certificates]") {
  const auto webhook = [](const char* name, const char* service, const char* ns) {
    return Json{{"name", name}, {"clientConfig", {{"service", {{"name", service}, {"namespace", ns}}}}}};
  };
  Json config = {{"metadata", {{"resourceVersion", "41"}}},
                 {"webhooks", {webhook("a", "op", "ns"), webhook("b", "op", "other"), webhook("c", "op", "ns")}}};
  const Json patch = publication(config, "op", "ns", "bundle");
  CHECK(text_at(patch, "/metadata/resourceVersion") == "41");
  CHECK(text_at(patch, "/webhooks/0/clientConfig/caBundle") == base64_encoded("bundle"));
  CHECK(find(patch, "/webhooks/1/clientConfig/caBundle") == nullptr);
  CHECK(text_at(patch, "/webhooks/2/clientConfig/caBundle") == base64_encoded("bundle"));
  CHECK(text_at(patch, "/webhooks/2/name") == "c");

  config.merge_patch(patch);
  CHECK(publication(config, "op", "ns", "bundle").is_null());
  CHECK_FALSE(publication(config, "op", "ns", "another").is_null());
}

TEST_CASE("publication: a configuration without our service is left alone", "[certificates]") {
  CHECK(publication(Json::object(), "op", "ns", "bundle").is_null());
  CHECK(publication({{"webhooks", Json::array()}}, "op", "ns", "bundle").is_null());
  CHECK(publication({{"webhooks", {{{"clientConfig", {{"url", "https://x"}}}}}}}, "op", "ns", "bundle").is_null());
}
