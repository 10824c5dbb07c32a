/* NCCL, which moves data between GPUs without the host. Records still travel by the board, and
 * data of the host by the transport; only operations whose data lie on the GPUs of all members
 * come here.
 *
 * Each group has a channel for its collectives; each ordered pair of members that exchanges
 * messages gets one with its first message. Calls on one channel run in order; channels run beside
 * each other. So the orders in which ranks start operations of different lanes may differ.
 *
 * A move is one operation. What the device was asked for before the post comes before it, by a
 * mark in the device's order; its end is a mark in the channel's. A handle that is waited for is
 * done when its move was put into the channel: the device is told to wait, not the host. The move
 * is then watched until its end. */
#ifndef MR_COMM_NCCL_H
#define MR_COMM_NCCL_H

#include "comm/transport.h"

/* Gives a new group its channel, where the world has NCCL. Collective. */
mr_status mr_nccl_join(mr_group *group);

/* For a new handle whose data lie on `device`, NULL for the host: makes its move, and says so in
 * the record, where NCCL can move them. */
mr_status mr_nccl_place(mr_handle *handle, mr_device *device);
/* Gives up a move, or what is left of it; also where there is none. */
void mr_nccl_drop(mr_handle *handle);
/* As a transport's, the mean's division included. */
mr_status mr_nccl_start(mr_handle *handle);
mr_status mr_nccl_test(mr_handle *handle, int *done);

/* Looks every few milliseconds at what is under way. An error of NCCL, or a move that has not
 * ended in time, leaves no operation of the world able to go on. */
mr_status mr_nccl_watch(mr_world *world);
/* The GPU of this rank, in a world that has NCCL. */
mr_device *mr_nccl_device(const mr_world *world);
/* 1 while moves of ended handles are under way. */
int mr_nccl_is_busy(const mr_world *world);

/* Ends everything that is under way, unfinished; the GPU stands still afterwards. */
void mr_nccl_abort(mr_world *world);
/* Waits for what is under way and gives the channels back. Collective. */
mr_status mr_nccl_close(mr_world *world);
void mr_nccl_release(mr_world *world); /* what is left, without a word to others */

#endif
