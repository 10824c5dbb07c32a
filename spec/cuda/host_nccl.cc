/* NCCL on the host. A communicator is memory that its ranks share; a call is two works of its
 * stream: one puts this rank's data into a file of its own and says so, the other waits until all
 * ranks have done so and takes what it needs.
 *
 * Invariant: call k is put only after this rank has taken call k - 1, so all have put k - 1, so
 * all have taken k - 2: what is older than that nobody reads. */
#include "host_nccl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "host_internal.h"

namespace {

enum { MOST_RANKS = 16, SLOTS = 4 };
enum call_kind { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, MESSAGES };

/* What ranks must say alike. */
struct signature {
  call_kind kind;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int root;
  size_t count;
};

/* What a rank has put: in its file, a block for each rank with messages, else one block. */
struct slot {
  signature says;
  int file;
  size_t block[MOST_RANKS], bytes;
};

struct rank_area {
  alignas(64) std::atomic<int> attached, ended;
  int process, device;
  std::atomic<int64_t> put, taken; /* calls */
  slot slots[SLOTS];
};

struct shared {
  rank_area ranks[MOST_RANKS];
};

struct message {
  bool sends;
  int peer;
  const void *data;
  void *result;
  size_t bytes;
};

struct call {
  signature says;
  const void *data;
  void *result;
  std::vector<message> messages;
};

struct fault {
  int rank = -1, number = 0;
  char kind[16] = "";
};

fault read_fault() {
  fault f;
  const char *text = getenv("MAREA_NCCL_FAULT");
  if (text == nullptr || sscanf(text, "%d:%15[a-z]:%d", &f.rank, f.kind, &f.number) < 2)
    f.rank = -1;
  return f;
}

struct state {
  shared *memory = nullptr;
  int id_file = -1; /* of the rank that made the id */
  int rank = 0, ranks = 0, device = 0;
  bool connected = false, dead = false, ending = false;
  int64_t begun = 0;             /* calls */
  cudaStream_t stream = nullptr; /* of the last one */
  ncclResult_t error = ncclSuccess;
  fault planned;

  rank_area &mine() { return memory->ranks[rank]; }
  bool has_fault(const char *kind) const {
    return planned.rank == rank && strcmp(planned.kind, kind) == 0;
  }
  ~state() {
    if (id_file >= 0) close(id_file);
    if (memory == nullptr) return;
    for (slot &s : mine().slots) {
      if (s.file > 0) close(s.file);
    }
    munmap(memory, sizeof *memory);
  }
};

typedef std::shared_ptr<state> comm_state;

char last_error[512];

ncclResult_t fail(state &s, ncclResult_t error) {
  if (s.error == ncclSuccess) s.error = error;
  return error;
}

size_t size_of(ncclDataType_t type) {
  if (type == ncclBfloat16) return 2;
  return type == ncclInt32 || type == ncclFloat32 ? 4 : 8;
}

}  // namespace

struct ncclComm {
  comm_state state;
};

/* --- life --- */

static void *map_file(int file, size_t bytes, bool writes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

static int make_file(size_t bytes) {
  const int file = memfd_create("nccl", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)bytes) == 0) return file;
  if (file >= 0) close(file);
  return -1;
}

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  memset(id, 0, sizeof *id);
  const int file = make_file(sizeof(shared));
  if (file < 0) return ncclSystemError;
  (void)snprintf(id->internal, sizeof id->internal, "/proc/%d/fd/%d", (int)getpid(), file);
  return ncclSuccess;
}

