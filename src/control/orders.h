/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How the caller of recording_run() tells the recording to pause, to resume and to end. */
#ifndef CONTROL_ORDERS_H
#define CONTROL_ORDERS_H

struct recorder;

enum recording_order {
	ORDER_NONE,
	ORDER_PAUSE_OR_RESUME,
	ORDER_END,
};

/* The functions are called by the thread that runs the recording. */
struct recording_orders {
	/* Called before the process is touched.  Return: a descriptor that can be read when there is an
	 * order, or a negative errno. */
	int (*begin)(void *ctx);
	/* Called when @fd can be read. */
	enum recording_order (*take)(void *ctx, int fd);
	/* Called when the recording has begun with its recorder, which can be asked by other threads from now on, and
	 * with NULL before that is freed: no thread may ask it when this returns.  NULL: not called. */
	void (*serves)(void *ctx, struct recorder *r);
	/* Called when the recording is complete. */
	void (*end)(void *ctx, int fd);
	void *ctx; /* passed to the functions */
};

#endif
