#include "comm/flight_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "support/ranks.h"
#include "support/support.h"

namespace trainyard::comm {
namespace {

nlohmann::json written(const FlightRecord& record) {
  const test::TemporaryFolder folder;
  const UniqueFd fd(::open((folder / "record").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  record.write(fd.get());
  return nlohmann::json::parse(read_file(folder / "record"));
}

TEST_CASE("flight record: what is queued, runs and is done can be told apart", "[comm]") {
  FlightRecord record;
  const auto done = record.issued("all_gather", "layers.0", "", 4096);
  record.begun(done);
  record.ended(done);
  const auto running = record.issued("reduce_scatter", "a \"label\"\n\\", "shard", 8);
  record.begun(running);
  record.issued("barrier", "", "", 0);
  const auto entries = written(record);
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].at("number") == 1);
  CHECK(entries[0].at("collective") == "all_gather");
  CHECK(entries[0].at("label") == "layers.0");
  CHECK(entries[0].at("bytes") == 4096);
  CHECK(entries[0].at("ended").get<double>() >= entries[0].at("begun").get<double>());
  CHECK(entries[1].at("label") == "a \"label\"\n\\");
  CHECK(entries[1].at("group") == "shard");
  CHECK(entries[1].at("begun").is_number());
  CHECK(entries[1].at("ended").is_null());
  CHECK(entries[2].at("begun").is_null());
}

TEST_CASE("flight record: only the last ones are kept, and long names are cut between characters", "[comm]") {
  FlightRecord record;
  CHECK(written(record).empty());
  const auto first = record.issued("all_gather", "first", "", 1);
  for (size_t i = 0; i < FlightRecord::kKept; ++i) record.issued("all_gather", fmt::format("layers.{}", i), "", i);
  record.ended(first);  // long overwritten
  const std::string wide = std::string(62, 'x') + "ä";
  record.issued("all_gather", wide, "", 1);
  const auto entries = written(record);
  REQUIRE(entries.size() == FlightRecord::kKept);
  CHECK(entries.front().at("number") == 3);
  CHECK(entries.back().at("label") == std::string(62, 'x'));
  for (const auto& entry : entries) CHECK(entry.at("ended").is_null());
}

TEST_CASE("flight record: a rank whose peer is lost keeps the collective that did not end, of a split too", "[comm]") {
  auto communicators = make_in_process(2, std::chrono::seconds(20));
  const auto seen = test::run_threads(2, [&](int rank) {
    const auto world = std::move(communicators[static_cast<size_t>(rank)]);
    Tensor values = Tensor::zeros({4}, DType::Float32);
    world->all_reduce(values, ReduceOp::Sum, "done").wait();
    std::unique_ptr<Communicator> both = world->split(0, "shard");
    const auto record = world->flight_record();
    if (rank == 1) return nlohmann::json();  // its communicators go with it
    try {
      both->all_reduce(values, ReduceOp::Sum, "lost").wait();
    } catch (const PeerError&) {
    }
    return written(*record);
  });
  const auto& last = seen[0].back();
  CHECK(last.at("label") == "lost");
  CHECK(last.at("group") == "shard");
  CHECK(last.at("begun").is_number());
  CHECK(last.at("ended").is_null());
  CHECK(seen[0].front().at("label") == "done");
  CHECK(seen[0].front().at("ended").is_number());
}

}  // namespace
}  // namespace trainyard::comm