static ncclResult_t attach(state &s, const ncclUniqueId &id) {
  int process = 0, number = -1;
  if (sscanf(id.internal, "/proc/%d/fd/%d", &process, &number) != 2) return ncclInvalidArgument;
  if (process == (int)getpid()) s.id_file = number;
  const int file = open(id.internal, O_RDWR | O_CLOEXEC);
  if (file < 0) return ncclSystemError;
  s.memory = (shared *)map_file(file, sizeof(shared), true);
  close(file);
  if (s.memory == nullptr) return ncclSystemError;
  s.mine().process = (int)getpid();
  s.mine().device = s.device;
  s.mine().attached = 1;
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  *comm = nullptr;
  if (config->blocking != 0 || ranks > MOST_RANKS) return ncclInvalidArgument;
  auto s = std::make_shared<state>();
  s->rank = rank;
  s->ranks = ranks;
  s->planned = read_fault();
  if (cudaGetDevice(&s->device) != cudaSuccess) return ncclUnhandledCudaError;
  const ncclResult_t error = attach(*s, id);
  if (error != ncclSuccess) return error;
  *comm = new ncclComm{s};
  return ncclInProgress;
}

static void connect(state &s) {
  for (int r = 0; r < s.ranks; r++) {
    if (s.memory->ranks[r].attached == 0) return;
  }
  s.connected = true;
  if (s.has_fault("init")) {
    (void)snprintf(last_error, sizeof last_error, "no way to the other ranks");
    fail(s, ncclSystemError);
  }
  for (int r = 0; r < s.ranks; r++) {
    if (r == s.rank || s.memory->ranks[r].device != s.device) continue;
    (void)snprintf(last_error, sizeof last_error,
                   "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d", s.rank, r,
                   s.device);
    fail(s, ncclInvalidUsage);
  }
}

/* All that this rank has put was taken, so that it may close its files. */
static bool has_ended(state &s) {
  for (int r = 0; r < s.ranks; r++) {
    if (s.memory->ranks[r].taken < s.begun) return false;
  }
  return true;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  state &s = *comm->state;
  if (!s.connected) connect(s);
  bool busy = !s.connected;
  if (s.connected && s.mine().put < s.begun) {
    (void)cudaStreamQuery(s.stream);
    busy = s.mine().put < s.begun;
  }
  if (s.ending && s.mine().taken < s.begun) (void)cudaStreamQuery(s.stream);
  if (s.ending) busy = !has_ended(s);
  *error = s.error != ncclSuccess ? s.error : busy ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->state->ending = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm->state->ending) return ncclInvalidUsage;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->state->dead = true;
  delete comm;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return texts[result];
}

const char *ncclGetLastError(ncclComm_t) { return last_error; }

/* --- putting --- */

static void copy_messages(const call &c, char *to, slot *put) {
  size_t offset = 0;
  for (const message &m : c.messages) {
    if (!m.sends) continue;
    put->block[m.peer] = m.bytes;
    offset += m.bytes;
  }
  std::vector<size_t> at(MOST_RANKS, 0);
  for (int r = 1; r < MOST_RANKS; r++) at[(size_t)r] = at[(size_t)r - 1] + put->block[r - 1];
  put->bytes = offset;
  if (to == nullptr) return;
  for (const message &m : c.messages) {
    if (m.sends) memcpy(to + at[(size_t)m.peer], m.data, m.bytes);
  }
}

/* Bytes of a rank's data. */
static size_t sent_bytes(const state &s, const call &c) {
  const size_t bytes = c.says.count * size_of(c.says.type);
  if (c.says.kind == REDUCE_SCATTER) return bytes * (size_t)s.ranks;
  return c.says.kind == BROADCAST && c.says.root != s.rank ? 0 : bytes;
}

/* This call's data as they are now: into `to`, or, where it is NULL, only their bytes. */
static void copy_data(const state &s, const call &c, char *to, slot *put) {
  memset(put->block, 0, sizeof put->block);
  if (c.says.kind == MESSAGES) return copy_messages(c, to, put);
  put->bytes = sent_bytes(s, c);
  if (to != nullptr && put->bytes > 0) memcpy(to, c.data, put->bytes);
}

