#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kube/exec_plugin.h"
#include "kube/kubeconfig.h"
#include "kube/list_page.h"
#include "kube/reply.h"
#include "kube/store.h"

// What the API server, a credential plugin and a kubeconfig can hand to the operator: any bytes. The first one chooses
// who reads the rest.
namespace {

using namespace trainyard;
using namespace trainyard::kube;

struct Thing {
  std::string ns, name, uid;
};

Thing parse_thing(const Json& object) {
  return {text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name"), text_at(object, "/metadata/uid")};
}

void read_watch(std::string_view bytes) {
  Store<Thing> store(parse_thing, [](const auto& old_thing, const auto& new_thing) {
    if (!old_thing && !new_thing) __builtin_trap();
  });
  LineSplitter lines(1024);
  const auto apply = [&store](std::string_view line) {
    const auto event = parse_watch_event(line);
    if (event) store.apply(*event, {});
    if (event && event->type == WatchEvent::Type::Error) static_cast<void>(error_of_status(event->object));
    return true;
  };
  // In two pieces, as a connection may cut it anywhere.
  if (lines.feed(bytes.substr(0, bytes.size() / 2), apply))
    static_cast<void>(lines.feed(bytes.substr(bytes.size() / 2), apply));
}

void read_list(std::string_view bytes) {
  Store<Thing> store(parse_thing, [](const auto&, const auto&) {});
  const auto page = parse_list_page(bytes, [&store](const Json& item) { store.stage(item); });
  if (!page) return;
  static_cast<void>(store.begin_list(page->version, WatchTarget::IfStale::Believe));
  store.take_page();
  store.end_list();
}

void read_reply(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const int status = 400 + static_cast<unsigned char>(bytes.front());
  static_cast<void>(error_of({.status = status, .body = std::string(bytes.substr(1))}, Method::Patch));
  if (const auto json = parse_body(bytes)) static_cast<void>(is_gone(*json));
  static_cast<void>(parse_exec_credential(bytes, {.where = "w", .api_version = "v", .command = "c"}));
}

void read_kubeconfig(std::string_view bytes) {
  const Surroundings surroundings{
      .variable = [](const std::string&) { return std::nullopt; },
      .read_file = [bytes](const std::filesystem::path& path) -> std::optional<std::string> {
        return path == "/config" ? std::optional<std::string>(bytes) : std::nullopt;
      }};
  try {
    static_cast<void>(load_config({.kubeconfig = "/config"}, surroundings));
  } catch (const ConfigError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      read_watch(bytes);
      break;
    case 1:
      read_list(bytes);
      break;
    case 2:
      read_reply(bytes);
      break;
    default:
      read_kubeconfig(bytes);
  }
  return 0;
}
