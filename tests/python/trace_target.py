# SPDX-License-Identifier: Apache-2.0
"""Run by any interpreter: TARGET.py under sys.settrace; writes every distinct stack it had.

    trace_target.py PATH SECONDS ARGUMENTS...

stdout, last line: JSON list of stacks, root first, of [name, file, line].
"""

import json
import os
import signal
import sys
import threading

stacks = set()
done = False


def stack_of(frame):
    frames = []
    while frame is not None:
        code = frame.f_code
        file = os.path.basename(code.co_filename)
        if file != "trace_target.py":
            frames.append((code.co_name, file, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(frames))


def local(frame, event, argument):
    if event == "line" and not done:
        stacks.add(stack_of(frame))
    return local


def begin(frame, event, argument):
    return local


def install(control, seconds):
    tell_ready = control.ready

    def ready(**facts):
        tell_ready(**facts)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        sys.settrace(begin)
        frame = sys._getframe(1)
        while frame is not None:
            frame.f_trace = local
            frame = frame.f_back

    def stop(signum, frame):
        global done
        done = True
        control.running = False

    signal.signal(signal.SIGALRM, stop)
    control.ready = ready
    control.truth = lambda **facts: None
    threading.settrace(begin)


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    sys.argv[:] = [path, *sys.argv[3:]]
    sys.path.insert(0, os.path.dirname(path))
    import control

    install(control, seconds)
    with open(path) as source:
        code = compile(source.read(), path, "exec")
    exec(code, {"__name__": "__main__", "__file__": path})
    sys.settrace(None)
    print(json.dumps(sorted(stacks)))
    sys.stdout.flush()
    os._exit(0)


main()
