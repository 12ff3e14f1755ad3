// SPDX-License-Identifier: Apache-2.0
//
// Stands in for WriteHtml() as long as html.cpp does not define it: the linker takes the first of
// the two in the library, and html.cpp comes first.
#include "profiler/write/writer.h"

namespace pystrobe::write {

Result<void> WriteHtml(const Profile&, const WriteOptions&, Output&) {
  return Fail(ErrorCode::kUnsupported, "this build cannot write HTML");
}

}  // namespace pystrobe::write
