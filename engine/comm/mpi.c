/* Open MPI: start and end, communicators, data and records. The only file that calls MPI.
 *
 * Data move by non-blocking operations, which Open MPI carries out by a schedule that follows
 * from the counts and the number of ranks alone; so equal calls give equal bits. What is longer
 * than PIECE elements is cut at multiples of it: counts of MPI are ints. */
#define _GNU_SOURCE 1
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/uio.h>
#endif

#include "base/memory.h"
#include "comm/transport.h"

#ifndef MR_COMM_PIECE
#define MR_COMM_PIECE (INT64_C(1) << 24)
#endif

enum { TAG_DATA = 0, TAG_SEND_RECORD = 1, TAG_RECEIVE_RECORD = 2, TAG_PASS = 3 };

/* Of one group; they live until the world closes, since freeing one is collective. */
typedef struct communicators {
  MPI_Comm data, control;
  struct communicators *next;
} communicators;

/* Requests that are under way, and the types that they use. */
typedef struct transfer {
  MPI_Datatype types[2]; /* a whole piece, the last piece; MPI_DATATYPE_NULL where not used */
  int used, count;
  MPI_Request requests[];
} transfer;

static communicators *first_communicators, **last_communicators = &first_communicators;
static MPI_Op greatest[2], least[2]; /* of f32 and f64 */

static mr_status check(int code, const char *what) {
  if (code == MPI_SUCCESS) return MR_OK;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  (void)MPI_Error_string(code, text, &length);
  return mr_fail(MR_ERROR_ENVIRONMENT, "MPI cannot %s: %s", what, text);
}

/* ---- reductions ---- */

/* MPI's own maximum drops a NaN when it comes from the other side, and leaves the sign of a zero
 * to the order; these keep a NaN and order -0 below +0. */
#define DEFINE_EXTREME(name, type, better, keeps)                            \
  static void name(void *in, void *inout, int *count, MPI_Datatype *dtype) { \
    const type *a = in;                                                      \
    type *b = inout;                                                         \
    (void)dtype;                                                             \
    for (int i = 0; i < *count; i++) {                                       \
      int tie = a[i] == b[i] && !!__builtin_signbit(b[i]) == (keeps);        \
      if (a[i] better b[i] || a[i] != a[i] || tie) b[i] = a[i];              \
    }                                                                        \
  }
DEFINE_EXTREME(greatest_f32, float, >, 1)
DEFINE_EXTREME(greatest_f64, double, >, 1)
DEFINE_EXTREME(least_f32, float, <, 0)
DEFINE_EXTREME(least_f64, double, <, 0)

static mr_status create_operations(void) {
  MR_TRY(check(MPI_Op_create(greatest_f32, 1, &greatest[0]), "create an operation"));
  MR_TRY(check(MPI_Op_create(greatest_f64, 1, &greatest[1]), "create an operation"));
  MR_TRY(check(MPI_Op_create(least_f32, 1, &least[0]), "create an operation"));
  return check(MPI_Op_create(least_f64, 1, &least[1]), "create an operation");
}

static MPI_Datatype type_of(const mr_record *record) {
  switch ((mr_dtype)record->dtype) {
    case MR_F32:
      return MPI_FLOAT;
    case MR_F64:
      return MPI_DOUBLE;
    case MR_BF16: /* moved, never summed */
      return MPI_UINT16_T;
    case MR_I32:
      return MPI_INT32_T;
    default:
      return MPI_INT64_T;
  }
}

static MPI_Op operation_of(const mr_record *record) {
  int real = record->dtype == MR_F32 ? 0 : record->dtype == MR_F64 ? 1 : -1;
  if (record->reduction == MR_MAX) return real < 0 ? MPI_MAX : greatest[real];
  if (record->reduction == MR_MIN) return real < 0 ? MPI_MIN : least[real];
  return MPI_SUM;
}

/* ---- data ---- */

static communicators *of_group(const mr_group *group) { return group->communicators; }

static mr_status new_transfer(int64_t requests, transfer **made) {
  void *block = NULL;
  int64_t bytes = (int64_t)sizeof(transfer) + requests * (int64_t)sizeof(MPI_Request);
  *made = NULL;
  MR_TRY(mr_memory_allocate(bytes, &block));
  *made = block;
  (*made)->types[0] = (*made)->types[1] = MPI_DATATYPE_NULL;
  return MR_OK;
}

static void release_transfer(transfer *t) {
  for (int i = 0; i < 2; i++) {
    if (t->types[i] != MPI_DATATYPE_NULL) (void)MPI_Type_free(&t->types[i]);
  }
  mr_memory_release(t);
}

