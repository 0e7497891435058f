"""The text of `llcg --help` and of every `llcg COMMAND --help`."""

USAGE = """usage: llcg COMMAND [key=value ...]

  llcg partition   cut the graph into parts and write them to partition.root
  llcg train       train: validates, cuts the graph if needed, starts 1+P processes on this host
  llcg train -m    sweep: one job for each combination of key=a,b,c
  llcg multinode   this host's processes of a job on several hosts
  llcg slurm       write the batch script of a job on SLURM, or submit it
  llcg doctor      say what would keep a job from working, what it needs and sends, before anything starts
  llcg advise      whether several machines pay on a graph, and with which settings, by a pilot of a minute
  llcg report      compare runs or sweeps in tables, figures and one HTML page: llcg report PATH...
  llcg watch       follow a run in the terminal: curves, bytes, phases, who is slow: llcg watch RUN
  llcg predict     write class and probability per node: llcg predict run_dir=RUN
  llcg key         make the key that the hosts of a job share: llcg key [FILE]
  llcg help        the documentation: llcg help TOPIC

Settings are Hydra overrides: groups (algorithm=psgd_pa, model=gcn, partition=random) and keys (algorithm.K=16).
`llcg train [key=value ...] --help` lists them all with the values that they have then; as in Hydra, --cfg job prints
these as YAML, and --info defaults which files they come from. `llcg COMMAND --help` explains a command,
`python -m llcg_dist` is the same as `llcg`."""

OWN_FILES = """Your own files, with every command:

  --config-dir DIR   a folder of your own presets: DIR/model/mine.yaml is model=mine, DIR/experiment/x.yaml is
                     experiment=x. May be repeated; LLCG_CONF=DIR[:DIR] does the same. The ranks get it from here.
  modules            those of the current folder can be imported by name, in every rank."""

