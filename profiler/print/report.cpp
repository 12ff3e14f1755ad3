// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/report.h"

#include "profiler/print/gpu_idle.h"
#include "profiler/print/gpu_table.h"
#include "profiler/print/quality.h"
#include "profiler/print/range_table.h"

namespace pystrobe::print {

std::string FormatReport(const Profile& profile, const ReportOptions& options) {
  const RecordingSource& recording = *profile.recording;
  const int width = options.table.terminal.width;
  const QualityOptions quality{width, options.of_a_part, options.cut_off};
  const bool is_of_gpu = options.table.mode == Mode::kGpu;
  // Of functions by the time of their kernels, which there is not where nobody asked for it.
  const bool has_times = !is_of_gpu || !recording.gpu()->quality.launches_only;
  std::string text;
  if (options.with_table && is_of_gpu && has_times) {
    text = FormatTable(ByLauncher(profile), options.table) + "\n";
  } else if (options.with_table && !is_of_gpu) {
    text = FormatTable(profile, options.table) + "\n";
  }
  if (options.with_table && is_of_gpu) {
    text += FormatGpuTable(recording, options.table, options.thread) + "\n";
    const std::string idle = FormatGpuIdle(recording, options.table);
    if (!options.thread && !idle.empty()) text += idle + "\n";
  }
  // Of the whole recording, as the GPU's table is.
  if (options.with_table && (is_of_gpu || (recording.gpu() == nullptr && !options.of_a_part))) {
    const auto stream = is_of_gpu ? options.thread : std::nullopt;
    const std::string ranges = FormatRangeTable(recording, options.table, stream);
    if (!ranges.empty()) text += ranges + "\n";
  }
  if (is_of_gpu) return text + FormatGpuQuality(recording, quality);
  const bool has_note = options.with_table && !options.how_to_show_gpu.empty();
  if (has_note) text += FormatGpuNote(recording, options.how_to_show_gpu, width);
  return text + FormatQuality(recording.metadata(), recording.quality(), quality);
}

}  // namespace pystrobe::print
