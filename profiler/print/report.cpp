// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/report.h"

#include "profiler/print/gpu_idle.h"
#include "profiler/print/gpu_table.h"
#include "profiler/print/quality.h"

namespace pystrobe::print {

std::string FormatReport(const Profile& profile, const ReportOptions& options) {
  const RecordingSource& recording = *profile.recording;
  const int width = options.table.terminal.width;
  const QualityOptions quality{width, options.of_a_part, options.cut_off};
  std::string text = options.with_table ? FormatTable(profile, options.table) + "\n" : "";
  if (options.table.mode == Mode::kGpu) {
    if (options.with_table) {
      text += FormatGpuTable(recording, options.table, options.thread) + "\n";
      const std::string idle = FormatGpuIdle(recording, options.table);
      if (!options.thread && !idle.empty()) text += idle + "\n";
    }
    return text + FormatGpuQuality(recording, quality);
  }
  const bool has_note = options.with_table && !options.how_to_show_gpu.empty();
  if (has_note) text += FormatGpuNote(recording, options.how_to_show_gpu, width);
  return text + FormatQuality(recording.metadata(), recording.quality(), quality);
}

}  // namespace pystrobe::print
