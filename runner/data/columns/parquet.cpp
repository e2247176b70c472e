#include "data/columns/parquet.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/files.h"
#include "data/columns/damage.h"
#include "data/columns/parquet_pages.h"
#include "data/columns/parquet_records.h"
#include "data/columns/parquet_schema.h"
#include "data/columns/record_rows.h"
#include "data/columns/taking.h"

namespace trainyard::data {
namespace parquet {
namespace {

constexpr std::string_view kMagic = "PAR1", kMagicOfEncrypted = "PARE";
constexpr const char* kEncrypted = "is encrypted, which is not read; write it without";

/// A file: magic, pages, footer, the footer's size in 4 bytes, magic.
struct Parts {
  std::string_view pages;  ///< from the file's beginning on
  std::string_view footer;
};

Parts parts_of(std::string_view bytes) {
  if (bytes.starts_with(kMagicOfEncrypted) || bytes.ends_with(kMagicOfEncrypted)) throw NotOffered(kEncrypted);
  if (!bytes.starts_with(kMagic)) throw NotOffered("is no Parquet file: it does not begin with PAR1");
  if (!bytes.ends_with(kMagic) || bytes.size() < 12)
    throw NotOffered("is cut off: it begins as a Parquet file and does not end as one, with PAR1; get it again");
  const size_t end = bytes.size() - kMagic.size() - 4;
  std::string_view size = bytes.substr(end, 4);
  const size_t footer = take_integer(size);
  if (footer > end - kMagic.size())
    throw Damage(fmt::format("its footer is to have {} of its {} bytes", footer, bytes.size()));
  return {.pages = bytes.substr(0, end - footer), .footer = bytes.substr(end - footer, footer)};
}

Codec codec_of(CompressionCodec codec) {
  switch (codec) {
    case CompressionCodec::Uncompressed: return Codec::None;
    case CompressionCodec::Snappy: return Codec::Snappy;
    case CompressionCodec::Gzip: return Codec::Gzip;
    case CompressionCodec::Brotli: return Codec::Brotli;
    case CompressionCodec::Lz4: return Codec::OldLz4;
    case CompressionCodec::Zstd: return Codec::Zstd;
    case CompressionCodec::Lz4Raw: return Codec::Lz4;
    case CompressionCodec::Lzo: throw NotOffered("is packed by LZO, which is not read; write it with zstd or Snappy");
  }
  throw NotOffered(fmt::format("is packed by codec number {}, which is not known here; write it with zstd or Snappy",
                               static_cast<int32_t>(codec)));
}

/// Throws where its pages cannot be read.
void check(const RowGroup& group, const std::string& column) {
  if (group.column.is_encrypted) throw NotOffered(fmt::format("the column '{}' {}", column, kEncrypted));
  if (group.column.is_elsewhere)
    throw NotOffered("has its columns in other files, as a _metadata does; name those instead");
  codec_of(group.column.codec);
}

void check_rows(const std::vector<RowGroup>& groups, int64_t rows) {
  int64_t left = rows;
  for (const RowGroup& group : groups) {
    if (group.rows > left) throw Damage(fmt::format("its row groups have more rows than the file, which has {}", rows));
    left -= group.rows;
  }
  if (left != 0) throw Damage(fmt::format("its row groups have {} of {} rows", rows - left, rows));
}

class PagesOfText final : public TextRows {
 public:
  PagesOfText(std::shared_ptr<const FileContent> file, std::shared_ptr<const ChunkOfText> chunk,
              std::vector<Page> pages)
      : file_(std::move(file)), chunk_(std::move(chunk)), pages_(std::move(pages)) {}

  void for_each(const VisitRow& visit) const override {
    in_file(file_->name, [&] {
      for (const Page& page : pages_) {
        int64_t row = page.first_row;
        chunk_->for_each(page, [&](std::string_view text) { visit(text, row++); });
      }
    });
  }

  [[nodiscard]] size_t bytes() const override {
    size_t sum = 0;
    for (const Page& page : pages_) sum += page.header.bytes + page.content.size();
    return sum;
  }

 private:
  std::shared_ptr<const FileContent> file_;
  std::shared_ptr<const ChunkOfText> chunk_;
  std::vector<Page> pages_;
};

class ParquetColumn final : public TextColumn {
 public:
  ParquetColumn(FileContent file, const std::string& column)
      : file_(std::make_shared<const FileContent>(std::move(file))) {
    in_file(file_->name, [&] { read_metadata(column); });
  }

  std::shared_ptr<const TextRows> next() override {
    return in_file(file_->name, [&]() -> std::shared_ptr<const TextRows> {
      for (;;) {
        std::vector<Page> pages = next_pages();
        if (!pages.empty()) return std::make_shared<const PagesOfText>(file_, chunk_, std::move(pages));
        if (group_ == groups_.size()) return nullptr;
        const RowGroup& group = groups_[group_++];
        pages_.emplace(content_, group.column, std::exchange(row_, row_ + group.rows));
        chunk_ = nullptr;
      }
    });
  }

  [[nodiscard]] int64_t rows() const override { return rows_; }

