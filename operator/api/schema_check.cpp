#include "api/schema_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "api/crd.h"
#include "api/field.h"
#include "api/job.h"
#include "api/misspelling.h"
#include "api/pod_field_rules.h"
#include "api/schema_defaults.h"
#include "base/text.h"

namespace trainyard::api {
namespace {

constexpr const char* kIntOrString = "x-kubernetes-int-or-string";
constexpr const char* kPreserve = "x-kubernetes-preserve-unknown-fields";
constexpr const char* kMapKeys = "x-kubernetes-list-map-keys";

/// What a schema's type is called in a message.
std::string allowed_by(const std::string& type) {
  if (type == "integer") return "a whole number";
  if (type == "number") return "a number";
  if (type == "boolean") return "true or false";
  if (type == "array") return "a list";
  if (type == "object") return "an object";
  return "a text";
}

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "integer") return whole_number_of(value).has_value();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return value.is_string();
}

class Checker {
 public:
  explicit Checker(Verdict& verdict) : verdict_(verdict) {}

  void check(const Json& value, const Json& schema, const std::string& path) {
    if (value.is_null() && flag_at(schema, "/nullable")) return;
    if (flag_at(schema, std::string("/") + kIntOrString)) {
      if (!value.is_string() && !is_of_type(value, "integer"))
        return refuse(path, value, "a whole number or a text (in quotes where it has a fraction)");
    } else if (const std::string type = text_at(schema, "/type"); !type.empty() && !is_of_type(value, type)) {
      return refuse_type(path, value, type);
    }
    check_scalar(value, schema, path);
    if (value.is_array()) check_list(value, schema, path);
    if (value.is_object()) check_object(value, schema, path);
  }

  void check_names(const Json& value, const Json& schema, const std::string& path) {
    if (const Json* const items = object_at(schema, "/items"); items && value.is_array())
      for (size_t i = 0; i < value.size(); ++i) check_names(value[i], *items, fmt::format("{}[{}]", path, i));
    if (!value.is_object()) return;
    for (const auto& [key, inner] : value.items())
      if (const Json* const known = schema_of_field(key, schema))
        check_names(inner, *known, below(path, key));
      else
        check_unknown(key, schema, path);
  }

 private:
  /// Nobody reads more, and a hostile object could have millions.
  static constexpr size_t kMostFindings = 100;

  void add(const std::string& path, std::string message) {
    if (verdict_.violations.size() < kMostFindings) verdict_.violations.push_back({path, std::move(message)});
  }
  void refuse(const std::string& path, const Json& value, std::string_view allowed) {
    add(path, fmt::format("must be {}, but is {}", allowed, shown(value)));
  }

  /// YAML reads 4 and true as texts only where they are in quotes.
  void refuse_type(const std::string& path, const Json& value, const std::string& type) {
    const bool lacks_quotes = type == "string" && (value.is_number() || value.is_boolean());
    add(path, fmt::format("must be {}, but is {}{}", allowed_by(type), shown(value),
                          lacks_quotes ? fmt::format("; write \"{}\"", shown(value)) : ""));
  }

  void check_scalar(const Json& value, const Json& schema, const std::string& path) {
    if (const Json* const listed = list_at(schema, "/enum");
        listed && std::ranges::find(*listed, value) == listed->end())
      refuse(path, value, fmt::format("one of {}", fmt::join(texts_of(*listed), ", ")));
    if (const Json* const least = find(schema, "/minimum"); least && value.is_number() && value < *least)
      refuse(path, value, fmt::format("at least {}", dump(*least)));
    if (const Json* const most = find(schema, "/maximum"); most && value.is_number() && value > *most)
      refuse(path, value, fmt::format("at most {}", dump(*most)));
    if (const std::string pattern = text_at(schema, "/pattern"); !pattern.empty() && value.is_string())
      check_pattern(value, pattern, path);
  }

  void check_pattern(const Json& value, const std::string& pattern, const std::string& path) {
    constexpr size_t kLongest = 1000;  // std::regex goes a level deeper for each character
    const std::string& text = value.get_ref<const std::string&>();
    if (text.size() > kLongest || !std::regex_match(text, compiled(pattern)))
      refuse(path, value,
             is_for_quantities(pattern) ? R"(a quantity such as 2, "500m" or "16Gi")" : "of the form " + pattern);
  }
  const std::regex& compiled(const std::string& pattern) {
    const auto [found, is_new] = patterns_.try_emplace(pattern);
    if (is_new) found->second.assign(pattern);
    return found->second;
  }
  static bool is_for_quantities(const std::string& pattern) { return pattern.find("[KMGTPE]i") != pattern.npos; }

  static std::vector<std::string> texts_of(const Json& values) {
    std::vector<std::string> texts;
    for (const Json& value : values) texts.push_back(shown(value));
    return texts;
  }

