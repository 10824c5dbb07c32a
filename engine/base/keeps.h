/* MR_KEEPS_BLOCKS: whether blocks that were given back wait for the next request. Not where an
 * address sanitizer looks on: a block that waits would look as if it were in use. */
#ifndef MR_BASE_KEEPS_H
#define MR_BASE_KEEPS_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MR_KEEPS_BLOCKS 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MR_KEEPS_BLOCKS 0
#endif
#ifndef MR_KEEPS_BLOCKS
#define MR_KEEPS_BLOCKS 1
#endif

#endif
