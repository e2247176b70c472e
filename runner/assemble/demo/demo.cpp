#include "assemble/demo/demo.h"

extern "C" const char trainyard_demo_corpus[], trainyard_demo_corpus_end[];
extern "C" const char trainyard_demo_configuration[], trainyard_demo_configuration_end[];

namespace trainyard::train::demo {

std::string_view corpus() {
  return {trainyard_demo_corpus, trainyard_demo_corpus_end};
}

std::string_view configuration() {
  return {trainyard_demo_configuration, trainyard_demo_configuration_end};
}

}  // namespace trainyard::train::demo
