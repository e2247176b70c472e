#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

// AWS Signature Version 4, as docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html has it. Pure.
// libcurl's own, CURLOPT_AWS_SIGV4, signed some paths and queries wrongly up to the version that Debian 12 has.
namespace trainyard::s3 {

/// What is signed.
struct Request {
  std::string method;                                       ///< "GET"
  std::string path;                                         ///< as it is sent: percent-encoded once, from "/" on
  std::vector<std::pair<std::string, std::string>> query;   ///< not encoded
  std::map<std::string, std::string, std::less<>> headers;  ///< names in lower case; all of them are signed
  std::string payload;                                      ///< the SHA-256 of the body in hexadecimal digits
};

/// What a signature is good for.
struct Scope {
  std::string region, service;  ///< "us-east-1", "s3"
  std::string time;             ///< "20130524T000000Z"; it is signed as the header x-amz-date too
};

/// "b=1&c=%2F": encoded, and in the order that is signed. It is what must be sent.
std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query);

std::string canonical_request(const Request& request);

std::string string_to_sign(const Request& request, const Scope& scope);

/// The header Authorization, without its name. The secret key is in none of it.
std::string authorization(const Request& request, const Scope& scope, const std::string& access_key,
                          const std::string& secret_key);

/// `now` as "20130524T000000Z".
std::string time_to_sign(std::chrono::system_clock::time_point now);

}  // namespace trainyard::s3
