// SPDX-License-Identifier: Apache-2.0
//
// The report page as the build made it of the sources in write/web (see web/embed.cmake).
#pragma once

#include <string_view>

namespace pystrobe::write {

/// The page is these three with the title (HTML text) and the profile (JSON) between them.
struct HtmlPage {
  std::string_view before_title;
  std::string_view before_profile;
  std::string_view after_profile;
};

/// [any thread] Views of static storage.
HtmlPage GetHtmlPage();

}  // namespace pystrobe::write