  void check_list(const Json& list, const Json& schema, const std::string& path) {
    const Json* const items = object_at(schema, "/items");
    if (!items) return;
    for (size_t i = 0; i < list.size(); ++i) check(list[i], *items, fmt::format("{}[{}]", path, i));
    if (const Json* const keys = list_at(schema, std::string("/") + kMapKeys)) check_unique(list, *items, *keys, path);
  }

  void check_unique(const Json& list, const Json& items, const Json& keys, const std::string& path) {
    std::set<Json> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      Json identity = Json::object();
      for (const std::string key : keys) {
        const Json* const given = find(list[i], "/" + key);
        const Json* const otherwise = find(items, fmt::format("/properties/{}/default", key));
        if (given || otherwise) identity[key] = given ? *given : *otherwise;
      }
      if (!seen.insert(identity).second)
        add(fmt::format("{}[{}]", path, i),
            fmt::format("is there twice: an entry with {} stands above", dump(identity)));
    }
  }

  void check_object(const Json& object, const Json& schema, const std::string& path) {
    if (const Json* const required = list_at(schema, "/required"))
      for (const std::string key : *required)
        if (!object.contains(key)) add(below(path, key), "is missing, but required");
    for (const auto& [key, value] : object.items())
      if (const Json* const known = schema_of_field(key, schema))
        check(value, *known, below(path, key));
      else
        check_unknown(key, schema, path);
  }

  void check_unknown(const std::string& key, const Json& schema, const std::string& path) {
    const Json* const properties = object_at(schema, "/properties");
    if (!properties || verdict_.violations.size() + verdict_.warnings.size() >= kMostFindings) return;
    std::vector<std::string> known;
    for (const auto& [name, field] : properties->items()) known.push_back(name);
    const std::string shown_path = below(path, shown_key(key));
    const bool passes_unknown = flag_at(schema, std::string("/") + kPreserve);
    auto meant = meant_field(key, known);
    if (!meant && !passes_unknown) meant = nearest(key, known);  // it is refused in any case
    if (meant)
      add(shown_path, fmt::format("is no field of this resource; did you mean {}?", *meant));
    else if (passes_unknown)
      verdict_.warnings.push_back(
          fmt::format("{}: is no field that is known here; it is passed on as it is", shown_path));
    else
      add(shown_path, fmt::format("is no field of this resource; known are {}", fmt::join(known, ", ")));
  }

  static std::string shown_key(const std::string& key) {
    const std::string text = shown(key);
    return text.substr(1, text.size() - 2);
  }
  static std::string below(const std::string& path, const std::string& key) {
    return path.empty() ? key : fmt::format("{}.{}", path, key);
  }

  Verdict& verdict_;
  std::map<std::string, std::regex> patterns_;
};

bool is_given(const Json& object, std::string_view pointer) {
  const Json* const found = find(object, pointer);
  return found && !found->is_null() && *found != "";
}

/// The API server checks these before it looks at any schema.
void check_identity(const Json& job, Verdict& verdict) {
  const std::pair<const char*, const char*> kExpected[] = {{"apiVersion", kApiVersion}, {"kind", kKind}};
  for (const auto& [field, expected] : kExpected)
    if (const Json* const given = find(job, std::string("/") + field); !given || *given != expected)
      verdict.violations.push_back(
          {field, fmt::format("must be {}, but is {}", expected, given ? shown(*given) : "missing")});
  if (!is_given(job, "/metadata/name") && !is_given(job, "/metadata/generateName"))
    verdict.violations.push_back({"metadata.name", "is missing, but required"});
}

}  // namespace

Verdict check_schema(const Json& value, const Json& schema, const std::string& path) {
  Verdict verdict;
  Checker(verdict).check(value, schema, path);
  return verdict;
}

Verdict check_field_names(const Json& value, const Json& schema, const std::string& path) {
  Verdict verdict;
  Checker(verdict).check_names(value, schema, path);
  return verdict;
}

Verdict check_metadata(const Json& object) {
  Verdict verdict;
  if (const Json* const metadata = find(object, "/metadata"))
    Checker(verdict).check(*metadata, metadata_schema(), "metadata");
  if (const Json* const metadata = object_at(object, "/metadata"); metadata && verdict.is_allowed())
    check_labels(*metadata, "metadata", [&](const std::string& path, const std::string& message) {
      verdict.violations.push_back({path, message});
    });
  return verdict;
}

Verdict validate_schema(const Json& job) {
  if (!job.is_object()) return {{{"", fmt::format("a PyTorchJob must be an object, but is {}", shown(job))}}, {}};
  Verdict verdict;
  check_identity(job, verdict);
  const Verdict metadata = check_metadata(job);
  std::ranges::copy(metadata.violations, std::back_inserter(verdict.violations));
  Checker(verdict).check(job, job_schema(), "");
  return verdict;
}

}  // namespace trainyard::api
