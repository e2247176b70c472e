#include "data/columns/parquet_leaf.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "data/columns/damage.h"
#include "data/columns/record_rows.h"
#include "data/columns/taking.h"

namespace trainyard::data::parquet {

/// The values of a page, as JSON.
class LeafReader::Values {
 public:
  virtual ~Values() = default;
  virtual void add_next(std::string& json) = 0;
};

namespace {

class JsonTexts final : public LeafReader::Values {
 public:
  explicit JsonTexts(std::unique_ptr<TextValues> texts) : texts_(std::move(texts)) {}
  void add_next(std::string& json) override { add_json_text(json, texts_->next()); }

 private:
  std::unique_ptr<TextValues> texts_;
};

template <typename Number>
void add_number(std::string& json, std::string_view bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  if constexpr (std::is_floating_point_v<Number>)
    add_json_number(json, number);
  else
    fmt::format_to(std::back_inserter(json), "{}", number);
}

/// The encoding PLAIN.
template <typename Number>
class JsonNumbers final : public LeafReader::Values {
 public:
  explicit JsonNumbers(std::string_view bytes) : rest_(bytes) {}
  void add_next(std::string& json) override { add_number<Number>(json, take(rest_, sizeof(Number))); }

 private:
  std::string_view rest_;
};

/// The encodings that give indices into a dictionary: PLAIN_DICTIONARY and RLE_DICTIONARY.
template <typename Number>
class JsonNumbersOf final : public LeafReader::Values {
 public:
  JsonNumbersOf(std::string_view dictionary, const HybridValues& indices)
      : dictionary_(dictionary), indices_(indices) {}
  void add_next(std::string& json) override {
    const size_t index = indices_.next();
    if (index >= dictionary_.size() / sizeof(Number))
      throw Damage(
          fmt::format("the index {} is beyond a dictionary of {}", index, dictionary_.size() / sizeof(Number)));
    add_number<Number>(json, dictionary_.substr(index * sizeof(Number), sizeof(Number)));
  }

 private:
  std::string_view dictionary_;
  HybridValues indices_;
};

class JsonTruths final : public LeafReader::Values {
 public:
  explicit JsonTruths(const HybridValues& bits) : bits_(bits) {}
  void add_next(std::string& json) override { json += bits_.next() == 1 ? "true" : "false"; }

 private:
  HybridValues bits_;
};

/// PLAIN, which packs 8 a byte
class JsonPlainTruths final : public LeafReader::Values {
 public:
  explicit JsonPlainTruths(std::string_view bytes) : rest_(bytes) {}
  void add_next(std::string& json) override {
    if (bit_ == 0) byte_ = take_byte(rest_);
    json += (byte_ >> bit_ & 1) != 0 ? "true" : "false";
    bit_ = (bit_ + 1) % 8;
  }

 private:
  std::string_view rest_;
  unsigned byte_ = 0, bit_ = 0;
};

template <typename Number>
std::unique_ptr<LeafReader::Values> numbers_in(Encoding encoding, std::string_view bytes, std::string_view dictionary) {
  if (uses_dictionary(encoding)) {
    const unsigned width = take_byte(bytes);
    return std::make_unique<JsonNumbersOf<Number>>(dictionary, HybridValues(bytes, width));
  }
  if (encoding != Encoding::Plain) refuse(encoding, "numbers");
  return std::make_unique<JsonNumbers<Number>>(bytes);
}

std::unique_ptr<LeafReader::Values> truths_in(Encoding encoding, std::string_view bytes) {
  if (encoding == Encoding::Plain) return std::make_unique<JsonPlainTruths>(bytes);
  if (encoding != Encoding::Rle) refuse(encoding, "truths");
  return std::make_unique<JsonTruths>(HybridValues(take(bytes, take_integer(bytes)), 1));
}

unsigned width_of(unsigned highest) {
  return static_cast<unsigned>(std::bit_width(highest));
}

}  // namespace

LeafReader::LeafReader(std::string_view content, const Leaf& leaf, const ColumnChunk& chunk, Codec codec)
    : leaf_(leaf), codec_(codec), pages_(content, chunk, 0) {
  advance();
}

LeafReader::~LeafReader() = default;

void LeafReader::take_value(std::string& json) {
  at_page(page_->place, [&] {
    if (!values_) values_ = values_of_page();
    values_->add_next(json);
  });
  advance();
}

void LeafReader::advance() {
  while (left_ == 0) {
    page_ = pages_.next();
    has_entry_ = page_.has_value();
    if (!has_entry_) return;
    at_page(page_->place, [&] { read_page(); });
  }
  --left_;
  at_page(page_->place, [&] {
    repetition_ = repetitions_ ? repetitions_->next() : 0;
    definition_ = definitions_ ? definitions_->next() : 0;
    if (repetition_ > leaf_.repetition || definition_ > leaf_.definition)
      throw Damage(fmt::format("it has levels {} and {}, and its column has none above {} and {}", repetition_,
                               definition_, leaf_.repetition, leaf_.definition));
  });
}

void LeafReader::read_page() {
  values_ = nullptr;  // a page without a value may have no byte of them
  parts_ = parts_of(*page_, codec_, {.repetition = leaf_.repetition > 0, .definition = leaf_.definition > 0});
  repetitions_.reset(), definitions_.reset();
  if (leaf_.repetition > 0) repetitions_.emplace(parts_.repetition, width_of(leaf_.repetition));
  if (leaf_.definition > 0) definitions_.emplace(parts_.definition, width_of(leaf_.definition));
  left_ = page_->header.values;
}

int64_t LeafReader::values_in_page() const {
  if (leaf_.definition == 0) return page_->header.values;
  HybridValues definitions(parts_.definition, width_of(leaf_.definition));
  int64_t count = 0;
  for (int64_t i = 0; i < page_->header.values; ++i) count += definitions.next() == leaf_.definition ? 1 : 0;
  return count;
}

void LeafReader::read_dictionary() {
  if (words_ || numbers_) return;
  const auto& page = pages_.dictionary();
  if (!page) throw Damage("its values are in a dictionary that is not there");
  Unpacked unpacked = unpack_dictionary(*page, codec_);
  if (leaf_.type == PhysicalType::ByteArray)
    words_ = std::make_unique<const Dictionary>(std::move(unpacked), page->header.values);
  else
    numbers_ = std::move(unpacked);
}

std::unique_ptr<LeafReader::Values> LeafReader::values_of_page() {
  const Encoding encoding = page_->header.encoding;
  const std::string_view bytes = parts_.values;
  if (uses_dictionary(encoding)) read_dictionary();
  const std::string_view dictionary = numbers_ ? numbers_->bytes : std::string_view();
  switch (leaf_.type) {
    case PhysicalType::ByteArray:
      return std::make_unique<JsonTexts>(texts_in(encoding, bytes, values_in_page(), words_.get()));
    case PhysicalType::Int32:
      return numbers_in<int32_t>(encoding, bytes, dictionary);
    case PhysicalType::Int64:
      return numbers_in<int64_t>(encoding, bytes, dictionary);
    case PhysicalType::Float:
      return numbers_in<float>(encoding, bytes, dictionary);
    case PhysicalType::Double:
      return numbers_in<double>(encoding, bytes, dictionary);
    default:
      return truths_in(encoding, bytes);
  }
}

}  // namespace trainyard::data::parquet
