"""The peer of `marea bench --against torch`: the recipe's Transformer as eager PyTorch on CPUs.

Takes one argument, a JSON object (see torch.lua). For each line with a number n on standard input
it does n training steps and answers with one line of JSON, {"ms": [n numbers], "peak": bytes}. It
ends with its input. With the file of a plan among its options it goes through that once instead.
With several ranks the first one starts the others, and DDP averages over gloo.
"""
import json
import math
import os
import socket
import subprocess
import sys
import time

options = json.loads(sys.argv[1])
rank = int(sys.argv[2]) if len(sys.argv) > 2 else 0
threads, ranks = options["threads"], options["ranks"]
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)

import torch
import torch.nn as nn
import torch.nn.functional as F

activations = {"gelu": lambda x: F.gelu(x, approximate="tanh"), "relu": F.relu, "silu": F.silu}


class Layer(nn.Module):
    def __init__(self, o):
        super().__init__()
        width, bias = o["width"], o["bias"]
        self.heads, self.post = o["heads"], o["norm"] == "post"
        self.activation = activations[o["activation"]]
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.up = nn.Linear(width, o["hidden"], bias=bias)
        self.down = nn.Linear(o["hidden"], width, bias=bias)

    def attend(self, x, mask):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        shares = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        return self.out((shares @ v).transpose(1, 2).reshape(batch, length, width))

    def mix(self, x):
        return self.down(self.activation(self.up(x)))

    def forward(self, x, mask):
        if self.post:
            x = self.norm1(x + self.attend(x, mask))
            return self.norm2(x + self.mix(x))
        x = x + self.attend(self.norm1(x), mask)
        return x + self.mix(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, o):
        super().__init__()
        width = o["width"]
        self.embedding = nn.Embedding(o["vocabulary"], width)
        self.position = nn.Embedding(o["context"], width)
        self.layers = nn.ModuleList(Layer(o) for _ in range(o["layers"]))
        self.norm = nn.LayerNorm(width) if o["norm"] == "pre" else nn.Identity()
        self.head = None if o["tied"] else nn.Linear(width, o["classes"], bias=o["bias"])
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids, targets, mask):
        x = self.embedding(ids) + self.position(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x, mask)
        x = self.norm(x)
        logits = self.head(x) if self.head else x @ self.embedding.weight.t()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum",
                               ignore_index=-100)


def set_cores(process, cores):
    try:
        os.sched_setaffinity(process, cores)
    except OSError:
        pass  # the machine keeps some cores to itself


def bind_pool():
    """Two threads: the main one on core 0, the second thread of each pool on core 1."""
    for task in map(int, os.listdir("/proc/self/task")):
        set_cores(task, {0 if task == os.getpid() else 1})


def microbatches(window):
    """For each microbatch of this rank (ids, targets, mask), with sequences of its lengths, padded
    to the longest: for eager PyTorch that is cheaper than one packed row under a mask of all pairs.
    """
    made = []
    for lengths in window[rank]:
        longest = max(lengths)
        ids = torch.randint(0, options["classes"], (len(lengths), longest + 1))
        targets = ids[:, 1:].clone()
        mask = torch.triu(torch.ones(longest, longest, dtype=torch.bool), 1)
        if not options["causal"]:
            mask = torch.zeros_like(mask)
        if min(lengths) < longest:
            beyond = torch.arange(longest)[None, :] >= torch.tensor(lengths)[:, None]
            if not options["causal"]:  # else no real query sees what comes after it
                mask = mask[None, None] | beyond[:, None, None, :]
            targets[beyond] = -100
        made.append((ids[:, :-1], targets, mask))
    return made


def optimizer_of(model):
    if options["optimizer"] == "SGD":
        return torch.optim.SGD(model.parameters(), lr=1e-3)
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def step(model, net, optimizer, window):
    optimizer.zero_grad(set_to_none=True)
    own = microbatches(window)
    tokens = sum(sum(sum(lengths) for lengths in of_rank) for of_rank in window)
    for i, (ids, targets, mask) in enumerate(own):
        if ranks > 1 and i < len(own) - 1:
            with net.no_sync():
                (net(ids, targets, mask) * ranks / tokens).backward()
        else:
            (net(ids, targets, mask) * ranks / tokens).backward()
    if options["clip_norm"]:
        nn.utils.clip_grad_norm_(model.parameters(), options["clip_norm"])
    optimizer.step()


def start_others():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    command = [sys.executable, __file__, sys.argv[1]]
    return [subprocess.Popen(command + [str(r)], stdin=subprocess.DEVNULL)
            for r in range(1, ranks)]


def next_turn():
    """How many steps to do; 0 at the end. Rank 0 reads it and tells the others."""
    line = sys.stdin.readline() if rank == 0 else ""
    count = torch.tensor([int(line) if line.strip() else 0])
    if ranks > 1:
        torch.distributed.broadcast(count, 0)
    return int(count)


def resident_peak():
    """The most memory that each rank has held, as the system counts it: bytes, all together."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    peak = torch.tensor([int(lines["VmHWM"].split()[0]) * 1024])
    if ranks > 1:
        torch.distributed.all_reduce(peak)
    return int(peak)


def whole(model, net, optimizer, others):
    """Every window of the plan once; one line of JSON, {"loop": seconds, "version": PyTorch's}."""
    with open(options["plan"]) as file:
        windows = json.load(file)
    began = time.perf_counter()
    for window in windows:
        step(model, net, optimizer, window)
    if ranks > 1:
        torch.distributed.barrier()
    if rank == 0:
        print(json.dumps({"loop": time.perf_counter() - began, "version": torch.__version__}))
    for other in others:
        other.wait()


def main():
    cores = os.cpu_count() or 1
    set_cores(0, {rank % cores} if threads == 1 and ranks > 1 else set(range(cores)))
    others = start_others() if rank == 0 and ranks > 1 else []
    torch.set_num_threads(threads)
    torch.manual_seed(20 + rank)
    if ranks > 1:
        torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    model = Transformer(options)
    net = nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
    optimizer = optimizer_of(model)
    if "plan" in options:
        return whole(model, net, optimizer, others)
    step(model, net, optimizer, options["lengths"])
    if ranks == 1 and threads == 2:
        bind_pool()
    if rank == 0:
        print(json.dumps({"version": torch.__version__}), flush=True)
    while True:
        count, times = next_turn(), []
        if count == 0:
            break
        for _ in range(count):
            began = time.perf_counter()
            step(model, net, optimizer, options["lengths"])
            times.append((time.perf_counter() - began) * 1e3)
        peak = resident_peak()
        if rank == 0:
            print(json.dumps({"ms": times, "peak": peak}), flush=True)
    for other in others:
        other.wait()


main()
