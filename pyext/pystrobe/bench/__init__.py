# SPDX-License-Identifier: Apache-2.0
"""``pystrobe bench``: what profilers cost a program on this machine, by a program of calls that is
timed with each and without it by turns. A command, no library: ``python -m pystrobe.bench
--help``."""
