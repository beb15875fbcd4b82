"""Start a program and report its exit status, CPU and peak memory on a descriptor: `launcher.py FD COMMAND…`.

Linux counts the memory of the process that starts a program towards that program's peak, so a large benchmark
would measure itself. This process is small.
"""

import os
import sys

report = int(sys.argv[1])
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_CLOSE, report)])
_, status, usage = os.wait4(child, 0)
figures = (os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
os.write(report, " ".join(map(str, figures)).encode())
