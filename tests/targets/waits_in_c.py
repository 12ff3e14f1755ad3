# SPDX-License-Identifier: Apache-2.0
"""A thread waits in epoll_wait, called by C code that does not wait again when a signal or a stop
has ended it (signal(7)); another one works.

Truth: how often it was ended so.
"""

import ctypes
import errno
import os
import select
import threading

import control

LIBC = ctypes.CDLL(None, use_errno=True)
EINTR_COUNT = [0]


def wait(poll):  # entry
    events = ctypes.create_string_buffer(12)
    while control.running:
        found = LIBC.epoll_wait(poll.fileno(), events, 1, -1)
        if found < 0 and ctypes.get_errno() == errno.EINTR:
            EINTR_COUNT[0] += 1


def work(n):
    total = 0
    for i in range(n):
        total += i
    return total


def main():
    poll = select.epoll()
    ends, end = os.pipe()
    poll.register(ends)
    waiter = threading.Thread(target=wait, args=(poll,), name="waits")
    waiter.start()
    control.ready()  # -> ready
    while control.running:
        work(5000)  # -> work
        control.progress[0] += 1
    os.write(end, b"!")
    waiter.join()
    control.truth(interrupted=EINTR_COUNT[0])


if __name__ == "__main__":
    main()  # -> main
