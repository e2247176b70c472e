#include <curl/curl.h>

#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>

#include "http/listener.h"
#include "http/server.h"
#include "http_client.h"

using namespace trainyard;
using namespace trainyard::http;
using namespace trainyard::test;

namespace {

using Curl = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

/// The answer's body, or libcurl's word for what went wrong.
std::string fetch(CURL* curl, const Server& server, const std::string& ca) {
  std::string body;
  curl_blob blob{const_cast<char*>(ca.data()), ca.size(), CURL_BLOB_COPY};
  curl_easy_setopt(curl, CURLOPT_URL, ("https://127.0.0.1:" + std::to_string(server.port()) + "/x").c_str());
  curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(
      curl, CURLOPT_WRITEFUNCTION, +[](char* data, size_t, size_t size, void* to) {
        static_cast<std::string*>(to)->append(data, size);
        return size;
      });
  const CURLcode code = curl_easy_perform(curl);
  return code == CURLE_OK ? body : curl_easy_strerror(code);
}

std::string fetch(const Server& server, const std::string& ca) {
  const Curl curl(curl_easy_init(), &curl_easy_cleanup);
  return fetch(curl.get(), server, ca);
}

Response hello(const Request& request) {
  return {.body = request.body.empty() ? "hello" : std::to_string(request.body.size()) + " bytes"};
}

}  // namespace

TEST_CASE("tls: a client that trusts the certificate is answered, another is not", "[http]") {
  const SelfSigned mine = make_self_signed(1), other = make_self_signed(2);
  const Server server(listen_on("127.0.0.1:0", "--test"), hello, {}, Identity{mine.certificate, mine.key});
  CHECK(fetch(server, mine.certificate) == "hello");
  CHECK_THAT(fetch(server, other.certificate), Catch::Contains("peer certificate"));
  CHECK(exchange(server.port(), get("/x")).find("hello") == std::string::npos);  // plain HTTP
  CHECK(fetch(server, mine.certificate) == "hello");
}

TEST_CASE("tls: a body of megabytes comes whole", "[http]") {
  const SelfSigned mine = make_self_signed(1);
  const Server server(listen_on("127.0.0.1:0", "--test"), hello, {.body_bytes = 4 << 20},
                      Identity{mine.certificate, mine.key});
  const Curl curl(curl_easy_init(), &curl_easy_cleanup);
  const std::string body(3 << 20, 'x');
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
  for (int i = 0; i < 3; ++i) CHECK(fetch(curl.get(), server, mine.certificate) == "3145728 bytes");
}

TEST_CASE("tls: a new certificate is shown to new connections while an old one goes on", "[http]") {
  const SelfSigned first = make_self_signed(1), second = make_self_signed(2);
  Server server(listen_on("127.0.0.1:0", "--test"), hello, {}, Identity{first.certificate, first.key});
  const Curl open(curl_easy_init(), &curl_easy_cleanup);
  CHECK(fetch(open.get(), server, first.certificate) == "hello");
  server.set_identity({second.certificate, second.key});
  long connects = -1;
  CHECK(fetch(open.get(), server, first.certificate) == "hello");
  curl_easy_getinfo(open.get(), CURLINFO_NUM_CONNECTS, &connects);
  CHECK(connects == 0);  // on the connection from before, which then ends
  CHECK(fetch(server, second.certificate) == "hello");
  CHECK_THAT(fetch(open.get(), server, first.certificate), Catch::Contains("peer certificate"));
}

TEST_CASE("tls: connections that wait to be taken live through a change of the certificate", "[http]") {
  const SelfSigned first = make_self_signed(1), second = make_self_signed(2);
  Server server(listen_on("127.0.0.1:0", "--test"), hello, {}, Identity{first.certificate, first.key});
  const std::string both = first.certificate + second.certificate;
  for (int i = 0; i < 20; ++i) {
    const SelfSigned& next = i % 2 == 0 ? second : first;
    server.set_identity({next.certificate, next.key});
    CHECK(fetch(server, both) == "hello");
  }
}

TEST_CASE("tls: an identity of no use is refused, and the one before stays", "[http]") {
  const SelfSigned first = make_self_signed(1), second = make_self_signed(2);
  Server server(listen_on("127.0.0.1:0", "--test"), hello, {}, Identity{first.certificate, first.key});
  CHECK_THROWS_AS(server.set_identity({second.certificate, first.key}), std::runtime_error);
  CHECK_THROWS_AS(server.set_identity({"no certificate", "no key"}), std::runtime_error);
  CHECK(fetch(server, first.certificate) == "hello");
}
