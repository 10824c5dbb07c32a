#include "grad/products.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "grad/node.h"

struct mr_products {
  mr_device *device;
  mr_dtype dtype;
  mr_product_shape *shape;
  int64_t count, capacity;
  mr_tensor *a, *b, *c; /* shared by all entries, each as large as the largest needs */
};

static mr_status grow(mr_products *p) {
  int64_t capacity = p->capacity ? 2 * p->capacity : 64;
  void *block = NULL;
  MR_TRY(mr_memory_allocate_array(capacity, sizeof *p->shape, &block));
  if (p->count) memcpy(block, p->shape, (size_t)p->count * sizeof *p->shape);
  mr_memory_release(p->shape);
  p->shape = block;
  p->capacity = capacity;
  return MR_OK;
}

static int alike(const mr_product_shape *x, const mr_product_shape *y) {
  return x->batched && y->batched && x->transpose_a == y->transpose_a &&
         x->transpose_b == y->transpose_b && x->m == y->m && x->n == y->n && x->k == y->k &&
         x->adds == y->adds;
}

/* Equal products of a batch that come one after the other become one entry. */
static mr_status add(void *context, const mr_product_shape *shape) {
  mr_products *p = context;
  if (shape->count == 0) return MR_OK;
  if (p->count > 0 && alike(&p->shape[p->count - 1], shape)) {
    p->shape[p->count - 1].count += shape->count;
    return MR_OK;
  }
  if (p->count == p->capacity) MR_TRY(grow(p));
  p->shape[p->count++] = *shape;
  return MR_OK;
}

static mr_status visit(void *context, mr_node *node) {
  const mr_call *call = &node->call;
  mr_products *p = context;
  if (!call->op->products) return MR_OK;
  if (p->count == 0) p->dtype = call->dtype;
  return call->op->products(call, add, context);
}

/* Values of about 1/100 whose sums neither vanish nor grow beyond what a float holds. */
static mr_status make_buffer(mr_products *p, int64_t count, mr_tensor **tensor) {
  mr_shape shape = {1, {count}};
  MR_TRY(mr_tensor_new_raw(p->device, p->dtype, &shape, tensor));
  return MR_KERNEL(p->device, p->dtype, fill, count, 0.0078125, mr_tensor_data(*tensor));
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static mr_status make_buffers(mr_products *p) {
  int64_t a = 1, b = 1, c = 1;
  for (int64_t i = 0; i < p->count; i++) {
    const mr_product_shape *s = &p->shape[i];
    a = larger(a, s->count * s->m * s->k);
    b = larger(b, s->count * s->k * s->n);
    c = larger(c, s->count * s->m * s->n);
  }
  MR_TRY(make_buffer(p, a, &p->a));
  MR_TRY(make_buffer(p, b, &p->b));
  return make_buffer(p, c, &p->c);
}

mr_status mr_products_new(mr_tape *tape, mr_tensor *root, mr_products **products) {
  void *block = NULL;
  *products = NULL;
  MR_TRY(mr_memory_allocate(sizeof(mr_products), &block));
  mr_products *made = block;
  made->device = mr_tensor_device(root);
  made->dtype = root->dtype;
  mr_status status = mr_tape_each_node(tape, root, visit, made);
  if (status == MR_OK) status = make_buffers(made);
  if (status != MR_OK) {
    mr_products_release(made);
    return status;
  }
  *products = made;
  return MR_OK;
}

void mr_products_release(mr_products *products) {
  if (!products) return;
  mr_tensor_release(products->a);
  mr_tensor_release(products->b);
  mr_tensor_release(products->c);
  mr_memory_release(products->shape);
  mr_memory_release(products);
}

static mr_status run_one(mr_products *p, const mr_product_shape *s) {
  const void *a = mr_tensor_data(p->a), *b = mr_tensor_data(p->b);
  void *c = mr_tensor_data(p->c);
  double beta = s->adds ? 1 : 0;
  if (s->batched)
    return MR_KERNEL(p->device, p->dtype, gemms, s->count, s->transpose_a, s->transpose_b, s->m,
                     s->n, s->k, 1.0, a, b, beta, c);
  for (int64_t i = 0; i < s->count; i++)
    MR_TRY(MR_KERNEL(p->device, p->dtype, gemm, s->transpose_a, s->transpose_b, s->m, s->n, s->k,
                     1.0, a, b, beta, c));
  return MR_OK;
}

mr_status mr_products_run_sync(mr_products *products) {
  for (int64_t i = 0; i < products->count; i++) MR_TRY(run_one(products, &products->shape[i]));
  return products->device->finish_sync(products->device);
}

double mr_products_operations(const mr_products *products, int batched) {
  double sum = 0;
  for (int64_t i = 0; i < products->count; i++) {
    const mr_product_shape *s = &products->shape[i];
    if (s->batched == batched)
      sum += 2.0 * (double)s->count * (double)s->m * (double)s->n * (double)s->k;
  }
  return sum;
}

int64_t mr_products_count(const mr_products *products) { return products->count; }

mr_product_shape mr_products_shape(const mr_products *products, int64_t i) {
  return products->shape[i];
}