USAGES = {
    "partition": """usage: llcg partition [--share PARTS --to FOLDER] [key=value ...]

Cuts the graph into cluster.num_machines parts, writes them to partition.root where they are not there yet, and shows
size, cut edges and label skew of each.

  --share 0,2 --to FOLDER      also copy what the host of machines 0 and 2 needs to FOLDER
  --share server --to FOLDER   what the server's host needs: the whole graph""",
    "train": """usage: llcg train [-m] [key=value ...]

Trains: checks the settings, cuts the graph if its parts are missing, starts the server and the machines on this host
and waits for them. The same command with the same run_dir goes on where it was stopped.

  -m, --multirun         sweep: one job for each combination of key=a,b,c (llcg help sweeps)
  --cfg job              print the composed settings as YAML instead; --package SECTION: a section of them
  --info defaults        print the files that they come from instead

Exit code 0 done; 2 a mistake in settings or files; 130 / 143 after SIGINT / SIGTERM; 1 anything else.""",
    "multinode": """usage: llcg multinode --head ADDRESS[:PORT] --hosts N [--here M] [...] [key=value ...]

A job on several hosts: run this once on each of them, in any order, within cluster.join_timeout.

  --head     LLCG_HEAD     an address of the host where all meet, as the others reach it (port 29500 if none is given)
  --hosts    LLCG_HOSTS    how many hosts the job has
  --here     LLCG_HERE     how many of its P+1 processes run on this host (1); any layout will do that adds up to P+1
  --job      LLCG_JOB      a name that only the hosts of one job share (llcg)
  --rejoin   LLCG_REJOIN   how often this host joins again when a cut link took torchrun's agent with it (3)
  key=value                as for `llcg train`; run_dir and cluster.key_file must be set. They must be the same on all
                           hosts, but for where things lie: run_dir, partition.root, dataset.root, checkpoint.dir, ...

Each option may be given as the environment variable beside it. Three hosts, a server and four machines, parts copied
to each host's own disk, and the job's key to every host:

  host 1$ llcg key job.key && for host in host2 host3; do scp -p job.key $host:$PWD; done
  host 1$ llcg multinode --head 10.0.0.1 --hosts 3 --here 1 cluster.num_machines=4 run_dir=a cluster.key_file=job.key
  host 2$ llcg multinode --head 10.0.0.1 --hosts 3 --here 2 cluster.num_machines=4 run_dir=a cluster.key_file=job.key
  host 3$ llcg multinode --head 10.0.0.1 --hosts 3 --here 2 cluster.num_machines=4 run_dir=a cluster.key_file=job.key

The server runs where the full graph is, whichever host that is; machines take the parts that their disks hold
(llcg partition --share). With cluster.on_loss=go_on the same command brings back a host that was gone, or a new one
with a copy of its parts, while the others train. Exit codes are those of `llcg train`. More: llcg help hosts.""",
    "slurm": """usage: llcg slurm [-] [--to FILE] [--submit] [options of sbatch] [key=value ...]

Writes the batch script of a training job on SLURM, with the resources that its settings ask for and comments that say
why: 1+P ranks spread evenly over the nodes, the cores of each, and its memory where the parts are on disk already
(llcg partition). A requeued job goes on from its last checkpoint, with the same bits.

  -                  print the script
  --to FILE          write it to FILE (llcg.sbatch; a file that is there is not replaced)
  --submit           hand it to sbatch and print the job's id; it is written only where --to says so
  --nodes=3 --time=2:00:00 --partition=long --gres=gpu:2 ...
                     any option of sbatch, long or short, becomes a line of the script and wins over the computed ones
  key=value          as for `llcg train`; run_dir is runs/slurm-JOBID unless it is set

Submit from a folder that all nodes see. A sweep: llcg train -m hydra/launcher=submitit_slurm.
More: llcg help slurm.""",
    "doctor": """usage: llcg doctor [--ranks-here=N] [key=value ...]
       llcg doctor --stages [--json] [key=value ...]
       llcg doctor --gpu

Examines the job that `llcg train` would start with the same settings: host, versions, parts, memory, and the bytes
that every method would send. Builds the parts where they are missing; starts nothing. Each finding says what to do.
Exit code 0 if the job can work, 2 if it cannot.

  --ranks-here=N   so many of the ranks run on this host, rank 0 among them (default: all)
  --stages         predict time, memory and disk of every stage that is still to come, from the graph's sizes and some
                   seconds of trials on this host; builds nothing. --json prints that alone, for a script. Without the
                   option a large graph that has no parts yet is predicted before they are built
  --gpu            instead of a job: take one step of every model on each GPU of this host, and compare it with the
                   CPU's; exit code 1 if they differ by more than rounding, 2 if there is no GPU

`llcg train --help` lists the settings.""",
    "advise": """usage: llcg advise [--seconds=N] [--json] [--write FILE] [key=value ...]

Trains for about a minute on the graph of these settings, one way after the other in this process: one machine with
batches of one and of all machines, llcg_plus (on clusters, or on the parts that you choose), llcg_plus with longer
rounds, and the better of both on METIS parts balanced in their labels. Says whether cluster.num_machines machines pay,
which settings to take, what to expect of them, and why: time to 97 % of the best score of one machine, with a core for
each rank and a link of cluster.link_mbit (1,000 unless it is set), the gradient noise scale, what parts lose. K, S and
parts that you set are kept; the parts stay in partition.root. Cutting the graph is not counted.

  --seconds=N     about so long in all (60)
  --json          print the answer as JSON alone
  --write FILE    keep the advised settings as a preset: DIR/experiment/x.yaml is then
                  llcg train --config-dir DIR experiment=x

More: llcg help settings. `llcg train --help` lists the settings.""",
    "report": """usage: llcg report PATH...

Compares runs: each PATH is a run directory, a sweep, or any folder of them. Prints a table of scores, bytes and time,
with mean and standard deviation over seeds, and writes report/ into the first PATH: index.html (one file that can be
mailed), and every figure as PNG and CSV. `llcg help report` says what it shows.""",
    "watch": """usage: llcg watch RUN [--once] [--every=SECONDS]

Shows a run that is going on or finished: curves of score and loss, megabytes by kind, seconds by phase, the local
seconds of every part and who the others wait for. Reads the files in RUN only, so RUN may lie in a folder that another
host writes to. Ends by itself when the run is finished, or (exit code 1) was stopped on this host.

  --once            show the present state and end
  --every=SECONDS   look again after so many seconds (default 2)

Where stdout is no terminal it prints plain lines: with --once the state, else a line for each round.""",
    "predict": """usage: llcg predict run_dir=RUN [which=best|final] [out=FILE] [a new graph]

Writes the class and its probability for every node, with the ids and class names of the data.

  run_dir=RUN          a finished run; its settings, model and (through its parts) class names are read
  which=best           best: the model of the best validation score; final: the last round's
  out=FILE             .csv or .parquet; default RUN/predictions.csv
  partition.root=DIR   where the run's parts lie now, if they were moved; dataset.root=DIR likewise

A new graph, instead of the one the model was trained on (labels are not needed, features must be the same columns):

  dataset=files dataset.edges=FILE dataset.features=FILE [dataset.labels=FILE]
  dataset=pyg dataset.path=FILE.pt, dataset=own dataset.target=my_package.data.load, or any other dataset

Columns: node, class, probability. With several labels a node: node, class (those above one half, joined by ;),
and probability_LABEL for each.

Precision, recall, F1 and support of every class on the validation and test nodes, and the confusion matrix, are written
to FILE_classes.json, and those of the test nodes are printed. Of a new graph that has labels and no split, all labelled
nodes are test nodes.""",
    "key": """usage: llcg key [FILE]

Writes a fresh key to FILE (job.key by default), which its owner alone can read; a file that exists is kept. A job on
several hosts needs one: copy it to every host (scp -p), and add cluster.key_file=FILE to the settings. Make one for
every job: values that were sealed in an earlier job with the same key are authentic in a later one.""",
    "help": """usage: llcg help [TOPIC]

Shows a page of the documentation, the help of a command, or the presets of a group of settings (llcg help experiment).
Without TOPIC: what there is.""",
}
"""By command."""

WITH_SETTINGS = ("train", "partition", "doctor", "advise")
"""Commands whose arguments are Hydra overrides, and whose settings --cfg and --info show."""
LISTS_KEYS = ("train", "partition")
"""Commands whose --help goes on with all groups and keys."""
