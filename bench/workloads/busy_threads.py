# SPDX-License-Identifier: Apache-2.0
"""What memory a program takes more for as it samples itself:

    busy_threads.py OPTIONS THREADS SECONDS

OPTIONS are those of pystrobe.Profiler as JSON. stdout: JSON with the most that was resident beyond
what was before, in kB, while it sampled (`sampling_kb`), its stop included (`peak_kb`), and what is
left (`left_kb`). Runs on any interpreter that has the package.
"""

import json
import sys
import threading
import time
import zlib

import pystrobe

# What a program that profiles itself has loaded before.
PROFILER = pystrobe.Profiler(**json.loads(sys.argv[1]))
DATA = bytes(range(256)) * 400
DEPTH = 20
ended = threading.Event()


def resident_kb(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def burn(depth):
    if depth:
        burn(depth - 1)
        return
    while not ended.is_set():
        zlib.compress(DATA, 6)
        sum(range(2000))


threads = [threading.Thread(target=burn, args=(DEPTH,)) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
time.sleep(1)
# From here on VmHWM is the most that was resident.
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = resident_kb("VmRSS")
PROFILER.start()
time.sleep(float(sys.argv[3]))
sampling = resident_kb("VmHWM") - before
PROFILER.stop()
peak, left = resident_kb("VmHWM") - before, resident_kb("VmRSS") - before
ended.set()
for thread in threads:
    thread.join()
print(json.dumps({"sampling_kb": sampling, "peak_kb": peak, "left_kb": left}))