static int64_t pieces_of(int64_t count) { return (count + MR_COMM_PIECE - 1) / MR_COMM_PIECE; }

/* One piece of `n` elements at `offset` of operations whose blocks lie end to end. */
static int start_piece(const mr_handle *handle, int64_t offset, int n, MPI_Request *request) {
  const mr_record *record = &handle->record;
  MPI_Comm comm = of_group(handle->group)->data;
  MPI_Datatype type = type_of(record);
  int64_t bytes = offset * mr_dtype_size((mr_dtype)record->dtype);
  const char *data = handle->data ? (const char *)handle->data + bytes : NULL;
  char *result = handle->result ? (char *)handle->result + bytes : NULL;
  switch ((mr_collective)record->kind) {
    case MR_ALL_REDUCE:
      return MPI_Iallreduce(MPI_IN_PLACE, result, n, type, operation_of(record), comm, request);
    case MR_BROADCAST:
      return MPI_Ibcast(result, n, type, record->peer, comm, request);
    case MR_SEND:
      return MPI_Isend(data, n, type, record->peer, TAG_DATA, comm, request);
    default:
      return MPI_Irecv(result, n, type, record->peer, TAG_DATA, comm, request);
  }
}

static mr_status start_in_pieces(mr_handle *handle, transfer *t) {
  int64_t count = handle->record.count;
  for (int64_t offset = 0; offset < count; offset += MR_COMM_PIECE) {
    int64_t rest = count - offset;
    int n = (int)(rest < MR_COMM_PIECE ? rest : MR_COMM_PIECE);
    MR_TRY(check(start_piece(handle, offset, n, &t->requests[t->used]), "start an operation"));
    t->used++;
  }
  return MR_OK;
}

/* A type of `n` elements that is followed by the next one `count` elements after its begin. */
static mr_status strided_type(const mr_record *record, int n, MPI_Datatype *type) {
  MPI_Datatype piece = MPI_DATATYPE_NULL;
  MPI_Aint extent = (MPI_Aint)(record->count * mr_dtype_size((mr_dtype)record->dtype));
  MR_TRY(check(MPI_Type_contiguous(n, type_of(record), &piece), "make a type"));
  mr_status status = check(MPI_Type_create_resized(piece, 0, extent, type), "make a type");
  (void)MPI_Type_free(&piece);
  return status == MR_OK ? check(MPI_Type_commit(type), "make a type") : status;
}

/* all_gather and all_to_all: a block per rank, `count` elements apart. */
static mr_status start_blocks(mr_handle *handle, transfer *t) {
  const mr_record *record = &handle->record;
  MPI_Comm comm = of_group(handle->group)->data;
  int64_t size = mr_dtype_size((mr_dtype)record->dtype);
  const char *own = (char *)handle->result + handle->group->rank * record->count * size;
  int in_place = record->kind == MR_ALL_GATHER && handle->data == own;
  for (int64_t offset = 0; offset < record->count; offset += MR_COMM_PIECE) {
    int64_t rest = record->count - offset;
    int last = rest <= MR_COMM_PIECE;
    MPI_Datatype *type = &t->types[last];
    if (*type == MPI_DATATYPE_NULL)
      MR_TRY(strided_type(record, (int)(last ? rest : MR_COMM_PIECE), type));
    const void *data = in_place ? MPI_IN_PLACE : (const char *)handle->data + offset * size;
    char *result = (char *)handle->result + offset * size;
    MPI_Request *request = &t->requests[t->used];
    int code = record->kind == MR_ALL_GATHER
                   ? MPI_Iallgather(data, 1, *type, result, 1, *type, comm, request)
                   : MPI_Ialltoall(data, 1, *type, result, 1, *type, comm, request);
    MR_TRY(check(code, "start an operation"));
    t->used++;
  }
  return MR_OK;
}

/* In one call where it fits into one piece; else each rank's block is reduced in pieces. */
static mr_status start_reduce_scatter(mr_handle *handle, transfer *t) {
  const mr_record *record = &handle->record;
  MPI_Comm comm = of_group(handle->group)->data;
  MPI_Datatype type = type_of(record);
  MPI_Op operation = operation_of(record);
  int64_t count = record->count, size = mr_dtype_size((mr_dtype)record->dtype);
  if (count <= MR_COMM_PIECE / handle->group->size) {
    t->used = 1;
    return check(MPI_Ireduce_scatter_block(handle->data, handle->result, (int)count, type,
                                           operation, comm, &t->requests[0]),
                 "start an operation");
  }
  for (int root = 0; root < handle->group->size; root++) {
    for (int64_t offset = 0; offset < count; offset += MR_COMM_PIECE) {
      int64_t rest = count - offset;
      int n = (int)(rest < MR_COMM_PIECE ? rest : MR_COMM_PIECE);
      const char *data = (const char *)handle->data + (root * count + offset) * size;
      MR_TRY(check(MPI_Ireduce(data, (char *)handle->result + offset * size, n, type, operation,
                               root, comm, &t->requests[t->used]),
                   "start an operation"));
      t->used++;
    }
  }
  return MR_OK;
}

