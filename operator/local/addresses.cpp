#include "local/addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cctype>
#include <map>

#include "api/ports.h"
#include "common/unique_fd.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

/// A host's name begins a word, and stands in no path: "//" introduces one, "/" does not.
bool may_begin_at(std::string_view text, size_t at) {
  if (at == 0) return true;
  const char before = text[at - 1];
  if (before == '/') return at >= 2 && text[at - 2] == '/';
  return !is_word(before) && before != '.';
}

/// How long the name of a replica's service is that `text` begins with; 0 where it begins with none.
size_t name_size(std::string_view text, const std::string& job) {
  for (const std::string_view type : {"-master-", "-worker-"}) {
    if (!text.starts_with(job) || !text.substr(job.size()).starts_with(type)) continue;
    size_t end = job.size() + type.size();
    const size_t digits = end;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end > digits) return end;
  }
  return 0;
}

void skip(std::string_view& text, std::string_view suffix) {
  if (text.starts_with(suffix) && (text.size() == suffix.size() || !is_word(text[suffix.size()])))
    text.remove_prefix(suffix.size());
}

/// Binds to `port` of the loopback, 0 being any that is free; the port, none where it is taken.
std::optional<int> bind_port(int port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;  // what waits in TIME_WAIT is free to a server
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);  // a server on any address would take it
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof address;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return std::nullopt;
  return ntohs(address.sin_port);
}

/// A port that is free and no other job's: `wanted` where it is.
int free_port(int wanted, std::set<int>& taken) {
  for (std::optional<int> port = bind_port(wanted);; port = bind_port(0)) {
    if (port && taken.insert(*port).second) return *port;
    if (taken.size() > 10'000) throw Refusal("there is no free TCP port on this machine");
  }
}

/// The port that a replica's ranks meet at; null where the template gives none.
Json* meeting_port(api::ReplicaSpec& replica) {
  for (Json& container : replica.pod_template["spec"]["containers"]) {
    if (text_at(container, "/name") != api::kContainerName || !container.contains("ports")) continue;
    Json& ports = container["ports"];
    if (const auto place = api::meeting_port(ports); place && int_at(ports[*place], "/containerPort"))
      return &ports[*place];
  }
  return nullptr;
}

}  // namespace

std::string with_loopback(std::string_view text, const api::Job& job) {
  std::string rewritten;
  for (size_t at = 0; at < text.size();) {
    const size_t size = may_begin_at(text, at) ? name_size(text.substr(at), job.name) : 0;
    std::string_view rest = text.substr(at + size);
    if (size == 0 || (!rest.empty() && is_word(rest.front()))) {
      rewritten += text[at++];
      continue;
    }
    for (const std::string& suffix : {"." + job.ns, std::string(".svc"), std::string(".cluster.local")})
      skip(rest, suffix);
    const bool goes_on = rest.size() > 1 && rest[0] == '.' && is_word(rest[1]);
    rewritten += goes_on ? text.substr(at, size) : std::string_view(kLoopback);
    at = goes_on ? at + size : text.size() - rest.size();
  }
  return rewritten;
}

std::vector<std::string> take_free_ports(api::Job& job, std::set<int>& taken) {
  std::vector<std::string> changes;
  const auto free_or_say = [&](int wanted) {
    const int port = free_port(wanted, taken);
    if (port != wanted) changes.push_back(fmt::format("port {} is in use here; the ranks meet at {}", wanted, port));
    return port;
  };
  std::map<int, int> chosen;
  for (auto& [type, replica] : job.spec.replicas) {
    Json* const port = meeting_port(replica);
    if (!port) continue;
    const int wanted = port->at("containerPort").get<int>();
    if (!chosen.contains(wanted)) chosen[wanted] = free_or_say(wanted);
    (*port)["name"] = api::kPortName;  // under another name it is found by its number, which may be another now
    (*port)["containerPort"] = chosen[wanted];
  }
  if (job.spec.elastic && job.spec.elastic->rdzv_port) {
    int& wanted = *job.spec.elastic->rdzv_port;
    wanted = chosen.contains(wanted) ? chosen[wanted] : free_or_say(wanted);
  }
  return changes;
}

}  // namespace trainyard::local
