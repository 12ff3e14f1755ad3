# SPDX-License-Identifier: Apache-2.0
"""asyncio tasks of nested awaits, so that a stack grows and is cut at every await."""

import asyncio

import control


def compute(n):
    total = 0
    for i in range(n):
        total += i
    return total


async def low(n):
    compute(n)  # -> compute
    await asyncio.sleep(0)  # -> tasks.py
    return compute(n)  # -> compute


async def mid(n):
    value = await low(n)  # -> low
    return value + compute(n)  # -> compute


async def high(n):  # entry
    total = 0
    for _ in range(4):
        total += await mid(n)  # -> mid
    return total


async def numbers(n):
    for i in range(n):
        compute(3)  # -> compute
        await asyncio.sleep(0)  # -> tasks.py
        yield i


async def drain(n):  # entry
    total = 0
    async for value in numbers(n):  # -> numbers, base_events.py
        total += value
    return total


async def main():  # entry
    control.ready()  # -> ready
    while control.running:
        await asyncio.gather(high(5), high(9), drain(4))  # -> high, drain, tasks.py
        control.progress[0] += 1


if __name__ == "__main__":
    asyncio.run(main())  # -> main, runners.py
