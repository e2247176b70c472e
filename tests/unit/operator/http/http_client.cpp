#include "http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <system_error>

namespace trainyard::test {
namespace {

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(memory);
  return text;
}

}  // namespace

UniqueFd connect_to(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd.valid() || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::system_category(), "connect");
  return fd;
}

void send_text(const UniqueFd& connection, const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = ::send(connection.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;  // the server has had enough: what it answered tells
    sent += static_cast<size_t>(n);
  }
}

std::string receive(const UniqueFd& connection, const std::string& enough) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  std::string text;
  std::array<char, 65536> buffer;
  while (enough.empty() || text.find(enough) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll{connection.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&poll, 1, static_cast<int>(left)) != 1) return text + "(nothing more came)";
    const ssize_t n = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return text;
}

std::string exchange(uint16_t port, const std::string& request) {
  const UniqueFd connection = connect_to(port);
  send_text(connection, request);
  return receive(connection);
}

SelfSigned make_self_signed(long serial) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  X509_EXTENSION* const names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(made.get(), names, -1);
  X509_EXTENSION_free(names);
  X509_sign(made.get(), key.get(), EVP_sha256());
  BIO* const certificate = BIO_new(BIO_s_mem());
  BIO* const private_key = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate, made.get());
  PEM_write_bio_PrivateKey(private_key, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {text_of(certificate), text_of(private_key)};
}

}  // namespace trainyard::test