static void put_data(state &s, const call &c) {
  if (s.dead) return;
  slot &put = s.mine().slots[s.mine().put % SLOTS];
  if (put.file > 0) close(put.file);
  put.says = c.says;
  copy_data(s, c, nullptr, &put);
  put.file = make_file(put.bytes + 1);
  char *to = put.file < 0 ? nullptr : (char *)map_file(put.file, put.bytes + 1, true);
  if (to == nullptr) {
    fail(s, ncclSystemError);
    return;
  }
  copy_data(s, c, to, &put);
  munmap(to, put.bytes + 1);
  s.mine().put++;
}

/* --- taking --- */

namespace {

/* What a rank has put, mapped. */
struct view {
  const char *data = nullptr;
  size_t bytes = 0;
  explicit view(const rank_area &of, int64_t number) {
    char path[64];
    const slot &put = of.slots[number % SLOTS];
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", of.process, put.file);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    bytes = put.bytes + 1;
    data = (const char *)map_file(file, bytes, false);
    close(file);
  }
  view(const view &) = delete;
  view &operator=(const view &) = delete;
  ~view() {
    if (data != nullptr) munmap((void *)data, bytes);
  }
};

template <typename T>
T combined(ncclRedOp_t operation, T a, T b) {
  if (operation == ncclSum) return (T)(a + b);
  return operation == ncclMax ? std::max(a, b) : std::min(a, b);
}

template <typename T>
void add(ncclRedOp_t operation, size_t n, const char *from, T *to, bool first) {
  const T *x = (const T *)(const void *)from;
  for (size_t i = 0; i < n; i++) to[i] = first ? x[i] : combined(operation, to[i], x[i]);
}

void reduce(const signature &says, const char *from, void *to, bool first) {
  switch (says.type) {
    case ncclFloat32:
      return add(says.operation, says.count, from, (float *)to, first);
    case ncclFloat64:
      return add(says.operation, says.count, from, (double *)to, first);
    case ncclInt32:
      return add(says.operation, says.count, from, (int32_t *)to, first);
    case ncclInt64:
      return add(says.operation, says.count, from, (int64_t *)to, first);
    case ncclBfloat16:
      break;
  }
}

bool is_alike(const signature &a, const signature &b) {
  if (a.kind != b.kind || a.kind == MESSAGES) return a.kind == b.kind;
  return a.type == b.type && a.operation == b.operation && a.root == b.root && a.count == b.count;
}

}  // namespace

static bool take_messages(const state &s, const call &c, int from, const slot &put,
                          const char *data) {
  size_t offset = 0;
  for (int r = 0; r < s.rank; r++) offset += put.block[r];
  for (const message &m : c.messages) {
    if (m.sends || m.peer != from) continue;
    if (put.block[s.rank] != m.bytes) return false;
    memcpy(m.result, data + offset, m.bytes);
  }
  return true;
}

/* Takes what rank `from` has put; false when the ranks' calls differ. */
static bool take_from(const state &s, const call &c, int from, int64_t number) {
  const rank_area &theirs = s.memory->ranks[from];
  const slot &put = theirs.slots[number % SLOTS];
  const size_t block = c.says.count * size_of(c.says.type);
  const view seen(theirs, number);
  if (seen.data == nullptr || !is_alike(put.says, c.says)) return false;
  switch (c.says.kind) {
    case ALL_REDUCE:
      reduce(c.says, seen.data, c.result, from == 0);
      return true;
    case REDUCE_SCATTER:
      reduce(c.says, seen.data + block * (size_t)s.rank, c.result, from == 0);
      return true;
    case BROADCAST:
      if (from == c.says.root) memcpy(c.result, seen.data, block);
      return true;
    case ALL_GATHER:
      memcpy((char *)c.result + block * (size_t)from, seen.data, block);
      return true;
    case MESSAGES:
      return take_messages(s, c, from, put, seen.data);
  }
  return false;
}

