#pragma once

#include <curl/curl.h>

#include <memory>
#include <new>

// libcurl's handles, which own what they stand for. Only the sources that use one link libcurl.
namespace trainyard {

template <auto Destroy>
struct CurlDestroyer {  // a destructor has nobody to tell, so the result is dropped
  void operator()(auto* handle) const noexcept { static_cast<void>(Destroy(handle)); }
};
using CurlEasy = std::unique_ptr<CURL, CurlDestroyer<curl_easy_cleanup>>;
using CurlList = std::unique_ptr<curl_slist, CurlDestroyer<curl_slist_free_all>>;
using CurlUrl = std::unique_ptr<CURLU, CurlDestroyer<curl_url_cleanup>>;
using CurlText = std::unique_ptr<char, CurlDestroyer<curl_free>>;

/// Adds a line to `list`, which may be null. Throws std::bad_alloc, and the list is as it was.
inline void append(CurlList& list, const char* line) {
  curl_slist* const longer = curl_slist_append(list.get(), line);
  if (!longer) throw std::bad_alloc();
  static_cast<void>(list.release());
  list.reset(longer);
}

}  // namespace trainyard
