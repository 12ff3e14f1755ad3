# SPDX-License-Identifier: Apache-2.0
"""Many threads (first argument, default 40) that run native code without the interpreter's lock
nearly all the time, beside one that sleeps and wakes. Those made first run other code than those
made last, as much of it."""

import sys
import threading
import time
import zlib

import control

DATA = bytes(256 << 20)  # a quarter of a second for each call, and hardly any memory: it is zero


def made_first():
    zlib.adler32(DATA)


def made_last():
    zlib.crc32(DATA)


def work(call, begun):  # entry
    begun.release()  # -> threading.py
    while control.running:
        call()  # -> made_*


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    begun = threading.Semaphore(0)
    for i in range(count):
        call = made_first if i < count // 2 else made_last
        name = "native-%d" % i
        threading.Thread(target=work, args=(call, begun), name=name, daemon=True).start()
    for _ in range(count):
        begun.acquire()
    control.ready(threads=count)
    while control.running:
        time.sleep(0.005)


if __name__ == "__main__":
    main()