static mr_status start(mr_handle *handle) {
  transfer *t = NULL;
  int64_t pieces = pieces_of(handle->record.count);
  if (handle->record.kind == MR_REDUCE_SCATTER) pieces *= handle->group->size;
  MR_TRY(new_transfer(pieces, &t));
  handle->transfer = t;
  switch ((mr_collective)handle->record.kind) {
    case MR_ALL_GATHER:
    case MR_ALL_TO_ALL:
      return start_blocks(handle, t);
    case MR_REDUCE_SCATTER:
      return start_reduce_scatter(handle, t);
    default:
      return start_in_pieces(handle, t);
  }
}

static mr_status test(mr_handle *handle, int *done) {
  transfer *t = handle->transfer;
  MR_TRY(check(MPI_Testall(t->used, t->requests, done, MPI_STATUSES_IGNORE), "move data"));
  if (!*done) return MR_OK;
  handle->transfer = NULL;
  release_transfer(t);
  return MR_OK;
}

/* ---- records ---- */

static mr_status exchange(mr_handle *handle, mr_record *theirs, void **request) {
  transfer *t = NULL;
  MPI_Comm comm = of_group(handle->group)->control;
  mr_record *mine = &handle->record;
  int bytes = (int)sizeof(mr_record), peer = mine->peer;
  MR_TRY(new_transfer(2, &t));
  *request = t;
  if (mine->kind != MR_SEND && mine->kind != MR_RECEIVE) {
    t->used = 1;
    return check(
        MPI_Iallgather(mine, bytes, MPI_BYTE, theirs, bytes, MPI_BYTE, comm, &t->requests[0]),
        "compare an operation");
  }
  int sending = mine->kind == MR_SEND;
  int out = sending ? TAG_SEND_RECORD : TAG_RECEIVE_RECORD;
  int in = sending ? TAG_RECEIVE_RECORD : TAG_SEND_RECORD;
  t->used = 2;
  MR_TRY(check(MPI_Irecv(theirs, bytes, MPI_BYTE, peer, in, comm, &t->requests[0]),
               "compare a message"));
  return check(MPI_Isend(mine, bytes, MPI_BYTE, peer, out, comm, &t->requests[1]),
               "compare a message");
}

static mr_status exchanged(void **request, int *done) {
  transfer *t = *request;
  MR_TRY(check(MPI_Testall(t->used, t->requests, done, MPI_STATUSES_IGNORE), "compare"));
  if (!*done) return MR_OK;
  *request = NULL;
  release_transfer(t);
  return MR_OK;
}

static mr_status pass(mr_group *group, int peer, int sending, void *data, int bytes,
                      void **request) {
  transfer *t = NULL;
  MPI_Comm comm = of_group(group)->control;
  MR_TRY(new_transfer(1, &t));
  *request = t;
  t->used = 1;
  int code = sending ? MPI_Isend(data, bytes, MPI_BYTE, peer, TAG_PASS, comm, &t->requests[0])
                     : MPI_Irecv(data, bytes, MPI_BYTE, peer, TAG_PASS, comm, &t->requests[0]);
  return check(code, "connect two ranks");
}

/* ---- groups ---- */

/* Gives `group` its communicators, rank and size; takes `data`. */
static mr_status adopt(mr_group *group, MPI_Comm data) {
  void *block = NULL;
  MR_TRY(mr_memory_allocate((int64_t)sizeof(communicators), &block));
  communicators *made = block;
  made->data = data;
  made->control = MPI_COMM_NULL;
  *last_communicators = made;
  last_communicators = &made->next;
  group->communicators = made;
  MR_TRY(check(MPI_Comm_dup(data, &made->control), "make a communicator"));
  MR_TRY(check(MPI_Comm_rank(data, &group->rank), "make a communicator"));
  MR_TRY(check(MPI_Comm_size(data, &group->size), "make a communicator"));
  MR_TRY(mr_memory_allocate_array(group->size, (int64_t)sizeof(int), &block));
  group->members = block;
  int world_rank = 0;
  MR_TRY(check(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank), "make a communicator"));
  return check(MPI_Allgather(&world_rank, 1, MPI_INT, group->members, 1, MPI_INT, data),
               "make a communicator");
}

