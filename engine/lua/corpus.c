/* core.corpus_open(path), core.corpus_over(inputs, targets, offsets, split) -> corpus: sequences by
 * id, counted from 1, of a mapped file or of the tensors given (i32 [T], i32 [T], i64 [S+1],
 * i32 [S]), which must not change afterwards.
 *
 * size(), length(id), tokens(id) (supervised), split(id); names(), tensor(name), metadata() of the
 * file, for one that has a file; check_symbols(vocabulary, classes) raises at the first symbol
 * outside; gather(ids) and gather_padded(ids, length, pad) -> {ids, targets, positions (i32
 * [rows]), sequence_ids (i64 [rows]), lengths, starts (i64 [sequences])}; close(). */
#include "store/corpus.h"

#include "lua/binding.h"
#include "lua/safetensors.h"
#include "lua/text.h"

static const char type_name[] = "marea.corpus";

typedef struct box {
  mr_corpus *corpus;
} box;

static const mr_corpus *check_corpus(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  if (!held->corpus) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "this corpus is closed");
  return held->corpus;
}

static int close_corpus(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  mr_corpus *corpus = held->corpus;
  held->corpus = NULL;
  mr_corpus_release(corpus);
  return 0;
}

static int to_text(lua_State *L) {
  box *held = luaL_checkudata(L, 1, type_name);
  const mr_safetensors *file = held->corpus ? mr_corpus_file(held->corpus) : NULL;
  const char *what = file ? mr_safetensors_path(file) : held->corpus ? "in memory" : "closed";
  lua_pushfstring(L, "corpus<%s>", what);
  return 1;
}

static box *push_shell(lua_State *L, int values) {
  box *shell = lua_newuserdatauv(L, sizeof(box), values);
  shell->corpus = NULL;
  luaL_setmetatable(L, type_name);
  return shell;
}

static int open_corpus(lua_State *L) {
  const char *path = mr_lua_check_text(L, 1, "a path");
  MR_LUA_TRY(L, mr_corpus_open(path, &push_shell(L, 0)->corpus));
  return 1;
}

/* Pushes what keeps the elements of the tensor at `index` on the host, and returns them. */
static const void *push_host(lua_State *L, int index, mr_dtype dtype, int64_t *count) {
  const mr_tensor *given = mr_lua_check_tensor(L, index);
  MR_LUA_TRY(L, mr_tensor_readable(given, "a tensor of the corpus"));
  if (given->dtype != dtype)
    (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "expected %s as argument %d, got %s",
                       mr_dtype_name(dtype), index, mr_dtype_name(given->dtype));
  *count = given->count;
  if (mr_tensor_device(given)->host_memory) {
    lua_pushvalue(L, index);
    return mr_tensor_data(given);
  }
  void *host = lua_newuserdatauv(L, (size_t)mr_tensor_bytes(given), 0);
  MR_LUA_TRY(L, mr_tensor_read_sync(given, host));
  return host;
}

static int corpus_over(lua_State *L) {
  mr_corpus_arrays arrays = {0};
  int64_t targets = 0, offsets = 0;
  lua_settop(L, 4);
  box *shell = push_shell(L, 4);
  arrays.inputs = push_host(L, 1, MR_I32, &arrays.rows);
  arrays.targets = push_host(L, 2, MR_I32, &targets);
  arrays.offsets = push_host(L, 3, MR_I64, &offsets);
  arrays.split = push_host(L, 4, MR_I32, &arrays.size);
  for (int i = 4; i >= 1; i--) (void)lua_setiuservalue(L, 5, i);
  if (targets != arrays.rows || offsets != arrays.size + 1)
    return mr_lua_error(L, MR_ERROR_ARGUMENT,
                        "expected %lld targets and %lld offsets, as there are inputs and one more "
                        "than splits, got %lld and %lld",
                        (long long)arrays.rows, (long long)arrays.size + 1, (long long)targets,
                        (long long)offsets);
  MR_LUA_TRY(L, mr_corpus_over(&arrays, &shell->corpus));
  return 1;
}

/* Asking */

static int64_t check_id(lua_State *L, const mr_corpus *corpus, int index) {
  lua_Integer id = luaL_checkinteger(L, index);
  MR_LUA_TRY(L, mr_corpus_check_id(corpus, id));
  return id;
}

static int size(lua_State *L) {
  lua_pushinteger(L, mr_corpus_size(check_corpus(L)));
  return 1;
}

static int length(lua_State *L) {
  const mr_corpus *corpus = check_corpus(L);
  lua_pushinteger(L, mr_corpus_length(corpus, check_id(L, corpus, 2)));
  return 1;
}

static int tokens(lua_State *L) {
  const mr_corpus *corpus = check_corpus(L);
  lua_pushinteger(L, mr_corpus_tokens(corpus, check_id(L, corpus, 2)));
  return 1;
}

static int split(lua_State *L) {
  const mr_corpus *corpus = check_corpus(L);
  lua_pushinteger(L, mr_corpus_split(corpus, check_id(L, corpus, 2)));
  return 1;
}

static const mr_safetensors *check_file(lua_State *L) {
  const mr_safetensors *file = mr_corpus_file(check_corpus(L));
  if (!file) (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "this corpus has no file");
  return file;
}

static int names(lua_State *L) {
  mr_lua_push_names(L, check_file(L));
  return 1;
}

static int metadata(lua_State *L) {
  mr_lua_push_metadata(L, check_file(L));
  return 1;
}

