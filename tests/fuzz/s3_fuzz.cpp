#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "s3/answer.h"
#include "s3/credentials.h"
#include "s3/profile.h"

using namespace trainyard;

namespace {

template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const InputError&) {
  }
}

}  // namespace

/// What a server of S3, of STS or of a container's credentials answers, and what lies in ~/.aws.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_to([&] { s3::page_of(text, "x"); });
  try_to([&] { s3::told_by({.status = 400, .text = text}); });
  try_to([&] { s3::credentials_in_xml(text, "x"); });
  try_to([&] { s3::credentials_in_json(text, "x"); });
  try_to([&] { s3::parse_sections(text, "x"); });
  return 0;
}
