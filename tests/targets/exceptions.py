# SPDX-License-Identifier: Apache-2.0
"""Stacks that are cut by exceptions at several heights, with handlers and finally blocks."""

import control


class Refused(Exception):
    pass


def refuse(n):
    if n & 1:
        raise Refused(n)
    raise ValueError(n)


def cleanup(n):
    return n + 1


def lower(n):
    try:
        refuse(n)  # -> refuse
    finally:
        cleanup(n)  # -> cleanup


def catch_some(n):
    try:
        lower(n)  # -> lower
    except Refused:
        return cleanup(n)  # -> cleanup
    return n


def catch_rest(n):
    try:
        return catch_some(n)  # -> catch_some
    except ValueError:
        return cleanup(-n)  # -> cleanup


def plunge(n):
    if n == 0:
        raise Refused(n)
    plunge(n - 1)  # -> plunge


def rescue():
    try:
        plunge(12)  # -> plunge
    except Refused:
        return cleanup(0)  # -> cleanup
    return 0


def main():
    control.ready()  # -> ready
    while control.running:
        for n in range(16):
            catch_rest(n)  # -> catch_rest
        rescue()  # -> rescue
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
