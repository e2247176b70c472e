#include "pipeline/simulation.h"

#include <catch2/catch.hpp>

#include "base/error.h"

namespace trainyard::pipeline {
namespace {

Simulation simulated(Named name, int ranks, int microbatches, int stages_per_rank) {
  return simulate(make_schedule(name, ranks, microbatches, stages_per_rank), {}, "it");
}

std::string refusal_of(const std::string& csv) {
  try {
    static_cast<void>(simulate(parse_csv(csv, "a.csv"), {}, "a.csv"));
    return "none";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("simulation: the bubble is what the papers say", "[pipeline]") {
  for (const int p : {2, 3, 4, 8})
    for (const int m : {2 * p, 4 * p}) {
      CAPTURE(p, m);
      const auto share = [&](double work) { return Approx((p - 1) / (work + p - 1)); };
      for (const Named name : {Named::GPipe, Named::OneFOneB}) CHECK(simulated(name, p, m, 1).bubble == share(m));
      for (const Named name : {Named::LoopedBfs, Named::Interleaved1F1B})
        for (const int v : {2, 3}) CHECK(simulated(name, p, m, v).bubble == share(v * m));
      CHECK(simulated(Named::Zb1p, p, m, 1).bubble == share(3 * m));
      for (const Named name : {Named::InterleavedZeroBubble, Named::Zbv, Named::DualPipeV})
        CHECK(simulated(name, p, m, 2).bubble == share(6 * m));
    }
}

TEST_CASE("simulation: every schedule can be carried out in every size that it has", "[pipeline]") {
  for (const Named name : {Named::GPipe, Named::OneFOneB, Named::LoopedBfs, Named::Interleaved1F1B,
                           Named::InterleavedZeroBubble, Named::Zb1p, Named::Zbv, Named::DualPipeV})
    for (int p = 1; p <= 6; ++p)
      for (int m = 1; m <= 13; ++m) try {
          const Schedule schedule = make_schedule(name, p, m, default_stages_per_rank(name));
          CAPTURE(word_of(name), p, m);
          CHECK(simulate(schedule, {}, "it").time >= 3 * m * schedule.stages / schedule.ranks);
        } catch (const InputError& error) {
          CHECK_THAT(error.what(), Catch::StartsWith(std::string(word_of(name))));  // a size that it has not
        }
}

TEST_CASE("simulation: 1F1B keeps at most the stages behind it in flight, GPipe all", "[pipeline]") {
  CHECK(simulated(Named::OneFOneB, 4, 16, 1).most_in_flight == std::vector<int>{4, 3, 2, 1});
  CHECK(simulated(Named::GPipe, 4, 16, 1).most_in_flight == std::vector<int>(4, 16));
}

TEST_CASE("simulation: what is missing, twice there, on two ranks or waits for itself is named", "[pipeline]") {
  CHECK(refusal_of("0F0,0B0\n") == "none");
  CHECK(refusal_of("0F0,0I0\n") ==
        "a.csv: stage 0 has no whole backward of micro-batch 0; it needs a B, or an I and a W");
  CHECK(refusal_of("0F0,0B0,0W0,0I0\n") ==
        "a.csv: stage 0 has a whole backward and a part of micro-batch 0; it needs a B, or an I and a W");
  CHECK(refusal_of("0B0,0F1,0B1\n") == "a.csv: 0F0 is missing: each stage has a forward of each micro-batch");
  CHECK(refusal_of("0F0,0F0,0B0\n") == "a.csv: rank 0, cell 2: 0F0 stands twice");
  CHECK(refusal_of("0F0\n0B0\n") == "a.csv: stage 0 is on rank 0 and, in cell 1, on rank 1; a stage is on one rank");
  CHECK(
      refusal_of("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n") ==
      "a.csv: it cannot end, as cells wait for each other: rank 0 in cell 2 (0B0) for 1B0; rank 1 in cell 1 (1F1) for "
      "0F1.");
  CHECK_THAT(refusal_of("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
             Catch::EndsWith("rank 0 in cell 2 (0RECV_B0) for 1SEND_B0; rank 1 in cell 1 (1RECV_F0) for 0SEND_F0."));
  CHECK_THAT(refusal_of("1000000F1000000\n"), Catch::Contains("is missing"));
}

TEST_CASE("simulation: a picture has a box for each action", "[pipeline]") {
  const std::string svg = to_svg(simulated(Named::Zbv, 2, 4, 2), "zbv");
  size_t boxes = 0;
  for (size_t at = svg.find("<title>"); at != std::string::npos; at = svg.find("<title>", at + 1)) ++boxes;
  CHECK(boxes == 2 * 2 * 4 * 3);
  CHECK_THAT(svg, Catch::StartsWith("<svg ") && Catch::Contains("bubble is 4.0 %") && Catch::EndsWith("</svg>\n"));
}

}  // namespace trainyard::pipeline