static int tensor(lua_State *L) {
  const mr_safetensors *file = check_file(L);
  mr_lua_push_stored(L, file, mr_lua_check_text(L, 2, "a tensor's name"));
  return 1;
}

static int check_symbols(lua_State *L) {
  const mr_corpus *corpus = check_corpus(L);
  lua_Integer vocabulary = luaL_checkinteger(L, 2), classes = luaL_checkinteger(L, 3);
  MR_LUA_TRY(L, mr_corpus_check_symbols(corpus, vocabulary, classes));
  return 0;
}

/* Gathering */

/* The list of ids at `index`; pushes their block. */
static const int64_t *push_ids(lua_State *L, int index, int64_t *count) {
  luaL_checktype(L, index, LUA_TTABLE);
  *count = luaL_len(L, index);
  int64_t *ids = lua_newuserdatauv(L, (size_t)*count * sizeof *ids, 0);
  for (int64_t i = 0; i < *count; i++) {
    int is_integer = 0;
    (void)lua_geti(L, index, i + 1);
    ids[i] = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer)
      (void)mr_lua_error(L, MR_ERROR_ARGUMENT, "id %lld must be an integer, got %s",
                         (long long)i + 1, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  return ids;
}

/* Pushes a block on the host with room for a batch. */
static mr_corpus_batch push_room(lua_State *L, int64_t rows, int64_t sequences) {
  size_t wide = (size_t)(rows + 2 * sequences) * sizeof(int64_t);
  char *block = lua_newuserdatauv(L, wide + 3 * (size_t)rows * sizeof(int32_t), 0);
  int64_t *words = (void *)block;
  int32_t *halves = (void *)(block + wide);
  return (mr_corpus_batch){.inputs = halves,
                           .targets = halves + rows,
                           .positions = halves + 2 * rows,
                           .sequence_ids = words,
                           .lengths = words + rows,
                           .starts = words + rows + sequences};
}

/* Sets field `name` of the table at the top of the stack to a tensor of `count` values. */
static void set_vector(lua_State *L, const char *name, mr_dtype dtype, int64_t count,
                       const void *values) {
  mr_shape shape = {.axes = 1, .extent = {count}};
  mr_tensor **slot = mr_lua_push_tensor_shell(L);
  MR_LUA_TRY(L, mr_tensor_new_raw(mr_lua_context(L)->device, dtype, &shape, slot));
  MR_LUA_TRY(L, mr_tensor_write(*slot, values));
  mr_lua_tensor_made(L);
  lua_setfield(L, -2, name);
}

static int push_batch(lua_State *L, int64_t rows, int64_t sequences, const mr_corpus_batch *batch) {
  lua_createtable(L, 0, 6);
  set_vector(L, "ids", MR_I32, rows, batch->inputs);
  set_vector(L, "targets", MR_I32, rows, batch->targets);
  set_vector(L, "positions", MR_I32, rows, batch->positions);
  set_vector(L, "sequence_ids", MR_I64, rows, batch->sequence_ids);
  set_vector(L, "lengths", MR_I64, sequences, batch->lengths);
  set_vector(L, "starts", MR_I64, sequences, batch->starts);
  return 1;
}

static int gather(lua_State *L) {
  const mr_corpus *corpus = check_corpus(L);
  int64_t count = 0, rows = 0;
  const int64_t *ids = push_ids(L, 2, &count);
  MR_LUA_TRY(L, mr_corpus_count_rows(corpus, count, ids, &rows));
  mr_corpus_batch batch = push_room(L, rows, count);
  MR_LUA_TRY(L, mr_corpus_gather(corpus, count, ids, &batch));
  return push_batch(L, rows, count, &batch);
}

static int gather_padded(lua_State *L) {
  const mr_corpus *corpus = check_corpus(L);
  int64_t count = 0, rows = 0;
  lua_Integer padded = luaL_checkinteger(L, 3), pad = luaL_checkinteger(L, 4);
  luaL_argcheck(L, pad >= INT32_MIN && pad <= INT32_MAX, 4, "expected an i32");
  luaL_argcheck(L, padded >= 0 && padded <= INT32_MAX, 3, "expected a length that fits an i32");
  const int64_t *ids = push_ids(L, 2, &count);
  if (__builtin_mul_overflow(count, padded, &rows) || rows > INT64_MAX / 32)
    return mr_lua_error(L, MR_ERROR_MEMORY, "no memory for %lld sequences of %lld rows",
                        (long long)count, (long long)padded);
  mr_corpus_batch batch = push_room(L, rows, count);
  MR_LUA_TRY(L, mr_corpus_gather_padded(corpus, count, ids, padded, (int32_t)pad, &batch));
  return push_batch(L, rows, count, &batch);
}

void mr_lua_open_corpus(lua_State *L) {
  static const luaL_Reg methods[] = {{"size", size},          {"length", length},
                                     {"tokens", tokens},      {"split", split},
                                     {"names", names},        {"tensor", tensor},
                                     {"metadata", metadata},  {"check_symbols", check_symbols},
                                     {"gather", gather},      {"gather_padded", gather_padded},
                                     {"close", close_corpus}, {NULL, NULL}};
  static const luaL_Reg metamethods[] = {
      {"__gc", close_corpus}, {"__close", close_corpus}, {"__tostring", to_text}, {NULL, NULL}};
  mr_lua_define_type(L, type_name, methods, metamethods);
  lua_pushcfunction(L, open_corpus);
  lua_setfield(L, -2, "corpus_open");
  lua_pushcfunction(L, corpus_over);
  lua_setfield(L, -2, "corpus_over");
}
