# SPDX-License-Identifier: Apache-2.0
"""Programs of gevent and uvloop that sample themselves: their signals, timers and results are what
they would be, and each stack is one that the program can have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from own_program import answer

pytest.importorskip("pystrobe", reason="the package is not installed: make build")

OPTIONS = pytest.mark.parametrize(
    "options", ["mode='cpu'", "mode='cpu', native=True", "mode='wall'"]
)

#: Functions of the program alone, root first, of each stack.
OWN_STACKS = """
import json, os, signal, sys, pystrobe

def own_stacks(profile):
    return sorted({"/".join(f.function for f in stack.frames if f.file == "<string>")
        for stack in profile.stacks()})
"""

GREENLETS = """
import gevent, gevent.queue

def spin_a(): spin(0.002)
def spin_b(): spin(0.002)
def inner_a():
    spin_a()
    gevent.sleep(0)
    spin_a()
def inner_b(queue, i):
    spin_b()
    queue.put(i)
    spin_b()
def task_a():
    for _ in range(40):
        inner_a()
def task_b(queue):
    for i in range(40):
        inner_b(queue, i)
        gevent.sleep(0)
def reader(queue, taken):
    while len(taken) < 40:
        taken.append(queue.get())
def on_signal(counts):
    spin(0.001)
    counts["usr1"] += 1
def on_timer(counts):
    counts["timer"] += 1
def sender(counts):
    for i in range(20):
        os.kill(os.getpid(), signal.SIGUSR1)
        while counts["usr1"] <= i:
            gevent.sleep(0.001)

def program():
    counts, queue, taken = {"usr1": 0, "timer": 0}, gevent.queue.Queue(), []
    watcher = gevent.signal_handler(signal.SIGUSR1, on_signal, counts)
    tasks = [gevent.spawn(task_a), gevent.spawn(task_b, queue), gevent.spawn(sender, counts),
        gevent.spawn(reader, queue, taken)]
    tasks += [gevent.spawn_later(0.001 * i, on_timer, counts) for i in range(20)]
    gevent.joinall(tasks, raise_error=True)
    watcher.cancel()
    return [counts, taken]

before = program()
with pystrobe.Profiler(OPTIONS, rate=2000) as profiler:
    during = program()
print(json.dumps({"rounds": [before, during, program()], "stacks": own_stacks(profiler.profile),
    "taken": profiler.profile.quality.taken}))
"""

SERVER = """
import asyncio, socket, threading, uvloop

def crunch(data):
    spin(0.002)
    return data[::-1]
async def handle(reader, writer):
    while data := await reader.readline():
        writer.write(crunch(data.strip()) + b"\\n")
        await writer.drain()
    writer.close()
def client(port, answers):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        with connection.makefile("rwb", buffering=0) as file:
            for i in range(30):
                file.write(b"order %d\\n" % i)
                answers.append(file.readline().decode().strip())
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
def on_signal(counts):
    counts["usr1"] += 1
def on_timer(counts):
    spin(0.001)
    counts["timer"] += 1

async def main():
    loop, counts, answers = asyncio.get_running_loop(), {"usr1": 0, "timer": 0}, []
    loop.add_signal_handler(signal.SIGUSR1, on_signal, counts)
    for i in range(20):
        loop.call_later(0.002 * i, on_timer, counts)
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(asyncio.to_thread(client, port, answers) for _ in range(2)))
    while counts["timer"] < 20 or not counts["usr1"]:
        await asyncio.sleep(0.005)
    server.close()
    loop.remove_signal_handler(signal.SIGUSR1)
    counts["usr1"] = counts["usr1"] > 0  # those that come before the loop looks are one
    return [counts, sorted(answers)]

before = uvloop.run(main())
wakeup = signal.set_wakeup_fd(-1)
with pystrobe.Profiler(OPTIONS, rate=2000) as profiler:
    during = uvloop.run(main())
assert signal.set_wakeup_fd(-1) == wakeup
print(json.dumps({"rounds": [before, during, uvloop.run(main())],
    "stacks": own_stacks(profiler.profile), "taken": profiler.profile.quality.taken}))
"""


def said_by(program: str, options: str, possible: set[str]) -> Any:
    said = answer(OWN_STACKS + program.replace("OPTIONS", options))
    assert set(said["stacks"]) <= possible, set(said["stacks"]) - possible
    assert said["taken"] > 50
    before, during, after = said["rounds"]
    assert json.dumps(before) == json.dumps(during) == json.dumps(after)
    return said


@OPTIONS
def test_each_stack_of_gevent_is_of_one_greenlet(options: str) -> None:
    possible = {
        *("", "<module>", "<module>/program", "<module>/program/program.<locals>.<listcomp>"),
        *("task_a", "task_a/inner_a", "task_a/inner_a/spin_a", "task_a/inner_a/spin_a/spin"),
        *("task_b", "task_b/inner_b", "task_b/inner_b/spin_b", "task_b/inner_b/spin_b/spin"),
        *("reader", "sender", "on_timer", "on_signal", "on_signal/spin"),
    }
    said = said_by(GREENLETS, options, possible)
    counts, taken = said["rounds"][1]
    assert counts == {"usr1": 20, "timer": 20}
    assert taken == list(range(40))
    assert {"task_a/inner_a/spin_a/spin", "task_b/inner_b/spin_b/spin"} <= set(said["stacks"])


@OPTIONS
def test_a_server_of_uvloop_answers_and_is_seen(options: str) -> None:
    main = "<module>"
    possible = {
        *("", main, f"{main}/main", f"{main}/handle", f"{main}/handle/crunch"),
        *(f"{main}/handle/crunch/spin", f"{main}/on_signal", "client"),
        *(f"{main}/on_timer", f"{main}/on_timer/spin", f"{main}/main/main.<locals>.<genexpr>"),
    }
    said = said_by(SERVER, options, possible)
    counts, answers = said["rounds"][1]
    assert counts == {"usr1": True, "timer": 20}
    assert answers == sorted(2 * [f"order {i}"[::-1] for i in range(30)])
    assert "<module>/handle/crunch/spin" in said["stacks"]
