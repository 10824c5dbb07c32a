"""The peer of `marea bench --operations --against torch`: small recorded operations in PyTorch.

Takes one argument, a JSON object {"side": extent of the square tensors, "operations": [names]}. For
each line with a number n on standard input it does n of each operation, whose graph is dropped at
once, and answers with one line of JSON, {"ns": {name: nanoseconds}}. It ends with its input.
"""
import json
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch

torch.set_num_threads(1)
options = json.loads(sys.argv[1])
x, y = (torch.ones(options["side"], options["side"], requires_grad=True) for _ in range(2))


def scale(n):
    for _ in range(n):
        z = x * 0.5


def add(n):
    for _ in range(n):
        z = x + y


def multiply(n):
    for _ in range(n):
        z = x * y


def relu(n):
    for _ in range(n):
        z = torch.relu(x)


def linear(n):
    for _ in range(n):
        z = torch.nn.functional.linear(x, y)


def sum_backward(n):
    for _ in range(n):
        (x + y).sum().backward()


def nanoseconds(name, n):
    began = time.perf_counter()
    globals()[name](n)
    return (time.perf_counter() - began) / n * 1e9


print(json.dumps({"version": torch.__version__}), flush=True)
for line in sys.stdin:
    n = int(line)
    print(json.dumps({"ns": {name: nanoseconds(name, n) for name in options["operations"]}}),
          flush=True)
