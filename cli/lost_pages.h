// SPDX-License-Identifier: Apache-2.0
//
// ELF files are mapped by libdw while it reads them. One that is cut short in place meanwhile, as
// `strip` and `cp` do, has no pages behind its new end, and whoever touches them gets SIGBUS
// (mmap(2)). That must not cost the recording.
#pragma once

namespace pystrobe::cli {

/// From now on pages that mapped files have lost read as zeros, in every thread that does not block
/// SIGBUS: to libdw an end of its tables, so that names are not found or stacks are cut. A SIGBUS
/// for any other reason ends the process as before.
void ReadLostPagesAsZeros();

}  // namespace pystrobe::cli
