"""The module that the fork server preloads: imports everything a rank needs, once for all ranks forked from it.

Nothing else should import it, because it changes the signal handling of its process. The fork server is killed with its
launcher.
"""

import gc
import os
import signal

from llcg_dist.data.child_process import die_with_parent

gc.disable()  # what is imported stays: looking for garbage in it would take a fifth of the time
die_with_parent()  # with torch loaded, a fork server that notices its launcher's end by itself takes long to exit
os.setsid()  # signals to the launcher's process group do not reach it: ranks have to end before their fork server
signal.signal(signal.SIGTERM, signal.SIG_IGN)

import llcg_dist.train  # noqa: E402, F401
from llcg_dist.models import registry  # noqa: E402
from llcg_dist.sampling import compiled  # noqa: E402

registry.import_all()
compiled.load()

gc.enable()
gc.freeze()  # imported objects are exempt from garbage collection: ranks neither scan them nor copy their pages
