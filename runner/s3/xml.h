#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::s3 {

/// An element of XML, as S3 and STS answer: with elements or a text in it.
struct Element {
  std::string name;  ///< with its prefix, where it has one
  std::string text;  ///< all text directly in it
  std::vector<Element> children;

  /// The first child of that name; null where there is none.
  [[nodiscard]] const Element* find(std::string_view child) const;
  /// Its text; "" where there is no such child.
  [[nodiscard]] std::string text_of(std::string_view child) const;
};

/// The root element of a document in UTF-8. Attributes are passed over. Throws InputError, beginning with `where`, for
/// what is no such document, and for what no server of S3 sends and a reader should not follow: document types, CDATA,
/// entities of its own, and elements that are 16 deep or a million.
Element parse_xml(std::string_view text, const std::string& where);

}  // namespace trainyard::s3
