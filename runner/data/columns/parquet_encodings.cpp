#include "data/columns/parquet_encodings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/columns/damage.h"
#include "data/columns/parquet_integers.h"
#include "data/columns/taking.h"

namespace trainyard::data::parquet {
namespace {

void expect_end(std::string_view rest) {
  if (!rest.empty()) throw Damage(fmt::format("{} B are left behind its values", rest.size()));
}

}  // namespace

void for_each_plain(std::string_view bytes, int64_t count, const VisitText& visit) {
  for (int64_t i = 0; i < count; ++i) visit(take(bytes, take_integer(bytes)));
  expect_end(bytes);
}

void for_each_behind_lengths(std::string_view bytes, int64_t count, const VisitText& visit) {
  DeltaLengths lengths(bytes, count);
  for (int64_t i = 0; i < count; ++i) visit(take(bytes, lengths.next()));
  expect_end(bytes);
}

void for_each_behind_prefixes(std::string_view bytes, int64_t count, const VisitText& visit) {
  DeltaLengths prefixes(bytes, count);
  std::string text;
  for_each_behind_lengths(bytes, count, [&](std::string_view rest) {
    const size_t prefix = prefixes.next();
    if (prefix > text.size())
      throw Damage(fmt::format("a text of {} bytes cannot lend its first {}", text.size(), prefix));
    text.resize(prefix);
    text += rest;
    visit(text);
  });
}

Dictionary::Dictionary(Unpacked page, int64_t count) : page_(std::move(page)) {
  std::string_view rest = page_.bytes;
  if (std::cmp_greater(count, rest.size() / sizeof(uint32_t)))
    throw Damage(fmt::format("{} texts do not fit {} bytes", count, rest.size()));
  places_.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    places_.push_back(static_cast<uint32_t>(page_.bytes.size() - rest.size()));
    take(rest, take_integer(rest));
  }
  expect_end(rest);
}

std::string_view Dictionary::operator[](uint32_t number) const {
  if (number >= places_.size())
    throw Damage(fmt::format("the index {} is beyond a dictionary of {}", number, places_.size()));
  std::string_view from = page_.bytes.substr(places_[number]);
  return take(from, take_integer(from));
}

void for_each_of(const Dictionary& dictionary, std::string_view bytes, int64_t count, const VisitText& visit) {
  const unsigned width = take_byte(bytes);
  HybridRuns runs(bytes, width);
  for (int64_t seen = 0; seen < count;) {
    const Run run = runs.next();
    const auto length = std::min(run.length, static_cast<uint64_t>(count - seen));
    for (uint64_t i = 0; i < length; ++i) visit(dictionary[run.at(i)]);
    seen += static_cast<int64_t>(length);
  }
}

}  // namespace trainyard::data::parquet
