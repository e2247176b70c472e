#include "data/columns/parquet_encodings.h"

#include <fmt/format.h>

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

class PlainTexts final : public TextValues {
 public:
  explicit PlainTexts(std::string_view bytes) : rest_(bytes) {}
  std::string_view next() override { return take(rest_, take_integer(rest_)); }
  void expect_end() const override { parquet::expect_end(rest_); }

 private:
  std::string_view rest_;
};

class TextsBehindLengths final : public TextValues {
 public:
  TextsBehindLengths(std::string_view bytes, int64_t count) : rest_(bytes), lengths_(rest_, count) {}
  std::string_view next() override { return take(rest_, lengths_.next()); }
  void expect_end() const override { parquet::expect_end(rest_); }

 private:
  std::string_view rest_;
  DeltaLengths lengths_;  ///< takes itself off the rest
};

class TextsBehindPrefixes final : public TextValues {
 public:
  TextsBehindPrefixes(std::string_view bytes, int64_t count)
      : rest_(bytes), prefixes_(rest_, count), suffixes_(rest_, count) {}
  std::string_view next() override {
    const size_t prefix = prefixes_.next();
    if (prefix > text_.size())
      throw Damage(fmt::format("a text of {} bytes cannot lend its first {}", text_.size(), prefix));
    text_.resize(prefix);
    text_ += suffixes_.next();
    return text_;
  }
  void expect_end() const override { suffixes_.expect_end(); }

 private:
  std::string_view rest_;
  DeltaLengths prefixes_;  ///< takes itself off the rest
  TextsBehindLengths suffixes_;
  std::string text_;
};

class TextsOfDictionary final : public TextValues {
 public:
  TextsOfDictionary(const Dictionary& dictionary, const HybridValues& indices)
      : dictionary_(dictionary), indices_(indices) {}
  std::string_view next() override { return dictionary_[indices_.next()]; }

 private:
  const Dictionary& dictionary_;
  HybridValues indices_;
};

}  // namespace

std::unique_ptr<TextValues> plain_texts(std::string_view bytes) {
  return std::make_unique<PlainTexts>(bytes);
}

std::unique_ptr<TextValues> texts_behind_lengths(std::string_view bytes, int64_t count) {
  return std::make_unique<TextsBehindLengths>(bytes, count);
}

std::unique_ptr<TextValues> texts_behind_prefixes(std::string_view bytes, int64_t count) {
  return std::make_unique<TextsBehindPrefixes>(bytes, count);
}

std::unique_ptr<TextValues> texts_of(const Dictionary& dictionary, std::string_view bytes) {
  const unsigned width = take_byte(bytes);
  return std::make_unique<TextsOfDictionary>(dictionary, HybridValues(bytes, width));
}

void for_each(TextValues& values, int64_t count, const VisitText& visit) {
  for (int64_t i = 0; i < count; ++i) visit(values.next());
  values.expect_end();
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

}  // namespace trainyard::data::parquet
