#include "kube/list_page.h"

#include "kube/object_id.h"

namespace trainyard::kube {

std::optional<ListPage> parse_list_page(std::string_view body, const std::function<void(const Json&)>& on_item) {
  ListPage page;
  std::string key;  // of the root object, whose value is being read
  const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) key = parsed.get<std::string>();
    if (event != Json::parse_event_t::object_end) return true;
    if (depth == 1 && key == "metadata") {
      page.version = parse_version(text_at(parsed, "/resourceVersion"));
      page.continue_token = text_at(parsed, "/continue");
    }
    if (depth != 2 || key != "items") return true;
    on_item(parsed);
    return false;  // not kept
  };
  const Json rest = Json::parse(body, look, /*allow_exceptions=*/false);
  if (!rest.is_object() || page.version == 0 || !rest.contains("items")) return std::nullopt;
  return page;
}

}  // namespace trainyard::kube
