# SPDX-License-Identifier: Apache-2.0
"""Local variables that agree to within one at every moment, and change all the time."""

import control


def work():
    count = 0
    while control.running:
        count += 1
        first = count
        second = count
    return first, second


def main():
    control.ready()
    work()


if __name__ == "__main__":
    main()