static mr_status split(mr_group *parent, int color, int key, mr_group *child) {
  MPI_Comm data = MPI_COMM_NULL;
  MR_TRY(
      check(MPI_Comm_split(of_group(parent)->data, color < 0 ? MPI_UNDEFINED : color, key, &data),
            "split a group"));
  return data == MPI_COMM_NULL ? MR_OK : adopt(child, data);
}

static mr_status spread(mr_group *group, void *data, int bytes) {
  return check(MPI_Bcast(data, bytes, MPI_BYTE, 0, of_group(group)->data), "set up a group");
}

static mr_status lowest(mr_group *group, int *flag) {
  return check(MPI_Allreduce(MPI_IN_PLACE, flag, 1, MPI_INT, MPI_MIN, of_group(group)->data),
               "set up a group");
}

static mr_status plain_sum(mr_group *group, float *data, int64_t count) {
  for (int64_t first = 0; first < count; first += MR_COMM_PIECE) {
    int64_t piece = count - first < MR_COMM_PIECE ? count - first : MR_COMM_PIECE;
    MR_TRY(check(MPI_Allreduce(MPI_IN_PLACE, data + first, (int)piece, MPI_FLOAT, MPI_SUM,
                               of_group(group)->data),
                 "reduce"));
  }
  return MR_OK;
}

/* ---- start and end ---- */

/* Open MPI on one host copies between processes by a system call that some containers forbid; it
 * would then print an error for every message. */
static void avoid_forbidden_copies(void) {
#ifdef __linux__
  char from = 0, to = 0;
  struct iovec local = {&to, 1}, remote = {&from, 1};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1) {
    (void)setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  }
#endif
}

/* MAREA_RANKS_PER_HOST=N, for specs: each N ranks of this host pass as a host of their own. */
static void pretend_hosts(mr_world *world) {
  const char *text = getenv("MAREA_RANKS_PER_HOST");
  int ranks = text ? atoi(text) : 0;
  for (int r = 0; ranks > 0 && r < world->group->size; r++) world->hosts[r] = r - r % ranks;
}

/* hosts[r] = the lowest rank on the host of rank r. */
static mr_status find_hosts(mr_world *world) {
  MPI_Comm node = MPI_COMM_NULL;
  void *block = NULL;
  int leader = world->group->rank;
  MR_TRY(mr_memory_allocate_array(world->group->size, (int64_t)sizeof(int), &block));
  world->hosts = block;
  MR_TRY(check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
               "find the hosts"));
  mr_status status = check(MPI_Bcast(&leader, 1, MPI_INT, 0, node), "find the hosts");
  (void)MPI_Comm_free(&node);
  if (status != MR_OK) return status;
  MR_TRY(check(MPI_Allgather(&leader, 1, MPI_INT, world->hosts, 1, MPI_INT, MPI_COMM_WORLD),
               "find the hosts"));
  pretend_hosts(world);
  return MR_OK;
}

mr_status mr_mpi_open(mr_world *world) {
  int provided = 0, already = 0;
  MPI_Comm data = MPI_COMM_NULL;
  world->transport = &mr_transport_mpi;
  (void)MPI_Initialized(&already);
  if (already) return mr_fail(MR_ERROR_ENVIRONMENT, "MPI was already started by something else");
  avoid_forbidden_copies();
  MR_TRY(check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "start"));
  if (provided < MPI_THREAD_FUNNELED)
    return mr_fail(MR_ERROR_ENVIRONMENT, "MPI does not work in a program with threads");
  (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MR_TRY(create_operations());
  MR_TRY(check(MPI_Comm_dup(MPI_COMM_WORLD, &data), "make a communicator"));
  MR_TRY(adopt(world->group, data));
  return find_hosts(world);
}

static mr_status close_world(mr_world *world) {
  (void)world;
  while (first_communicators) {
    communicators *c = first_communicators;
    first_communicators = c->next;
    if (c->control != MPI_COMM_NULL) (void)MPI_Comm_free(&c->control);
    (void)MPI_Comm_free(&c->data);
    mr_memory_release(c);
  }
  for (int i = 0; i < 2; i++) {
    (void)MPI_Op_free(&greatest[i]);
    (void)MPI_Op_free(&least[i]);
  }
  return check(MPI_Finalize(), "shut down");
}

static void stop(int exit_code) { (void)MPI_Abort(MPI_COMM_WORLD, exit_code); }

const mr_transport mr_transport_mpi = {
    .name = "Open MPI",
    .start = start,
    .test = test,
    .split = split,
    .spread = spread,
    .lowest = lowest,
    .plain_sum = plain_sum,
    .exchange = exchange,
    .exchanged = exchanged,
    .pass = pass,
    .close = close_world,
    .stop = stop,
};
