"""The peer of `marea bench --against torch`: the recipe's Transformer in PyTorch.

Takes one argument, a JSON object (see torch.lua). For each line with a number n on standard input
it does n training steps and answers with one line of JSON, {"ms": [n numbers], "peak": bytes}. It
ends with its input. With the file of a plan among its options it goes through that once instead.
With several ranks the first one starts the others, and DDP averages over gloo.

On CPUs it is eager. On "cuda" it is one process, eager or through torch.compile, with PyTorch's own
attention (where it has one); products in f32 do not use TF32, and dtype bf16 is autocast to
bfloat16 over weights, gradients and optimizer in f32. Clocks are read when the GPU has ended its
work, and the peak is that of PyTorch's allocations on it. Where this PyTorch finds no GPU, or its
compiler does not work, it answers {"version": text, "missing": reason} and ends.
"""
import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time

options = json.loads(sys.argv[1])
rank = int(sys.argv[2]) if len(sys.argv) > 2 else 0
threads, ranks = options["threads"], options["ranks"]
device = options.get("device", "cpu")
on_gpu = device != "cpu"
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)

import torch
import torch.nn as nn
import torch.nn.functional as F

fused = on_gpu and hasattr(F, "scaled_dot_product_attention")  # PyTorch 2
compile_seconds = 40  # at most; beyond that a bench takes too long

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
        if fused:
            made = F.scaled_dot_product_attention(
                q, k, v, attn_mask=None if mask is None else ~mask, is_causal=mask is None)
            return self.out(made.transpose(1, 2).reshape(batch, length, width))
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
        x = self.embedding(ids) + self.position(torch.arange(ids.shape[1], device=device))
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
        ids = torch.randint(0, options["classes"], (len(lengths), longest + 1), device=device)
        targets = ids[:, 1:].clone()
        mask = torch.triu(torch.ones(longest, longest, dtype=torch.bool, device=device), 1)
        if not options["causal"]:
            mask = torch.zeros_like(mask)
        if min(lengths) < longest:
            beyond = (torch.arange(longest, device=device)[None, :]
                      >= torch.tensor(lengths, device=device)[:, None])
            if not options["causal"]:  # else no real query sees what comes after it
                mask = mask[None, None] | beyond[:, None, None, :]
            targets[beyond] = -100
        if fused and options["causal"]:
            mask = None  # attention knows this one by itself
        made.append((ids[:, :-1], targets, mask))
    return made


def optimizer_of(model):
    if options["optimizer"] == "SGD":
        return torch.optim.SGD(model.parameters(), lr=1e-3)
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def precision():
    """What the forward computes in."""
    if options.get("dtype") == "bf16":
        return torch.autocast(device.split(":")[0], dtype=torch.bfloat16)
    return contextlib.nullcontext()


def loss_of(net, ids, targets, mask, tokens):
    with precision():
        return net(ids, targets, mask) * ranks / tokens


def step(model, net, optimizer, window):
    optimizer.zero_grad(set_to_none=True)
    own = microbatches(window)
    tokens = sum(sum(sum(lengths) for lengths in of_rank) for of_rank in window)
    for i, (ids, targets, mask) in enumerate(own):
        if ranks > 1 and i < len(own) - 1:
            with net.no_sync():
                loss_of(net, ids, targets, mask, tokens).backward()
        else:
            loss_of(net, ids, targets, mask, tokens).backward()
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


def seconds():
    """The clock, when the device has done all it was asked for."""
    if on_gpu:
        torch.cuda.synchronize()
    return time.perf_counter()


def peak_bytes():
    """On a GPU, the most that was allocated there. On CPUs the most memory that each rank has held,
    as the system counts it, all together."""
    if on_gpu:
        return torch.cuda.max_memory_allocated()
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


def missing(reason):
    print(json.dumps({"version": torch.__version__, "missing": str(reason).strip()}), flush=True)


def compiled(net):
    """The net through torch.compile, each shape by itself; what compiles is its first step."""
    if not hasattr(torch, "compile"):
        raise RuntimeError("this PyTorch has no torch.compile")
    return torch.compile(net, dynamic=False)


def first_step(model, net, optimizer):
    """Does a step. Whatever a compiler raises is its absence; returns (net, reason or None)."""
    if not options.get("compile"):
        step(model, net, optimizer, options["lengths"])
        return net, None
    def too_long(*_):
        raise TimeoutError(f"torch.compile took more than {compile_seconds} seconds")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(compile_seconds)
    try:
        net = compiled(net)
        step(model, net, optimizer, options["lengths"])
        return net, None
    except Exception as problem:
        return net, str(problem).strip().splitlines()[0] if str(problem).strip() else repr(problem)
    finally:
        signal.alarm(0)


def main():
    if on_gpu and not torch.cuda.is_available():
        return missing("this PyTorch finds no GPU")
    cores = os.cpu_count() or 1
    set_cores(0, {rank % cores} if threads == 1 and ranks > 1 else set(range(cores)))
    others = start_others() if rank == 0 and ranks > 1 else []
    torch.set_num_threads(threads)
    torch.manual_seed(20 + rank)
    if ranks > 1:
        torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    model = Transformer(options).to(device)
    net = nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
    optimizer = optimizer_of(model)
    if "plan" in options:
        return whole(model, net, optimizer, others)
    net, reason = first_step(model, net, optimizer)
    if reason:
        return missing(reason)
    if ranks == 1 and threads == 2 and not on_gpu:
        bind_pool()
    if rank == 0:
        print(json.dumps({"version": torch.__version__}), flush=True)
    while True:
        count, times = next_turn(), []
        if count == 0:
            break
        for _ in range(count):
            began = seconds()
            step(model, net, optimizer, options["lengths"])
            times.append((seconds() - began) * 1e3)
        peak = peak_bytes()
        if rank == 0:
            print(json.dumps({"ms": times, "peak": peak}), flush=True)
    for other in others:
        other.wait()


main()