 private:
  void read_metadata(const std::string& column) {
    const Parts parts = parts_of(file_->bytes);
    content_ = parts.pages;
    const FileMetaData metadata = read_file_metadata(parts.footer);
    const TextLeaf leaf = find_text_column(metadata.schema, column);
    column_ = {.name = column, .is_nullable = leaf.is_nullable};
    rows_ = metadata.rows;
    groups_ = read_row_groups(parts.footer, leaf.number);
    for (const RowGroup& group : groups_) {
      check(group, column);
      if (group.column.values != group.rows)
        throw Damage(fmt::format("a row group of {} rows has a column of {} values", group.rows, group.column.values));
    }
    check_rows(groups_, rows_);
  }

  /// Pages of the row group, so many that a worker has some time to spend on them. None at its end.
  std::vector<Page> next_pages() {
    std::vector<Page> pages;
    for (size_t bytes = 0; pages_ && bytes < kRowsBytes;) {
      const auto page = pages_->next();
      if (!page) break;
      bytes += page->header.bytes + bytes_of_text(*page, pages_->dictionary());
      pages.push_back(*page);
    }
    if (!pages.empty() && !chunk_)
      chunk_ = std::make_shared<const ChunkOfText>(column_, codec_of(groups_[group_ - 1].column.codec),
                                                   pages_->dictionary());
    return pages;
  }

  std::shared_ptr<const FileContent> file_;
  std::string_view content_;
  ColumnOfText column_;
  int64_t rows_ = 0, row_ = 1;  ///< row_: the first of the next row group
  std::vector<RowGroup> groups_;
  size_t group_ = 0;  ///< the next
  std::optional<PagesOfChunk> pages_;         ///< of the row group before that
  std::shared_ptr<const ChunkOfText> chunk_;  ///< likewise, once there is a page of it
};

class ParquetRecordColumn final : public TextColumn {
 public:
  ParquetRecordColumn(FileContent file, const RecordColumns& columns) : file_(std::move(file)) {
    in_file(file_.name, [&] { read_metadata(columns); });
  }

  std::shared_ptr<const TextRows> next() override {
    return in_file(file_.name, [&]() -> std::shared_ptr<const TextRows> {
      while (left_ == 0)
        if (!begin_group()) return nullptr;
      const int64_t first = row_;
      std::vector<std::string> rows;
      for (size_t bytes = 0; left_ > 0 && bytes < kRowsBytes; --left_, ++row_) {
        rows.push_back(group_->next());
        bytes += rows.back().size();
      }
      if (left_ == 0) group_->expect_end();
      return std::make_shared<const RecordRows>(std::move(rows), first);
    });
  }

  [[nodiscard]] int64_t rows() const override { return rows_; }

 private:
  void read_metadata(const RecordColumns& columns) {
    const Parts parts = parts_of(file_.bytes);
    content_ = parts.pages;
    const FileMetaData metadata = read_file_metadata(parts.footer);
    record_ = find_record(metadata.schema, columns);
    rows_ = metadata.rows;
    for (const Leaf& leaf : record_.leaves) {
      groups_.push_back(read_row_groups(parts.footer, leaf.number));
      for (const RowGroup& group : groups_.back()) check(group, leaf.name);
      check_rows(groups_.back(), rows_);
    }
    if (groups_.empty())
      throw NotOffered(fmt::format("the column '{}' holds neither texts nor numbers", columns.needed));
  }

  /// False where there is none any more.
  bool begin_group() {
    if (next_group_ == groups_.front().size()) return false;
    std::vector<std::unique_ptr<LeafReader>> leaves;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const ColumnChunk& chunk = groups_[i][next_group_].column;
      leaves.push_back(std::make_unique<LeafReader>(content_, record_.leaves[i], chunk, codec_of(chunk.codec)));
    }
    left_ = groups_.front()[next_group_++].rows;
    group_.emplace(record_, std::move(leaves));
    return true;
  }

  FileContent file_;
  std::string_view content_;
  Record record_;
  std::vector<std::vector<RowGroup>> groups_;  ///< of each leaf
  int64_t rows_ = 0, row_ = 1;                 ///< row_: the next
  size_t next_group_ = 0;
  std::optional<RecordReader> group_;
  int64_t left_ = 0;  ///< rows of it
};

FileContent content_of(const std::filesystem::path& file) {
  const auto mapped = std::make_shared<const MappedFile>(file);
  return {.name = file.string(), .bytes = mapped->text(), .memory = mapped};
}

}  // namespace
}  // namespace parquet

std::unique_ptr<TextColumn> open_parquet(const std::filesystem::path& file, const std::string& column) {
  return read_parquet(parquet::content_of(file), column);
}

std::unique_ptr<TextColumn> read_parquet(FileContent content, const std::string& column) {
  return std::make_unique<parquet::ParquetColumn>(std::move(content), column);
}

std::unique_ptr<TextColumn> open_parquet(const std::filesystem::path& file, const RecordColumns& columns) {
  return read_parquet(parquet::content_of(file), columns);
}

std::unique_ptr<TextColumn> read_parquet(FileContent content, const RecordColumns& columns) {
  return std::make_unique<parquet::ParquetRecordColumn>(std::move(content), columns);
}

}  // namespace trainyard::data
