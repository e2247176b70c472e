#include "metrics/trace.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "support/support.h"

namespace trainyard::metrics {
namespace {

TEST_CASE("without an attached trace nothing is recorded", "[metrics]") {
  Trace trace(0);
  {
    const AttachTrace off(nullptr, "main");
    TraceSpan span("matmul", "op");
    span.value("bytes", 1);
  }
  CHECK(trace.spans().empty());
}

TEST_CASE("spans of a scope nest, carry their values, and end with the attachment", "[metrics]") {
  Trace trace(0);
  {
    const AttachTrace attach(&trace, "main");
    const TraceSpan outer("step", "train");
    TraceSpan inner("all_gather", "gather", "layers.17");
    inner.value("bytes", 4096);
  }
  { const TraceSpan after("later", "op"); }
  const auto spans = trace.spans();
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].name == "all_gather layers.17");
  CHECK(spans[0].values == std::vector<std::pair<const char*, int64_t>>{{spans[0].values[0].first, 4096}});
  CHECK(spans[1].name == "step");
  CHECK(spans[1].begin <= spans[0].begin);
  CHECK(spans[0].begin <= spans[0].end);
  CHECK(spans[0].end <= spans[1].end);
}

TEST_CASE("threads record at once, each on its own track", "[metrics]") {
  Trace trace(0);
  constexpr int kThreads = 4, kSpans = 500;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&trace, i] {
        const AttachTrace attach(&trace, "thread " + std::to_string(i));
        for (int k = 0; k < kSpans; ++k) const TraceSpan span("work", "op");
      });
  }
  std::vector<int> counts(kThreads);
  for (const Span& span : trace.spans()) ++counts.at(static_cast<size_t>(span.track));
  CHECK(counts == std::vector<int>(kThreads, kSpans));
}

TEST_CASE("ranks that are threads keep traces of their own", "[metrics]") {
  Trace first(0), second(1);
  const auto record = [](Trace& trace) {
    const AttachTrace attach(&trace, "main");
    const TraceSpan span("work", "op");
  };
  {
    const std::jthread a([&] { record(first); }), b([&] { record(second); });
  }
  CHECK(first.spans().size() == 1);
  CHECK(second.spans().size() == 1);
}

TEST_CASE("a trace that is full counts what it leaves out", "[metrics]") {
  Trace trace(0, 2);
  for (int i = 0; i < 5; ++i) trace.add({.name = std::to_string(i)});
  CHECK(trace.spans().size() == 2);
  CHECK(trace.dropped() == 3);
  CHECK(nlohmann::json::parse(trace.to_json())["otherData"]["dropped_spans"] == 3);
}

TEST_CASE("the written trace is JSON in the Trace Event Format", "[metrics]") {
  const test::TemporaryFolder folder;
  Trace trace(3);
  const int track = trace.track("communication \"1\"");
  trace.add({.name = "a \"b\"\n\xFF",
             .category = "gather",
             .track = track,
             .begin = 1500,
             .end = 4750,
             .values = {{"bytes", 12}}});
  trace.write(folder / "trace.json");
  const auto events = nlohmann::json::parse(read_file(folder / "trace.json"))["traceEvents"];
  REQUIRE(events.size() == 3);
  CHECK(events[0]["ph"] == "M");
  CHECK(events[0]["args"]["name"] == "rank 3");
  CHECK(events[1]["args"]["name"] == "communication \"1\"");
  const nlohmann::json expected{
      {"ph", "X"},   {"name", "a \"b\"\n\uFFFD"}, {"cat", "gather"}, {"pid", 3}, {"tid", track}, {"ts", 1.5},
      {"dur", 3.25}, {"args", {{"bytes", 12}}}};
  CHECK(events[2] == expected);
}

TEST_CASE("totals by name leave out of a span what spans inside it took", "[metrics]") {
  const auto totals = summarize({
      {.name = "step", .category = "train", .track = 0, .begin = 0, .end = 100},
      {.name = "matmul", .category = "op", .track = 0, .begin = 10, .end = 40},
      {.name = "pack", .category = "op", .track = 0, .begin = 10, .end = 15},
      {.name = "matmul", .category = "op", .track = 0, .begin = 40, .end = 90},
      {.name = "gather", .category = "gather", .track = 1, .begin = 20, .end = 80},
  });
  REQUIRE(totals.size() == 4);
  const auto row = [&](size_t i) {
    return std::tuple(totals[i].name, totals[i].count, totals[i].total_nanoseconds, totals[i].self_nanoseconds);
  };
  CHECK(row(0) == std::tuple("matmul", 2, 80, 75));
  CHECK(row(1) == std::tuple("gather", 1, 60, 60));
  CHECK(row(2) == std::tuple("step", 1, 100, 20));
  CHECK(row(3) == std::tuple("pack", 1, 5, 5));
}

}  // namespace
}  // namespace trainyard::metrics
