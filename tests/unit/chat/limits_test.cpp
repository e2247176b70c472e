#include <catch2/catch.hpp>

#include "base/error.h"
#include "chat/template.h"

// What a template may not do, and in which words it is told so.
namespace trainyard::chat {
namespace {
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

std::string rendered_with(const std::string& source, const Settings& settings = {}) {
  return Template(source, "t.jinja").render({{"l", {1, 2}}, {"d", {{"a", 1}}}}, settings).text;
}

std::string repeated_text(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("limits: steps, sizes and depths end with an error that says which", "[chat]") {
  const std::string loops = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}";
  CHECK_THROWS_WITH(rendered_with(loops), Contains("more than 20,000,000 steps"));
  CHECK_THROWS_WITH(rendered_with(loops, {.limits = {.text_bytes = 100}}), Contains("a text of more than 100 B"));
  const std::string looks = "{% set s = 'ab' * 9000000 %}{% for a in range(9999) %}{{ 'c' in s }}{% endfor %}";
  CHECK_THROWS_WITH(rendered_with(looks), Contains("more than 20,000,000 steps"));
  CHECK_THROWS_WITH(rendered_with("{{ 'abc' * 10000000000000 }}"), Contains("more than"));
  CHECK_THROWS_WITH(rendered_with("{{ [1] * 10000000000000 }}"), Contains("more than 1.00 GiB of texts and lists"));
  CHECK_THROWS_WITH(
      rendered_with("{% set n = namespace(s='ab') %}{% for i in range(40) %}{% set n.s = n.s + n.s %}{% endfor %}"),
      Contains("more than 64.0 MiB"));
  CHECK_THROWS_WITH(
      rendered_with("{% set n = namespace(s=[]) %}{% for i in range(900) %}{% set n.s = [n.s] %}{% endfor %}"),
      Contains("700 deep"));
  CHECK_THROWS_WITH(rendered_with("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), Contains("more than 700 deep"));
  CHECK_THROWS_WITH(rendered_with("{{ " + repeated_text("[", 200) + "1" + repeated_text("]", 200) + " }}"),
                    Contains("more than 100 deep"));
  CHECK_THROWS_WITH(rendered_with("{{ " + repeated_text("not ", 200) + "1 }}"), Contains("more than 100 deep"));
  CHECK_THROWS_WITH(rendered_with(repeated_text("{% if l %}", 200)), Contains("more than 100 deep"));
  CHECK_THROWS_WITH(rendered_with("{{ 1" + repeated_text(" + 1", 500) + " }}"), Contains("more than 300 parts"));
}

TEST_CASE("errors: the file and the line of the template stand before what is wrong", "[chat]") {
  CHECK_THROWS_WITH(rendered_with("a\n\n{{ x.y }}"), Catch::Matchers::Equals("t.jinja:3: 'x' is undefined"));
  CHECK_THROWS_WITH(rendered_with("{% if l %}\n{{ raise_exception('no\x01') }}{% endif %}"),
                    StartsWith("t.jinja:2: the template says: no"));
  CHECK_THROWS_WITH(rendered_with("\n{% include 'x' %}"),
                    Catch::Matchers::Equals("t.jinja:2: the tag 'include' is not offered in chat templates here"));
  CHECK_THROWS_WITH(rendered_with("{{ l|wordwrap }}"), Contains("the filter 'wordwrap' is not offered"));
  CHECK_THROWS_WITH(rendered_with("{{ 'a'.zfill(2) }}"), Contains("the method 'zfill' of the type str is not offered"));
  CHECK_THROWS_WITH(rendered_with("{{ l is sameas l }}"), Contains("the test 'sameas' is not offered"));
  CHECK_THROWS_WITH(rendered_with("{{ cycler() }}"), Contains("the name 'cycler' is not offered"));
  CHECK_THROWS_WITH(rendered_with("{{ '%s' % 1 }}"), Contains("'%' that fills a text is not offered"));
  CHECK_THROWS_WITH(rendered_with("{{ l.append(3) }}"), Contains("'append' changes a list"));
  CHECK_THROWS_WITH(rendered_with("{% for a in l %}\n"), Contains("endfor"));
  CHECK_THROWS_WITH(rendered_with("{{ 9223372036854775807 + 1 }}"), Contains("beyond 64 bits"));
  CHECK_THROWS_WITH(rendered_with("{{ (1|e) + 'a' }}"), Contains("|safe or |escape"));
  CHECK_THROWS_WITH(rendered_with("{{ l|map('string') }}"), Contains("the text of a value of the type generator"));
  CHECK_THROWS_WITH(rendered_with("{{ 'stra\u00dfe'|upper }}"), Contains("another case of the letter U+00DF"));
  CHECK_THROWS_WITH(rendered_with("\xff"), Contains("t.jinja"));
}

TEST_CASE("strftime_now: it prints the time that it is given, and is refused without one", "[chat]") {
  std::tm now{};
  now.tm_year = 124, now.tm_mon = 6, now.tm_mday = 26, now.tm_hour = 9, now.tm_wday = 5, now.tm_yday = 207;
  CHECK(rendered_with("{{ strftime_now('%d %b %Y %H:%M %A%Z') }}", {.now = now}) == "26 Jul 2024 09:00 Friday");
  CHECK_THROWS_WITH(rendered_with("{{ strftime_now('%d') }}"), Contains("where no time is given"));
}

}  // namespace trainyard::chat