/* Whether this rank's data are still what it has put. */
static bool is_unchanged(state &s, const call &c, int64_t number) {
  slot now = {};
  const view before(s.mine(), number);
  copy_data(s, c, nullptr, &now);
  std::vector<char> data(now.bytes + 1);
  copy_data(s, c, data.data(), &now);
  return before.data != nullptr && memcmp(before.data, data.data(), now.bytes) == 0;
}

static bool can_take(const state &s, int64_t number) {
  for (int r = 0; r < s.ranks; r++) {
    if (s.memory->ranks[r].put <= number) return s.dead;
  }
  return true;
}

static void take_data(state &s, const call &c, int64_t number) {
  if (s.dead) return;
  bool good = is_unchanged(s, c, number);
  if (!good) (void)snprintf(last_error, sizeof last_error, "data were changed under a call");
  for (int r = 0; good && r < s.ranks; r++) {
    good = take_from(s, c, r, number);
    if (!good) (void)snprintf(last_error, sizeof last_error, "the calls of the ranks differ");
  }
  if (!good) fail(s, ncclInvalidUsage);
  s.mine().taken++;
}

/* --- calls --- */

static ncclResult_t begin(ncclComm_t comm, cudaStream_t stream, const call &c) {
  comm_state s = comm->state;
  if (s->error != ncclSuccess) return s->error;
  if (!s->connected || s->ending || s->mine().put < s->begun) {
    (void)snprintf(last_error, sizeof last_error, "a call while another is under way");
    return ncclInvalidUsage;
  }
  const int64_t number = s->begun++;
  s->stream = stream;
  const bool faulty = s->planned.number == number + 1;
  if (faulty && s->has_fault("remote")) return fail(*s, ncclRemoteError);
  const bool stalls = faulty && s->has_fault("stall");
  cudaError_t error = mr_host::append_when(
      stream, [s, stalls] { return !stalls || s->dead; }, [s, c] { put_data(*s, c); });
  if (error == cudaSuccess)
    error = mr_host::append_when(
        stream, [s, number] { return can_take(*s, number); },
        [s, c, number] { take_data(*s, c, number); });
  return error == cudaSuccess ? ncclInProgress : ncclUnhandledCudaError;
}

static int depth;
static ncclComm_t group_comm;
static cudaStream_t group_stream;
static call group_call;

ncclResult_t ncclGroupStart(void) {
  if (depth++ == 0) group_comm = nullptr;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0 || group_comm == nullptr) return ncclSuccess;
  return begin(group_comm, group_stream, group_call);
}

static ncclResult_t collect(ncclComm_t comm, cudaStream_t stream, const call &c) {
  if (depth == 0) return begin(comm, stream, c);
  if (group_comm != nullptr && (group_comm != comm || c.says.kind != MESSAGES)) {
    return ncclInvalidUsage;
  }
  if (group_comm == nullptr) {
    group_call = c;
  } else {
    group_call.messages.push_back(c.messages[0]);
  }
  group_comm = comm;
  group_stream = stream;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *data, void *result, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {{ALL_REDUCE, type, operation, 0, count}, data, result, {}});
}

ncclResult_t ncclBroadcast(const void *data, void *result, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {{BROADCAST, type, ncclSum, root, count}, data, result, {}});
}

ncclResult_t ncclAllGather(const void *data, void *result, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {{ALL_GATHER, type, ncclSum, 0, count}, data, result, {}});
}

ncclResult_t ncclReduceScatter(const void *data, void *result, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, stream, {{REDUCE_SCATTER, type, operation, 0, count}, data, result, {}});
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  const message m = {true, peer, data, nullptr, count * size_of(type)};
  return collect(comm, stream, {{MESSAGES, type, ncclSum, 0, 0}, nullptr, nullptr, {m}});
}

ncclResult_t ncclRecv(void *result, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const message m = {false, peer, nullptr, result, count * size_of(type)};
  return collect(comm, stream, {{MESSAGES, type, ncclSum, 0, 0}, nullptr, nullptr, {m}});
}
