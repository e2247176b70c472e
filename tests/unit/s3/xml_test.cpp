#include "s3/xml.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"

using namespace trainyard;
using namespace trainyard::s3;

TEST_CASE("s3: elements, texts and references of an answer are read", "[s3]") {
  const Element root = parse_xml(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<A xmlns='x' b = \"<&>\"> <B>1 &lt; 2 &amp;&#x26;&#228;</B>"
      "<C/><B>again</B><D>\n x </D></A>\n",
      "here");
  CHECK(root.name == "A");
  REQUIRE(root.children.size() == 4);
  CHECK(root.children[0].text == "1 < 2 &&ä");
  CHECK(root.text_of("B") == "1 < 2 &&ä");
  CHECK(root.text_of("C").empty());
  CHECK(root.text_of("D") == "x");
  CHECK(root.find("E") == nullptr);
}

TEST_CASE("s3: what no server of S3 sends is refused", "[s3]") {
  const std::string deep = [] {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "<a>";
    return text;
  }();
  const std::string text =
      GENERATE_COPY(std::string(), std::string("{}"), std::string("<a>"), std::string("<a></b>"),
                    std::string("<a></a>x"), std::string("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
                    std::string("<a>&b;</a>"), std::string("<a>&#0;</a>"), std::string("<a>&#xD800;</a>"),
                    std::string("<a>&#x110000;</a>"), std::string("<a>&</a>"), std::string("<a><![CDATA[x]]></a>"),
                    std::string("<a b=c></a>"), std::string("<a b='c></a>"), std::string("<?xml <a></a>"), deep);
  CAPTURE(text);
  CHECK_THROWS_WITH(parse_xml(text, "here"), Catch::StartsWith("here: the answer is no XML as S3 sends it: "));
}
