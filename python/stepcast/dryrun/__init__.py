"""`stepcast dryrun`: runs a training program of PyTorch on this machine's CPU and records what it asks the GPUs to do."""
