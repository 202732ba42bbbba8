"""Stands for `scrimp train`: does what resolved.json tells it, with the standard library alone.

{"steps": 3}             write that many step events, then finish
{"exit_code": 7}         end with that code (after the steps)
{"die_by": 9}            end by that signal
{"hang": true}           wait for signals after the steps; SIGTERM or SIGINT: write `interrupted`, exit 130
{"stubborn": true}       note signals and go on hanging
{"print": "text"}        to stdout
{"child": true}          leave a child process behind that sleeps for an hour
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

resolved = Path(sys.argv[1])
order = json.loads(resolved.read_text())
events = (resolved.parent / "events.jsonl").open("a", encoding="utf-8")


def write(kind, step, **values):
    fields = {"at_s": 1000.0 + step, "attempt": order.get("attempt", 1), "kind": kind, "step": step, "values": values}
    events.write(json.dumps(fields) + "\n")
    events.flush()


def on_signal(number, _frame):
    if order.get("stubborn"):
        write("note", steps, text=signal.Signals(number).name)
        return
    write("interrupted", steps, signal=signal.Signals(number).name, checkpoint="step-000001")
    os._exit(130)


steps = order.get("steps", 0)
signal.signal(signal.SIGTERM, on_signal)
signal.signal(signal.SIGINT, on_signal)
if order.get("print"):
    print(order["print"])
if order.get("child"):
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    write("note", 0, child=child.pid)
lock_file = os.fstat(int(os.environ["SCRIMP_LOCK_FILE_NUMBER"]))
has_lock = os.path.samestat(lock_file, (resolved.parent / "run.lock").stat())
write("started", 0, pid=os.getpid(), threads=os.environ.get("OMP_NUM_THREADS"), has_lock=has_lock)
for step in range(1, steps + 1):
    write("step", step, loss=4.0 - step)
if order.get("hang") or order.get("stubborn"):
    write("note", steps, text="hanging")
while order.get("hang") or order.get("stubborn"):
    signal.pause()
if order.get("die_by"):
    signal.signal(order["die_by"], signal.SIG_DFL) if order["die_by"] != signal.SIGKILL else None
    os.kill(os.getpid(), order["die_by"])
if not order.get("exit_code"):
    write("finished", steps)
sys.exit(order.get("exit_code", 0))
