/* Compares rows of the GPUs' kernels, run on the host, with the processor's; those of bf16 with the
 * processor's of f32, on the same numbers.
 *
 * A file of cases, rows_<what>.cc, has functions `template <typename T> void some(bench<T> &b)`
 * and registers each with ROWS(some). A case makes arrays, then calls `compare`, which runs the
 * row on copies of them for the processor and for the device, the latter under several seeds. */
#ifndef MR_SPEC_CUDA_ROWS_H
#define MR_SPEC_CUDA_ROWS_H

#include <math.h>
#include <stdint.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/real.h"
#include "kernels/cuda/stream.h"
#include "kernels/kernels.h"

namespace rows {

/* 0, 1, primes, and both sides of warps and blocks. */
extern const std::vector<int64_t> extents, few_extents;

/* What all cases share. */
struct run {
  mr_launch cpu_launch, gpu_launch;
  std::vector<uint64_t> seeds;
  std::set<std::string> compared, missing; /* rows */
  int64_t comparisons = 0, failures = 0;
  uint64_t random = 1;
};

/* wide: as of kernels.h */
enum class kind { real, wide, i32, i64, f32, f64 };

/* An array as it is at first: each call gets a copy. */
struct array {
  kind type;
  std::vector<unsigned char> bytes;
  void *cpu = nullptr, *gpu = nullptr; /* the copies of the running call */
  explicit operator bool() const { return true; }
};

/* A number of [-1, 1), from a sequence of its own. */
double uniform(run &r);

/* Copies to the device, runs, and back; the error of `call`, or of the copies. */
int on_device(run &r, const std::vector<array *> &arrays, const std::function<int()> &call);
/* Prints a difference. */
void differ(run &r, const std::string &what, int64_t index, double got, double expected);

template <typename T>
struct bench {
  typedef typename mr_cuda_sum<T>::type W;
  run &r;
  const mr_kernels *cpu, *gpu;
  std::vector<array *> arrays; /* made by the running case */

  ~bench() {
    for (array *a : arrays) delete a;
  }

  template <typename E>
  array &make(kind type, int64_t n, const std::function<E(int64_t)> &value) {
    array *a = new array{type, std::vector<unsigned char>((size_t)n * sizeof(E))};
    for (int64_t i = 0; i < n; i++) ((E *)a->bytes.data())[i] = value(i);
    arrays.push_back(a);
    return *a;
  }
  /* n reals of [-scale, scale) */
  array &reals(int64_t n, double scale = 1) {
    return make<T>(kind::real, n, [&](int64_t) { return (T)(scale * uniform(r)); });
  }
  array &filled(int64_t n, double value) {
    return make<T>(kind::real, n, [&](int64_t) { return (T)value; });
  }
  /* What a row writes without reading it. */
  array &unset(int64_t n) { return filled(n, NAN); }
  array &wides(int64_t n, double scale = 1) {
    return make<W>(kind::wide, n, [&](int64_t) { return (W)(scale * uniform(r)); });
  }
  array &filled_wide(int64_t n, double value) {
    return make<W>(kind::wide, n, [&](int64_t) { return (W)value; });
  }
  array &unset_wide(int64_t n) { return filled_wide(n, NAN); }
  array &integers(int64_t n, int64_t below) {
    return make<int32_t>(kind::i32, n, [&](int64_t) {
      return (int32_t)(below > 0 ? (int64_t)(0.5 * (uniform(r) + 1) * (double)below) : 0);
    });
  }
  array &longs(const std::vector<int64_t> &values) {
    return make<int64_t>(kind::i64, (int64_t)values.size(),
                         [&](int64_t i) { return values[(size_t)i]; });
  }

  /* Forgets the arrays made so far. */
  void clear() {
    for (array *a : arrays) delete a;
    arrays.clear();
  }

  /* Runs row `member` (called `name`) on both: `call(row, launch, at)`, where at(array) is its
   * copy there, and at(pointer) NULL for NULL. Afterwards `outputs` must agree within
   * tolerance (1 + |expected|) `scale`, and have the same bits for every seed; all other arrays
   * must be as they were. Tolerances: 2e-6 for float, 1e-14 for double; results of bf16 may differ
   * by 2^-7 (1 + |expected|), since they are rounded, some of them twice. */
  template <typename Row, typename F>
  void compare(const char *name, Row mr_kernels::*member, double scale,
               const std::vector<array *> &outputs, F call) {
    if (gpu->*member == nullptr) {
      r.missing.insert(name);
      return;
    }
    compare_calls(
        name, scale, outputs,
        [&] {
          return call(cpu->*member, &r.cpu_launch,
                      [](array *a) { return a == nullptr ? nullptr : a->cpu; });
        },
        [&] {
          return call(gpu->*member, &r.gpu_launch,
                      [](array *a) { return a == nullptr ? nullptr : a->gpu; });
        });
  }

 private:
  typedef std::vector<std::vector<unsigned char>> contents;

