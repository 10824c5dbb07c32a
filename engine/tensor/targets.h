/* Targets: classes from 0, or MR_IGNORED_TARGET for a position that is not supervised. */
#ifndef MR_TENSOR_TARGETS_H
#define MR_TENSOR_TARGETS_H

enum { MR_IGNORED_TARGET = -100 };

#endif
