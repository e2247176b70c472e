#pragma once

namespace trainyard {

class StreamGraph;

/// The graph that this thread captures its device's work into (tensor/stream_graph.h), which alone sets it; null: none.
StreamGraph*& graph_being_captured();

}  // namespace trainyard
