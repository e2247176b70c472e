#include "local/manifest/yaml.h"

#include <catch2/catch.hpp>

#include "local/manifest/refusal.h"

using namespace trainyard;
using namespace trainyard::local;

namespace {

Json first(const std::string& text) {
  return read_yaml(text, "x.yaml").at(0).content;
}

}  // namespace

TEST_CASE("yaml: a plain scalar is what kubectl takes it for", "[yaml]") {
  struct Row {
    const char* text;
    Json value;
  };
  const auto row = GENERATE(values<Row>({
      {"text", "text"},
      {"12", 12},
      {"-3", -3},
      {"0x10", 16},
      {"0644", 420},
      {"0o17", 15},
      {"1_000", 1000},
      {"1.5", 1.5},
      {"1e3", 1000.0},
      {".5", 0.5},
      {"yes", true},
      {"Off", false},
      {"true", true},
      {"~", nullptr},
      {"", nullptr},
      {"null", nullptr},
      {"1.2.3", "1.2.3"},
      {"500m", "500m"},
      {"2Gi", "2Gi"},
      {"2026-11-21", "2026-11-21"},
      {"08", 8.0},
      {"-", "-"},
      {"0x", "0x"},
      {"1e", "1e"},
      {"9223372036854775808", 9223372036854775808.0},
  }));
  CAPTURE(row.text);
  CHECK(plain_value(row.text) == row.value);
}

TEST_CASE("yaml: a whole number is one however it is written, up to 64 bits", "[yaml]") {
  for (const char* const text : {"2.95e+04", "1.0", "1e3", "-4.0", "9.0e18", "08", "-0.0"}) {
    CAPTURE(text);
    CHECK(plain_value(text).is_number_integer());
  }
  CHECK(dump(plain_value("2.95e+04")) == "29500");
  CHECK(dump(plain_value("9.0e18")) == "9000000000000000000");
  for (const char* const text : {"1.5", "1e19", "9223372036854775808", "1e-3"}) {
    CAPTURE(text);
    CHECK(plain_value(text).is_number_float());
  }
}

TEST_CASE("yaml: quotes and tags make a text of anything", "[yaml]") {
  CHECK(first("a: '12'\nb: \"yes\"\nc: !!str 3\n") == Json{{"a", "12"}, {"b", "yes"}, {"c", "3"}});
}

TEST_CASE("yaml: documents, comments, empty documents, JSON", "[yaml]") {
  const auto documents = read_yaml("# nothing\n---\na: 1\n---\n---\n{\"b\": [1, {\"c\": null}]}\n", "x.yaml");
  REQUIRE(documents.size() == 2);
  CHECK(documents[0].content == Json{{"a", 1}});
  CHECK(documents[1].content == Json::parse(R"({"b": [1, {"c": null}]})"));
}

TEST_CASE("yaml: anchors and merge keys, and what stands in the object itself wins", "[yaml]") {
  const Json read =
      first("base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\na: {<<: *b, y: 9}\nc: {<<: [*b, *o]}\nd: *b\n");
  CHECK(read.at("a") == Json{{"x", 1}, {"y", 9}});
  CHECK(read.at("c") == Json{{"x", 1}, {"y", 2}, {"z", 4}});
  CHECK(read.at("d") == Json{{"x", 1}, {"y", 2}});
}

TEST_CASE("yaml: a List's items are documents of their own, each with its lines", "[yaml]") {
  const std::string kind = GENERATE("List", "PyTorchJobList");
  const auto documents = read_yaml("kind: " + kind + "\nitems:\n- kind: A\n  x: 1\n- kind: B\n", "x.yaml");
  REQUIRE(documents.size() == 2);
  CHECK(documents[0].place_of("x") == "x.yaml:4");
  CHECK(documents[1].content == Json{{"kind", "B"}});
  CHECK(documents[1].place_of("nothing.there") == "x.yaml:5");
}

TEST_CASE("yaml: the place of a field, by the path that messages write", "[yaml]") {
  const Document document =
      read_yaml("metadata:\n  labels:\n    a.b/c: d\nspec:\n  containers:\n  - name: x\n    ports:\n    - name: y\n",
                "j.yaml")
          .at(0);
  CHECK(document.place_of("spec.containers[0].ports[0].name") == "j.yaml:8");
  CHECK(document.place_of("spec.containers[0].image") == "j.yaml:6");
  CHECK(document.place_of("metadata.labels[a.b/c]") == "j.yaml:3");
  CHECK(document.place_of("status") == "j.yaml:1");
}

TEST_CASE("yaml: what is none is refused with file and line", "[yaml]") {
  struct Row {
    const char* text;
    const char* problem;
  };
  const auto row = GENERATE(values<Row>({
      {"a: 1\nb: [1,\n", "x.yaml:"},
      {"a: 1\nb: 2\na: 3\n", "x.yaml:3: 'a' is given twice"},
      {"? [a]\n: b\n", "a key must be a text"},
      {"a: {<<: 3}\n", "'<<' takes an object"},
      {"a: &a [*a]\n", "levels with its aliases resolved"},
  }));
  CAPTURE(row.text);
  CHECK_THROWS_WITH(read_yaml(row.text, "x.yaml"), Catch::Contains(row.problem));
}

TEST_CASE("yaml: aliases of aliases do not fill the memory", "[yaml]") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) text += (n ? ", " : "") + alias;
    text += "]\n";
  }
  CHECK_THROWS_AS(read_yaml(text, "x.yaml"), Refusal);
}

TEST_CASE("yaml: what is written is read back as it was", "[yaml]") {
  const Json json = {
      {"texts", {"",     "plain",   "12",        "yes",   "0x1f",      "null", "1e3",       "a: b",   "# c",
                 " led", "trail ",  "'q'",       "\"d\"", "tab\there", "ünï",  "- x",       "*a",     "&b",
                 "!c",   "%d",      "@e",        "`f",    "{",         "[",    "a\nb",      "a\nb\n", "a\n\n",
                 "\n",   " a\nb\n", "x\ty\nz\n", "~",     "<<",        "=",    "2026-11-21"}},
      {"12", 1},
      {"numbers", {1, -2, 2.5, 1e30}},
      {"empty", {{"list", Json::array()}, {"object", Json::object()}}},
      {"truths", {true, false, nullptr}},
      {"nested", {{{"a", {{"b", {1, 2}}}}}, {{"c", "d"}}}}};
  const std::string text = to_yaml(json);
  CAPTURE(text);
  CHECK(first(text) == json);
}
