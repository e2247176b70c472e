#include "kube/line_splitter.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace trainyard::kube {
namespace {

std::vector<std::string> lines_of(const std::string& stream, size_t piece, size_t limit = 100) {
  LineSplitter splitter(limit);
  std::vector<std::string> lines;
  for (size_t start = 0; start < stream.size(); start += piece) {
    const bool fits = splitter.feed(std::string_view(stream).substr(start, piece), [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    });
    if (!fits) lines.emplace_back("TOO LONG");
    if (!fits) break;
  }
  return lines;
}

TEST_CASE("lines of a stream are the same however it is cut into pieces", "[kube]") {
  const std::string stream = "{\"a\":1}\n\n{\"b\":\"\xc3\xa4\"}\n{}\npartial";
  for (size_t piece = 1; piece <= stream.size(); ++piece)
    CHECK(lines_of(stream, piece) == std::vector<std::string>{"{\"a\":1}", "{\"b\":\"\xc3\xa4\"}", "{}"});
}

TEST_CASE("a line over the limit ends the stream, whether or not its end has come", "[kube]") {
  for (const size_t piece : {1, 3, 64}) {
    CHECK(lines_of("short\n" + std::string(11, 'x') + "\n", piece, 10) ==
          std::vector<std::string>{"short", "TOO LONG"});
    CHECK(lines_of("short\n" + std::string(11, 'x'), piece, 10) == std::vector<std::string>{"short", "TOO LONG"});
    CHECK(lines_of(std::string(10, 'x') + "\n", piece, 10) == std::vector<std::string>{std::string(10, 'x')});
  }
}

TEST_CASE("nothing is given any more once the receiver has had enough", "[kube]") {
  LineSplitter splitter(100);
  int count = 0;
  CHECK(splitter.feed("a\nb\nc\n", [&](std::string_view) { return ++count < 2; }));
  CHECK(count == 2);
}

}  // namespace
}  // namespace trainyard::kube