  contents all() const {
    contents bytes;
    for (array *a : arrays) bytes.push_back(a->bytes);
    return bytes;
  }
  /* The same for the processor, whose reals are wide. */
  contents all_wide() const {
    contents bytes;
    for (array *a : arrays) {
      bytes.push_back(a->bytes);
      if (a->type != kind::real || sizeof(T) == sizeof(W)) continue;
      bytes.back().resize(a->bytes.size() / sizeof(T) * sizeof(W));
      for (size_t i = 0; i < a->bytes.size() / sizeof(T); i++) {
        ((W *)bytes.back().data())[i] = (W)((const T *)a->bytes.data())[i];
      }
    }
    return bytes;
  }
  void compare_calls(const char *name, double scale, const std::vector<array *> &outputs,
                     const std::function<int()> &on_cpu, const std::function<int()> &on_gpu);
  void judge(const std::string &what, const array &a, double scale,
             const std::vector<unsigned char> &got, const std::vector<unsigned char> &expected);
};

template <typename T>
double value_at(const array &a, const unsigned char *bytes, int64_t i) {
  switch (a.type) {
    case kind::i32:
      return (double)((const int32_t *)bytes)[i];
    case kind::i64:
      return (double)((const int64_t *)bytes)[i];
    case kind::wide:
      return (double)((const typename mr_cuda_sum<T>::type *)bytes)[i];
    case kind::f32:
      return (double)((const float *)bytes)[i];
    case kind::f64:
      return ((const double *)bytes)[i];
    default:
      return (double)((const T *)bytes)[i];
  }
}

template <typename T>
size_t size_at(const array &a) {
  return a.type == kind::i32 || a.type == kind::f32   ? 4
         : a.type == kind::i64 || a.type == kind::f64 ? 8
         : a.type == kind::wide                       ? sizeof(typename mr_cuda_sum<T>::type)
                                                      : sizeof(T);
}

inline bool agree(double got, double expected, double tolerance) {
  if (isnan(expected)) return isnan(got);
  if (isinf(expected)) return got == expected;
  return fabs(got - expected) <= tolerance * (1 + fabs(expected));
}

template <typename T>
void bench<T>::judge(const std::string &what, const array &a, double scale,
                     const std::vector<unsigned char> &got,
                     const std::vector<unsigned char> &expected) {
  const bool rounded = sizeof(T) == 2 && a.type == kind::real;
  const double tolerance =
      rounded ? (scale > 0 ? 0x1p-7 : 0) : scale * (sizeof(W) == 4 ? 2e-6 : 1e-14);
  for (int64_t i = 0; i < (int64_t)(got.size() / size_at<T>(a)); i++) {
    const double value = value_at<T>(a, got.data(), i), right = value_at<W>(a, expected.data(), i);
    if (agree(value, right, tolerance)) continue;
    differ(r, what, i, value, right);
    return;
  }
}

template <typename T>
void bench<T>::compare_calls(const char *name, double scale, const std::vector<array *> &outputs,
                             const std::function<int()> &on_cpu,
                             const std::function<int()> &on_gpu) {
  const std::string what = std::string(name) + (sizeof(T) == 4   ? " f32"
                                                : sizeof(T) == 8 ? " f64"
                                                                 : " bf16");
  r.compared.insert(name);
  r.comparisons++;
  const contents before = all();
  contents expected = all_wide(), first;
  for (size_t i = 0; i < arrays.size(); i++) {
    expected[i].reserve(1); /* an address for empty ones too */
    arrays[i]->cpu = expected[i].data();
  }
  const int cpu_error = on_cpu();
  for (uint64_t seed : r.seeds) {
    mr_host_seed(seed);
    const int error = on_device(r, arrays, on_gpu);
    const contents after = all();
    for (size_t i = 0; i < arrays.size(); i++) arrays[i]->bytes = before[i];
    if (error != cpu_error) {
      differ(r, what + ": error", (int64_t)seed, error, cpu_error);
      return;
    }
    for (size_t i = 0; i < arrays.size(); i++) {
      const bool output = std::find(outputs.begin(), outputs.end(), arrays[i]) != outputs.end();
      if (!output && after[i] != before[i]) differ(r, what + ": wrote to its input", -1, 0, 0);
      if (!first.empty() && after[i] != first[i]) {
        differ(r, what + ": other bits with another seed", (int64_t)seed, 0, 0);
      }
      if (output) judge(what, *arrays[i], scale, after[i], expected[i]);
    }
    first = after;
  }
}

/* --- registration --- */

struct registered {
  std::function<void(run &, const mr_kernels *const[3], const mr_kernels *const[3])> all;
};
std::vector<registered> &registry();

#define ROWS(some)                                                                             \
  static const bool some##_registered =                                                        \
      (rows::registry().push_back(                                                             \
           {[](rows::run &r, const mr_kernels *const cpu[3], const mr_kernels *const gpu[3]) { \
             rows::bench<float> f32{r, cpu[0], gpu[0], {}};                                    \
             some(f32);                                                                        \
             rows::bench<double> f64{r, cpu[1], gpu[1], {}};                                   \
             some(f64);                                                                        \
             rows::bench<__nv_bfloat16> bf16{r, cpu[2], gpu[2], {}};                           \
             some(bf16);                                                                       \
           }}),                                                                                \
       true);

}  // namespace rows

#endif
