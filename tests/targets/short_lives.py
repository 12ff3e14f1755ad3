# SPDX-License-Identifier: Apache-2.0
"""A server that has a thread for each request, as many have: it works for some milliseconds, waits
for longer, and is gone. Tells, when asked to end, what the requests took, by their own clocks."""

import threading
import time

import control

TRUTH = {"cpu_ns": 0, "wall_ns": 0, "requests": 0}
LOCK = threading.Lock()


def compute():
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < 4_000_000:
        sum(range(50))


def wait():
    time.sleep(0.020)


def handle():
    begin = time.monotonic_ns()
    compute()  # -> compute
    wait()  # -> wait
    with LOCK:
        TRUTH["cpu_ns"] += time.thread_time_ns()
        TRUTH["wall_ns"] += time.monotonic_ns() - begin
        TRUTH["requests"] += 1
    control.progress[0] += 1


def main():
    control.ready()
    begin = time.monotonic_ns()
    while control.running:
        threading.Thread(target=handle, name="request").start()
        time.sleep(0.030)
    control.truth(seconds=(time.monotonic_ns() - begin) / 1e9, **TRUTH)


if __name__ == "__main__":
    main()  # -> main
