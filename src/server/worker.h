/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A worker: a process that answers requests for one recording with one filter.  It keeps the model,
 * so that the next request for the same is answered quickly.  A defect of a recording, too much
 * memory, or a client that leaves ends at most a worker.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <stdint.h>

struct recordings;

/* Answers what comes through @sock (message.h) until the server closes it.  @memory: most bytes of
 * data, 0: no limit.  Only in a child process, which it ends. */
_Noreturn void worker_run(int sock, const struct recordings *r, uint64_t memory);

#endif
