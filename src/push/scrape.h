/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The HTTP server for GET /metrics.  It has no thread: its owner waits for scrape_fd() and answers. */
#ifndef PUSH_SCRAPE_H
#define PUSH_SCRAPE_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/err.h"

struct scrape;

/**
 * scrape_open() - listen
 * @at: [ADDR:]PORT; without ADDR at 127.0.0.1; PORT 0: any that is free
 *
 * Return: 0 with @out, or a negative errno with @err.
 */
int scrape_open(const char *at, struct scrape **out, struct mp_err *err);
void scrape_close(struct scrape *s);
/* Return: ADDR:PORT. */
const char *scrape_at(const struct scrape *s);

/* Return: a descriptor that can be read when scrape_run() has something to do; it has once a second, too. */
int scrape_fd(const struct scrape *s);
/* Reads requests and writes answers.  Return: whether a client waits for scrape_answer(). */
bool scrape_run(struct scrape *s);
/* Answers all clients that wait: with @n bytes of @text, which is taken over and freed by free(), or if that is NULL
 * with an error. */
void scrape_answer(struct scrape *s, char *text, size_t n);

#endif
