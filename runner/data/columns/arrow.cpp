#include "data/columns/arrow.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/files.h"
#include "data/columns/arrow_batch.h"
#include "data/columns/arrow_layout.h"
#include "data/columns/arrow_messages.h"
#include "data/columns/damage.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

/// Rows [begin, end) of a batch.
class ArrowRows final : public TextRows {
 public:
  struct Range {
    size_t begin, end;
    int64_t first_row;  ///< of the file, from 1
    size_t bytes;
  };
  ArrowRows(std::shared_ptr<const FileContent> file, std::shared_ptr<const ArrowBatch> batch, const Range& range)
      : file_(std::move(file)), batch_(std::move(batch)), range_(range) {}

  void for_each(const VisitRow& visit) const override {
    in_file(file_->name, [&] {
      for (size_t row = range_.begin; row < range_.end; ++row)
        visit(batch_->text(row), range_.first_row + static_cast<int64_t>(row - range_.begin));
    });
  }
  [[nodiscard]] size_t bytes() const override { return range_.bytes; }

 private:
  std::shared_ptr<const FileContent> file_;
  std::shared_ptr<const ArrowBatch> batch_;
  Range range_;
};

class ArrowColumn final : public TextColumn {
 public:
  ArrowColumn(FileContent file, std::string column)
      : file_(std::make_shared<const FileContent>(std::move(file))), column_(std::move(column)) {
    in_file(file_->name, [&] { read_schema(); });
  }

  std::shared_ptr<const TextRows> next() override {
    return in_file(file_->name, [&]() -> std::shared_ptr<const TextRows> {
      while (!batch_ || at_ == batch_->rows())
        if (!read_batch()) return nullptr;
      ArrowRows::Range range{.begin = at_, .end = at_, .first_row = row_, .bytes = 0};
      for (; range.end < batch_->rows() && range.bytes < kRowsBytes; ++range.end, ++row_) {
        if (batch_->is_null(range.end))
          throw NotOffered(fmt::format("row {} of the column '{}' has no text (null)", row_, column_));
        range.bytes += batch_->text(range.end).size() + 1;
      }
      at_ = range.end;
      return std::make_shared<const ArrowRows>(file_, batch_, range);
    });
  }

  [[nodiscard]] int64_t rows() const override { return rows_; }

 private:
  void read_schema() {
    messages_.emplace(file_->bytes);
    const auto schema = messages_->next();
    if (!schema) throw Damage("it has no schema");
    place_ = place_of(schema->message(), column_);
    ArrowMessages all = *messages_;
    while (const auto message = all.next())
      if (const fbs::RecordBatch* const batch = message->message().header_as_RecordBatch()) count(batch->length());
  }

  void count(int64_t rows) {
    constexpr int64_t kMost = int64_t{1} << 48;
    if (rows < 0 || rows > kMost - rows_) throw Damage(fmt::format("a batch has {} rows", rows));
    rows_ += rows;
  }

  /// False at the end of the file.
  bool read_batch() {
    while (const auto message = messages_->next())
      if (const fbs::RecordBatch* const batch = message->message().header_as_RecordBatch()) {
        batch_ = std::make_shared<const ArrowBatch>(*batch, message->body, place_);
        at_ = 0;
        return true;
      }
    return false;
  }

  std::shared_ptr<const FileContent> file_;
  std::string column_;
  std::optional<ArrowMessages> messages_;
  ArrowPlace place_;
  int64_t rows_ = 0;
  std::shared_ptr<const ArrowBatch> batch_;
  size_t at_ = 0;    ///< the next row in the batch
  int64_t row_ = 1;  ///< the same in the file
};

}  // namespace

std::unique_ptr<TextColumn> open_arrow(const fs::path& file, const std::string& column) {
  const auto mapped = std::make_shared<const MappedFile>(file);
  return read_arrow({.name = file.string(), .bytes = mapped->text(), .memory = mapped}, column);
}

std::unique_ptr<TextColumn> read_arrow(FileContent content, const std::string& column) {
  return std::make_unique<ArrowColumn>(std::move(content), column);
}

}  // namespace trainyard::data
