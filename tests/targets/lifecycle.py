# SPDX-License-Identifier: Apache-2.0
"""A program that after some work does what its first argument says: exit, exec, fork or kill.

The second argument is how long it works before that, in seconds.
"""

import os
import signal
import sys
import time

import control


def work(n):
    total = 0
    for i in range(n):
        total += i
    return total


def child_work(n):
    return work(n)  # -> work


def after_exec():
    while control.running:
        work(300)  # -> work


def main():
    deed = sys.argv[1]
    end = time.perf_counter() + float(sys.argv[2])
    control.ready()  # -> ready
    if deed == "after-exec":
        after_exec()  # -> after_exec
    while control.running:
        work(300)  # -> work
        control.progress[0] += 1
        if deed == "none" or time.perf_counter() < end:
            continue
        if deed == "exit":
            sys.exit(7)
        if deed == "abort":
            os.kill(os.getpid(), signal.SIGKILL)
        if deed == "exec":
            os.execv(sys.executable, [sys.executable, sys.argv[0], "after-exec", "0"])
        if deed == "exec-other":
            os.execv("/bin/sleep", ["sleep", "30"])
        if deed == "fork":
            fork_and_go_on()  # -> fork_and_go_on


def fork_and_go_on():
    for _ in range(3):
        if os.fork() == 0:
            for _ in range(200):
                child_work(300)  # -> child_work
            os._exit(0)
    for _ in range(3):
        os.wait()


if __name__ == "__main__":
    main()  # -> main
