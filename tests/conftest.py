import os

# One thread per process, as the launcher sets it: bits and speed depend on it.
os.environ["OMP_NUM_THREADS"] = "1"
