#include "tensor/capture.h"

namespace trainyard {

StreamGraph*& graph_being_captured() {
  thread_local StreamGraph* graph = nullptr;
  return graph;
}

}  // namespace trainyard
