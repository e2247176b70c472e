#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/job.h"
#include "api/pod.h"
#include "api/quantity.h"
#include "api/validate.h"

// Whatever text is sent as a PyTorchJob: nothing but ParseError is thrown, and a job that was parsed stays parseable.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(api::Quantity::parse(text));
  const auto json = parse_json(text);
  if (!json) return 0;
  static_cast<void>(api::validate(*json, nullptr).message());
  static_cast<void>(api::validate(*json, &*json).message());
  static_cast<void>(api::validate_schema(*json).message());
  static_cast<void>(api::parse_pod(*json));
  static_cast<void>(api::parse_node(*json));
  try {
    api::Job job = api::parse_job(*json);
    api::set_defaults(job);
    const Json status = api::to_json(job.status);
    if (api::to_json(api::parse_status({{"status", status}})) != status) std::abort();
  } catch (const api::ParseError&) {
  }
  return 0;
}
