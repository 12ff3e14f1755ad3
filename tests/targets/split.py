# SPDX-License-Identifier: Apache-2.0
"""Uses the CPU in Python, in C and in the kernel, each in a function of its own.

Truth: user and system time of each, as getrusage tells them.
"""

import mmap
import resource
import time
import zlib

import control

DATA = bytes(1 << 16)
PAGE = mmap.PAGESIZE


def until(end):
    return time.thread_time() < end


def python(end):
    total = 0
    while until(end):  # -> until
        for i in range(2000):
            total += i * i % 7


def native(end):
    while until(end):  # -> until
        for _ in range(50):
            zlib.crc32(DATA)


def calls(end):
    with open("/dev/zero", "rb", buffering=0) as zeros:
        into = bytearray(1 << 18)
        while until(end):  # -> until
            for _ in range(20):
                zeros.readinto(into)


def faults(end):
    while until(end):  # -> until
        memory = mmap.mmap(-1, 1024 * PAGE)
        for at in range(0, 1024 * PAGE, PAGE):
            memory[at] = 1
        memory.close()


def main():
    used = {work.__name__: [0.0, 0.0] for work in (python, native, calls, faults)}
    control.ready()  # -> ready
    while control.running:
        for work in (python, native, calls, faults):
            before = resource.getrusage(resource.RUSAGE_SELF)
            work(time.thread_time() + 0.05)  # -> python, native, calls, faults
            after = resource.getrusage(resource.RUSAGE_SELF)
            used[work.__name__][0] += after.ru_utime - before.ru_utime
            used[work.__name__][1] += after.ru_stime - before.ru_stime
    control.truth(used=used)


if __name__ == "__main__":
    main()  # -> main
