# SPDX-License-Identifier: Apache-2.0
"""Python above and below C++ of a pybind11 module, whose folder is named."""

import sys

import control

sys.path.append(sys.argv[1])
import particles_module

SEEN = [0.0]


def remember(energy):
    for _ in range(2000):
        SEEN[0] += energy


def simulate(system):
    system.observe(10, remember)  # -> remember


def main():
    system = particles_module.System(400)
    control.ready()  # -> ready
    while control.running:
        simulate(system)  # -> simulate
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
