#include "kube/http.h"

namespace trainyard::kube {

const char* name_of(Method method) {
  switch (method) {
    case Method::Get:
      return "GET";
    case Method::Post:
      return "POST";
    case Method::Put:
      return "PUT";
    case Method::Patch:
      return "PATCH";
    case Method::Delete:
      return "DELETE";
  }
  return "GET";
}

std::string_view host_of(std::string_view server) {
  if (const auto scheme = server.find("://"); scheme != server.npos) server.remove_prefix(scheme + 3);
  if (server.starts_with('[')) return server.substr(0, server.find(']') + 1);
  return server.substr(0, server.find_first_of(":/"));
}

bool is_loopback(std::string_view host) {
  const bool is_ipv4 = host.find_first_not_of("0123456789.") == host.npos;
  return host == "localhost" || host == "[::1]" || (is_ipv4 && host.starts_with("127."));
}

}  // namespace trainyard::kube
