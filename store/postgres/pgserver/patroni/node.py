"""Runs Patroni as the child of a subreaper: PostgreSQL, which Patroni detaches, stays a
descendant of this process, also if Patroni is killed. When this process is asked to end,
or the test process ends, no descendant is left.

Usage: node.py FILE COMMAND... (writes the process ID of the command to FILE)
"""
import ctypes, os, signal, subprocess, sys, time

PR_SET_CHILD_SUBREAPER = 36


def descendants(of):
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                parents[int(pid)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    found = [of]
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found[1:]


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def end(*_):
    # A process that is killed may have started another one.
    while reap():
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.01)
    os._exit(0)


if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
    sys.exit("no subreaper")
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
process = subprocess.Popen(sys.argv[2:])
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(process.pid))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    reap()
    time.sleep(0.05)
