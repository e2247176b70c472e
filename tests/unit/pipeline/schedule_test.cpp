#include "pipeline/schedule.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "support/support.h"

namespace trainyard::pipeline {
namespace {

std::string refusal_of(Named name, int ranks, int microbatches, int stages_per_rank) {
  try {
    static_cast<void>(make_schedule(name, ranks, microbatches, stages_per_rank));
    return "none";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string parse_error(const std::string& text) {
  try {
    static_cast<void>(parse_csv(text, "a.csv"));
    return "none";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("schedule: each is PyTorch's, cell for cell", "[pipeline]") {
  const auto folder = test::test_data() / "pipeline";
  if (test::test_data().empty() || !std::filesystem::exists(folder))
    return test::skip("no pipeline/ in the reference data");
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".csv") continue;
    const std::vector<std::string> parts = split(file.path().stem().string(), '-');  // 1F1B-p2-m4-v1
    INFO(file.path().filename().string());
    REQUIRE(parts.size() == 4);
    const auto number = [&](size_t part) { return std::stoi(parts[part].substr(1)); };
    const auto name = named(parts[0]);
    REQUIRE(name);
    const std::string theirs = read_file(file.path());
    CHECK(to_csv(make_schedule(*name, number(1), number(2), number(3))) == to_csv(parse_csv(theirs, "file")));
    ++files;
  }
  CHECK(files == 31);
}

TEST_CASE("schedule: the small ones as the papers draw them", "[pipeline]") {
  CHECK(to_csv(make_schedule(Named::OneFOneB, 2, 3, 1)) ==
        "0F0,0F1,0B0,0F2,0B1,0B2,0REDUCE_GRAD\n1F0,1B0,1F1,1B1,1F2,1B2,1REDUCE_GRAD\n");
  CHECK(to_csv(make_schedule(Named::GPipe, 1, 2, 1)) == "0F0,0F1,0B0,0B1,0REDUCE_GRAD\n");
  CHECK(to_csv(make_schedule(Named::LoopedBfs, 2, 1, 2)) == "0F0,2F0,,,2B0,0B0\n,1F0,3F0,3B0,1B0\n");
  CHECK(to_csv(make_schedule(Named::Zb1p, 1, 2, 1)) == "0F0,0I0,0W0,0F1,0I1,0W1\n");
}

TEST_CASE("schedule: what PyTorch refuses is refused, with what would be right", "[pipeline]") {
  CHECK(refusal_of(Named::OneFOneB, 4, 3, 1) == "1f1b needs at least as many micro-batches as stages: 4, not 3");
  CHECK(refusal_of(Named::DualPipeV, 2, 3, 2) == "dualpipe_v needs at least as many micro-batches as stages: 4, not 3");
  CHECK(refusal_of(Named::Zbv, 2, 4, 3) == "zbv has 2 stages a rank, not 3");
  CHECK(refusal_of(Named::OneFOneB, 2, 4, 2) == "1f1b has 1 stage a rank, not 2");
  CHECK(refusal_of(Named::Interleaved1F1B, 2, 5, 2) ==
        "interleaved_1f1b takes micro-batches in rounds of about as many as there are ranks: 5 micro-batches are 2 "
        "rounds "
        "on 2 ranks and must be a multiple of that; use 4 or 6");
  CHECK(refusal_of(Named::InterleavedZeroBubble, 4, 9, 2) != "none");
  CHECK(refusal_of(Named::Interleaved1F1B, 4, 3, 2) == "none");  // one round
  CHECK(refusal_of(Named::GPipe, 0, 4, 1) != "none");
}

TEST_CASE("schedule: names are ours or PyTorch's", "[pipeline]") {
  CHECK(named("ZBVZeroBubble") == Named::Zbv);
  CHECK(named("dualpipe_v") == Named::DualPipeV);
  CHECK_FALSE(named("2f2b"));
  CHECK(words() == "gpipe, 1f1b, looped_bfs, interleaved_1f1b, interleaved_zero_bubble, zb1p, zbv, dualpipe_v");
}

TEST_CASE("schedule: a CSV is read as PyTorch writes it, with cells of communication or without", "[pipeline]") {
  const std::string text = "0UNSHARD,0F0,0SEND_F0,,(0F1;1B0)OVERLAP_F_B,0RECV_B0,0RESHARD,0REDUCE_GRAD\n";
  CHECK(to_csv(parse_csv(text, "a.csv")) == text);
  CHECK(to_csv(parse_csv("0F0 , 0B0,,,\r\n\n", "a.csv")) == "0F0,0B0\n");
  CHECK(parse_error("0F0\n1X0\n") ==
        "a.csv: row 2, cell 1 is '1X0'; use a stage, F, B, I or W and a micro-batch such as 0F3, nothing, "
        "(0F3;3B1)OVERLAP_F_B, or PyTorch's cells of communication");
  for (const char* const cell :
       {"F0", "0F", "0F0x", "0UNSHARD3", "(0F0;0B0", "(0F0)OVERLAP_F_B", "99999999F0", "(0UNSHARD;0B0)OVERLAP_F_B"})
    CHECK_THAT(parse_error(cell), Catch::StartsWith("a.csv: row 1, cell 1 is '"));
  CHECK_THAT(parse_error("\n\n"), Catch::StartsWith("a.csv: there is no action in it"));
  CHECK(parse_error("0F0\n\n,,\n") == "a.csv: row 2 has no action; a row is a rank, which has one at least");
}

}  // namespace trainyard::pipeline
