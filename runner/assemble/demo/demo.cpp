#include "assemble/demo/demo.h"

#include <cstdint>

#include "data/columns/codecs.h"

extern "C" const char trainyard_demo_corpus[], trainyard_demo_corpus_end[];
extern "C" const uint64_t trainyard_demo_corpus_bytes;
extern "C" const char trainyard_demo_configuration[], trainyard_demo_configuration_end[];

namespace trainyard::train::demo {

std::string corpus() {
  return std::string(data::unpack(data::Codec::Zstd, {trainyard_demo_corpus, trainyard_demo_corpus_end},
                                  trainyard_demo_corpus_bytes)
                         .bytes);
}

std::string_view configuration() {
  return {trainyard_demo_configuration, trainyard_demo_configuration_end};
}

}  // namespace trainyard::train::demo
