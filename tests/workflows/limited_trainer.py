"""`scrimp train` on a machine with less memory: once the job is loaded the kernel gives this process little more.

    python limited_trainer.py MORE_BYTES RESOLVED_JSON

MORE_BYTES is how much address space is left from then on (RLIMIT_AS); `kill:N` ends the process by signal 9 instead, as
the kernel does when memory runs out, if the job's micro-batch is over N tokens.
"""

import os
import resource
import signal
import sys
from pathlib import Path

from scrimp.core.errors import ScrimpError
from scrimp.workflows.job_file import read_job
from scrimp.workflows.train import train_resolved
from scrimp.workflows.world import real_world

order, job = sys.argv[1], read_job(Path(sys.argv[2]))


def squeeze(event):
    if event.kind != "loaded":
        return
    if order.startswith("kill:"):
        if job.recipe.micro_batch_tokens > int(order[5:]):
            os.kill(os.getpid(), signal.SIGKILL)
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + int(order)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


try:
    train_resolved(job, environ=os.environ, world=real_world(note=print), on_event=squeeze)
except ScrimpError as error:
    print(error)
    sys.exit(error.exit_code)
