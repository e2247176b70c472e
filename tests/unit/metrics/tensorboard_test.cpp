#include "metrics/tensorboard.h"

#include <catch2/catch.hpp>

#include <array>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "metrics/event_record.h"
#include "support/support.h"

namespace trainyard::metrics {
namespace {

std::vector<int64_t> steps_of(std::string_view text) {
  std::vector<int64_t> steps;
  while (const auto record = first_record(text)) {
    steps.push_back(record->step);
    text.remove_prefix(record->bytes);
  }
  if (!text.empty()) steps.push_back(-1);  // what is no record
  return steps;
}

std::vector<int64_t> event_steps_in(const std::filesystem::path& path) {
  return steps_of(read_file(path));
}

std::filesystem::path write_board(const std::filesystem::path& folder, int64_t last) {
  TensorBoard board(folder, 0);
  for (int64_t step = 1; step <= last; ++step) board.append({.step = step, .loss = 1.0 / static_cast<double>(step)});
  return board.path();
}

TEST_CASE("event files have the bytes of TensorBoard's own writer", "[metrics]") {
  // Written by `bench/tensorboard_reads --reference`.
  const std::string reference = read_file(TRAINYARD_REFERENCE_EVENTS);
  const double time = 1700000000.25;
  const std::array first{Scalar{"loss", 8.125F}, Scalar{"lr", 0}},
      second{Scalar{"loss", 1e-30F}, Scalar{"memory_bytes", 3e9F}};
  const std::array last{Scalar{"grad_norm", std::numeric_limits<float>::infinity()}};
  const int64_t late = int64_t{1} << 40;
  const std::string ours = framed(version_event(time)) + framed(scalars_event(time + 1, 1, first)) +
                           framed(scalars_event(time + 300, 300, second)) +
                           framed(scalars_event(time + static_cast<double>(late), late, last));
  CHECK(ours == reference);
  CHECK(steps_of(ours) == std::vector<int64_t>{0, 1, 300, late});
}

TEST_CASE("a resumed run goes on in the event file it finds, without what came after its step", "[metrics]") {
  const test::TemporaryFolder folder;
  const auto path = write_board(folder.path(), 5);
  CHECK(path.filename().string().starts_with("events.out.tfevents."));
  {
    TensorBoard board(folder.path(), 3);
    board.append({.step = 4});
    CHECK(board.path() == path);
  }
  CHECK(event_steps_in(path) == std::vector<int64_t>{0, 1, 2, 3, 4});
  const TensorBoard anew(folder.path(), 0);
  CHECK(anew.path() == path);
  CHECK(event_steps_in(path) == std::vector<int64_t>{0});
}

TEST_CASE("a torn or damaged record of an event file is cut off with all after it", "[metrics]") {
  const test::TemporaryFolder folder;
  const auto path = write_board(folder.path(), 3);
  std::string text = read_file(path);
  const size_t where = GENERATE(0, 9, 30, 60);  // from the end
  if (where == 0)
    text += std::string("\x20\0\0\0", 4);
  else
    text[text.size() - where] = static_cast<char>(text[text.size() - where] ^ 1);
  std::ofstream(path, std::ios::binary) << text;
  TensorBoard board(folder.path(), 3);
  board.append({.step = 4});
  const auto steps = event_steps_in(path);
  CHECK(steps.back() == 4);
  CHECK(steps.size() >= 3);
}

TEST_CASE("text of any kind is read as no record, not past its end", "[metrics]") {
  const std::string record = framed(version_event(1));
  CHECK(first_record(record)->bytes == record.size());
  for (size_t size = 0; size < record.size(); ++size) CHECK_FALSE(first_record(record.substr(0, size)));
  CHECK_FALSE(first_record(std::string(64, '\xff')));
  CHECK(first_record(framed(""))->step == 0);
}

}  // namespace
}  // namespace trainyard::metrics
