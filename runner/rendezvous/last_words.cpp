#include "rendezvous/last_words.h"

#include <nlohmann/json.hpp>

namespace trainyard::rendezvous {
namespace {

using nlohmann::json;

constexpr const char* kKey = "last words";
constexpr size_t kMostText = 64 << 10;

}  // namespace

void leave_last_words(Store& store, const LastWords& words) {
  const json said{{"rank", words.rank},
                  {"host", words.host},
                  {"text", words.text.substr(0, kMostText)},
                  {"code", static_cast<int>(words.code)}};
  // A system's message may hold bytes that are no UTF-8, in a path for example.
  store.compare_and_set(kKey, std::nullopt, said.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::optional<LastWords> last_words_in(Store& store) {
  const auto text = store.get(kKey);
  if (!text) return std::nullopt;
  const json said = json::parse(*text);
  return LastWords{said.at("rank"), said.at("host"), said.at("text"),
                   static_cast<ExitCode>(said.value("code", static_cast<int>(ExitCode::Input)))};
}

}  // namespace trainyard::rendezvous
