#include "data/columns/arrow.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/files.h"
#include "data/columns/arrow_layout.h"
#include "data/columns/arrow_messages.h"
#include "data/columns/arrow_records.h"
#include "data/columns/arrow_texts.h"
#include "data/columns/damage.h"
#include "data/columns/record_rows.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

/// The texts of a record batch, and what they lie in.
struct TextsOfBatch {
  TextsOfBatch(ArrowMessage in, const ArrowPlace& place)
      : message(std::move(in)),
        buffers(*message.message().header_as_RecordBatch(), message.body),
        texts(buffers, place, buffers.rows(place.node)) {}
  ArrowMessage message;
  ArrowBuffers buffers;
  ArrowTexts texts;
};

/// Rows [begin, end) of a batch.
class ArrowRows final : public TextRows {
 public:
  struct Range {
    size_t begin, end;
    int64_t first_row;  ///< of the file, from 1
    size_t bytes;
  };
  ArrowRows(std::shared_ptr<const FileContent> file, std::shared_ptr<const TextsOfBatch> batch, const Range& range)
      : file_(std::move(file)), batch_(std::move(batch)), range_(range) {}

  void for_each(const VisitRow& visit) const override {
    in_file(file_->name, [&] {
      for (size_t row = range_.begin; row < range_.end; ++row)
        visit(batch_->texts.text(row), range_.first_row + static_cast<int64_t>(row - range_.begin));
    });
  }
  [[nodiscard]] size_t bytes() const override { return range_.bytes; }

 private:
  std::shared_ptr<const FileContent> file_;
  std::shared_ptr<const TextsOfBatch> batch_;
  Range range_;
};

/// The record batches of a file, in order.
class ArrowBatches {
 public:
  /// Throws Damage, and NotOffered for what is no such file.
  explicit ArrowBatches(std::string_view bytes) : messages_(bytes) {
    const auto schema = messages_.next();
    if (!schema) throw Damage("it has no schema");
    schema_ = *schema;
    ArrowMessages all = messages_;
    while (const auto message = all.next())
      if (const fbs::RecordBatch* const batch = message->message().header_as_RecordBatch()) count(batch->length());
  }

  [[nodiscard]] const fbs::Message& schema() const { return schema_.message(); }
  [[nodiscard]] int64_t rows() const { return rows_; }
  /// None at the end of the file.
  std::optional<ArrowMessage> next() {
    while (auto message = messages_.next())
      if (message->message().header_as_RecordBatch()) return message;
    return std::nullopt;
  }

 private:
  void count(int64_t rows) {
    constexpr int64_t kMost = int64_t{1} << 48;
    if (rows < 0 || rows > kMost - rows_) throw Damage(fmt::format("a batch has {} rows", rows));
    rows_ += rows;
  }

  ArrowMessages messages_;
  ArrowMessage schema_;
  int64_t rows_ = 0;
};

class ArrowColumn final : public TextColumn {
 public:
  ArrowColumn(FileContent file, std::string column)
      : file_(std::make_shared<const FileContent>(std::move(file))), column_(std::move(column)) {
    in_file(file_->name, [&] {
      batches_.emplace(file_->bytes);
      place_ = place_of(batches_->schema(), column_);
    });
  }

  std::shared_ptr<const TextRows> next() override {
    return in_file(file_->name, [&]() -> std::shared_ptr<const TextRows> {
      while (!batch_ || at_ == batch_->texts.rows()) {
        auto message = batches_->next();
        if (!message) return nullptr;
        batch_ = std::make_shared<const TextsOfBatch>(*std::move(message), place_);
        at_ = 0;
      }
      ArrowRows::Range range{.begin = at_, .end = at_, .first_row = row_, .bytes = 0};
      for (; range.end < batch_->texts.rows() && range.bytes < kRowsBytes; ++range.end, ++row_) {
        if (batch_->texts.is_null(range.end))
          throw NotOffered(fmt::format("row {} of the column '{}' has no text (null)", row_, column_));
        range.bytes += batch_->texts.text(range.end).size() + 1;
      }
      at_ = range.end;
      return std::make_shared<const ArrowRows>(file_, batch_, range);
    });
  }

  [[nodiscard]] int64_t rows() const override { return batches_->rows(); }

 private:
  std::shared_ptr<const FileContent> file_;
  std::string column_;
  std::optional<ArrowBatches> batches_;
  ArrowPlace place_;
  std::shared_ptr<const TextsOfBatch> batch_;
  size_t at_ = 0;    ///< the next row in the batch
  int64_t row_ = 1;  ///< the same in the file
};

class ArrowRecordColumn final : public TextColumn {
 public:
  ArrowRecordColumn(FileContent file, const RecordColumns& columns) : file_(std::move(file)) {
    in_file(file_.name, [&] {
      batches_.emplace(file_.bytes);
      fields_ = fields_of(batches_->schema(), columns);
    });
  }

  std::shared_ptr<const TextRows> next() override {
    return in_file(file_.name, [&]() -> std::shared_ptr<const TextRows> {
      while (!batch_ || at_ == batch_->rows()) {
        batch_.reset();
        message_ = batches_->next();
        if (!message_) return nullptr;
        batch_.emplace(*message_->message().header_as_RecordBatch(), message_->body, fields_);
        at_ = 0;
      }
      std::vector<std::string> rows;
      for (size_t bytes = 0; at_ < batch_->rows() && bytes < kRowsBytes; ++at_) {
        rows.push_back(batch_->json(at_));
        bytes += rows.back().size();
      }
      const int64_t first = row_;
      row_ += std::ssize(rows);
      return std::make_shared<const RecordRows>(std::move(rows), first);
    });
  }

  [[nodiscard]] int64_t rows() const override { return batches_->rows(); }

 private:
  FileContent file_;
  std::optional<ArrowBatches> batches_;
  std::vector<ArrowField> fields_;
  std::optional<ArrowMessage> message_;  ///< of the batch
  std::optional<ArrowRecords> batch_;
  size_t at_ = 0;    ///< the next row in the batch
  int64_t row_ = 1;  ///< the same in the file
};

FileContent content_of(const fs::path& file) {
  const auto mapped = std::make_shared<const MappedFile>(file);
  return {.name = file.string(), .bytes = mapped->text(), .memory = mapped};
}

}  // namespace

std::unique_ptr<TextColumn> open_arrow(const fs::path& file, const std::string& column) {
  return read_arrow(content_of(file), column);
}

std::unique_ptr<TextColumn> read_arrow(FileContent content, const std::string& column) {
  return std::make_unique<ArrowColumn>(std::move(content), column);
}

std::unique_ptr<TextColumn> open_arrow(const fs::path& file, const RecordColumns& columns) {
  return read_arrow(content_of(file), columns);
}

std::unique_ptr<TextColumn> read_arrow(FileContent content, const RecordColumns& columns) {
  return std::make_unique<ArrowRecordColumn>(std::move(content), columns);
}

}  // namespace trainyard::data
