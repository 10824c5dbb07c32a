#include "device/cuda_find.h"

#include <stddef.h>

#include "device/library.h"

mr_status mr_cuda_find(const mr_cuda_library **library) {
  static const mr_library cuda = {
      .file = "libmarea_cuda.so",
      .variable = "MAREA_CUDA_LIBRARY",
      .parts = "CUDA's libraries",
      .missing =
          "this marea was built without CUDA: there is no libmarea_cuda.so in lib/marea "
          "beside it; it is built where a CUDA toolkit (nvcc) is found",
      .entry = MR_CUDA_ENTRY,
      .version = MR_CUDA_VERSION,
  };
  static const void *found;
  mr_status status = found ? MR_OK : mr_library_open(&cuda, &found);
  *library = found;
  return status;
}
