#include "webhook/certificate.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <stdexcept>

namespace trainyard::webhook {
namespace {

using std::chrono::hours;

constexpr hours kAuthorityLife{10 * 365 * 24};
constexpr hours kLeafLife{90 * 24};
constexpr hours kBackdated{24};  // a client whose clock is behind trusts it, too

template <auto Destroy>
struct Destroyer {
  void operator()(auto* handle) const noexcept { static_cast<void>(Destroy(handle)); }
};
using Bio = std::unique_ptr<BIO, Destroyer<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Destroyer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Destroyer<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Destroyer<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Destroyer<GENERAL_NAMES_free>>;
using BigNumber = std::unique_ptr<BIGNUM, Destroyer<BN_free>>;

Bio reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_in(const Bio& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<size_t>(size)};
}

/// The next certificate, or none; then OpenSSL's list of errors is empty again.
Certificate next_certificate(const Bio& bio) {
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

/// A key that asks for a password is none.
Key key_of(std::string_view pem) {
  const auto no_password = [](char*, int, int, void*) { return 0; };
  Key key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return key;
}

std::string pem_of(X509* certificate) {
  const Bio memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(memory.get(), certificate);
  return text_in(memory);
}

std::string pem_of(EVP_PKEY* key) {
  const Bio memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_in(memory);
}

TimePoint time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (!time || ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

std::string name_of(const GENERAL_NAME* name) {
  if (name->type == GEN_DNS) {
    const auto* const data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
    return {data, static_cast<size_t>(ASN1_STRING_length(name->d.dNSName))};
  }
  if (name->type != GEN_IPADD) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
  return ::inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text.data(), text.size()) ? text.data() : "";
}

std::vector<std::string> names_of(X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> found;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i)
    found.push_back(name_of(sk_GENERAL_NAME_value(names.get(), i)));
  return found;
}

void require(bool done, const char* what) {
  if (!done) throw std::runtime_error(fmt::format("the crypto library cannot {}", what));
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  require(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "add an extension to a certificate");
}

std::string subject_alternatives(const std::vector<std::string>& names) {
  std::string text;
  std::array<unsigned char, 16> ignored{};
  for (const std::string& name : names) {
    const bool is_address = ::inet_pton(AF_INET, name.c_str(), ignored.data()) == 1 ||
                            ::inet_pton(AF_INET6, name.c_str(), ignored.data()) == 1;
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", is_address ? "IP" : "DNS", name);
  }
  return text;
}

/// A certificate with a key of its own and a random number, that still has neither extensions nor a signature.
Certificate draft(const char* common_name, EVP_PKEY* key, TimePoint from, TimePoint until) {
  Certificate made(X509_new());
  require(made && X509_set_version(made.get(), X509_VERSION_3) == 1, "make a certificate");
  const BigNumber serial(BN_new());
  require(BN_rand(serial.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(made.get())),
          "draw a random number");
  ASN1_TIME_set(X509_getm_notBefore(made.get()), std::chrono::system_clock::to_time_t(from));
  ASN1_TIME_set(X509_getm_notAfter(made.get()), std::chrono::system_clock::to_time_t(until));
  X509_NAME* const name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("trainyard"), -1, -1, 0);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name), -1, -1, 0);
  require(X509_set_pubkey(made.get(), key) == 1, "set a certificate's key");
  return made;
}

KeyPair signed_pair(const Certificate& made, EVP_PKEY* key, EVP_PKEY* issuer_key) {
  require(X509_sign(made.get(), issuer_key, EVP_sha256()) > 0, "sign a certificate");
  return {pem_of(made.get()), pem_of(key)};
}

}  // namespace

std::optional<Facts> facts_of(std::string_view pem) {
  const Certificate certificate = next_certificate(reader(pem));
  if (!certificate) return std::nullopt;
  return Facts{.not_before = time_of(X509_get0_notBefore(certificate.get())),
               .not_after = time_of(X509_get0_notAfter(certificate.get())),
               .names = names_of(certificate.get()),
               .is_authority = X509_check_ca(certificate.get()) == 1};
}

std::vector<std::string> certificates_in(std::string_view bundle) {
  std::vector<std::string> found;
  const Bio bio = reader(bundle);
  while (const Certificate certificate = next_certificate(bio)) found.push_back(pem_of(certificate.get()));
  return found;
}

bool fits(const KeyPair& pair) {
  const Certificate certificate = next_certificate(reader(pair.certificate));
  const Key key = key_of(pair.key);
  const bool fit = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return fit;
}

bool is_signed_by(std::string_view certificate, std::string_view authority) {
  const Certificate leaf = next_certificate(reader(certificate)), issuer = next_certificate(reader(authority));
  const bool is_signed = leaf && issuer && X509_check_issued(issuer.get(), leaf.get()) == X509_V_OK &&
                         X509_verify(leaf.get(), X509_get0_pubkey(issuer.get())) == 1;
  ERR_clear_error();
  return is_signed;
}

KeyPair make_authority(TimePoint now) {
  const Key key(EVP_EC_gen("P-256"));
  require(key != nullptr, "make a key");
  const TimePoint from = now - kBackdated;
  const Certificate made = draft("trainyard-operator authority", key.get(), from, from + kAuthorityLife);
  X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
  add_extension(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(made.get(), made.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(made.get(), made.get(), NID_subject_key_identifier, "hash");
  return signed_pair(made, key.get(), key.get());
}

KeyPair issue(const KeyPair& authority, const std::vector<std::string>& names, TimePoint now) {
  const Certificate issuer = next_certificate(reader(authority.certificate));
  const Key issuer_key = key_of(authority.key);
  if (!issuer || !issuer_key || names.empty()) throw std::invalid_argument("issue: no authority, or no names");
  const Key key(EVP_EC_gen("P-256"));
  require(key != nullptr, "make a key");
  const TimePoint from = now - kBackdated;
  const TimePoint until = std::min(now + kLeafLife, time_of(X509_get0_notAfter(issuer.get())));
  const Certificate made = draft("trainyard-operator", key.get(), from, until);
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer.get()));
  add_extension(made.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made.get(), issuer.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(made.get(), issuer.get(), NID_ext_key_usage, "serverAuth");
  add_extension(made.get(), issuer.get(), NID_authority_key_identifier, "keyid");
  add_extension(made.get(), issuer.get(), NID_subject_alt_name, subject_alternatives(names));
  return signed_pair(made, key.get(), issuer_key.get());
}

}  // namespace trainyard::webhook
