/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the workloads: calls a function repeatedly, first to warm up (profilers do extra work
 * at a program's first events), then with the time measured.  Prints the results as one line of
 * JSON.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define WARM_UP_S 0.3

struct measure {
	double wall, cpu; /* seconds of the timed part, of the calling thread */
	long events, all; /* pairs of malloc and free in it, and with the warm-up */
};

static double clock_s(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Calls @work for @seconds.  @work makes some pairs of malloc and free and returns their number. */
static inline struct measure measure(long (*work)(void *ctx), void *ctx, double seconds)
{
	struct measure m = {0};
	double start = clock_s(CLOCK_MONOTONIC), cpu, now;

	while (clock_s(CLOCK_MONOTONIC) - start < WARM_UP_S)
		m.all += work(ctx);
	start = clock_s(CLOCK_MONOTONIC);
	cpu = clock_s(CLOCK_THREAD_CPUTIME_ID);
	do {
		m.events += work(ctx);
		now = clock_s(CLOCK_MONOTONIC);
	} while (now - start < seconds);
	m.wall = now - start;
	m.cpu = clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu;
	m.all += m.events;
	return m;
}

/* Return: the peak RSS of this program.  That of getrusage() includes the process before exec. */
static inline long peak_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kib;
}

/* Prints the mean of the @n threads' times per pair, and numbers of the whole process. */
static inline void print_measures(const struct measure *m, int n)
{
	double wall = 0, cpu = 0;
	struct rusage u;
	long all = 0;

	for (int i = 0; i < n; i++) {
		wall += m[i].wall * 1e9 / (double)m[i].events / n;
		cpu += m[i].cpu * 1e9 / (double)m[i].events / n;
		all += m[i].all;
	}
	getrusage(RUSAGE_SELF, &u);
	printf("{\"wall_ns\": %.3f, \"cpu_ns\": %.3f, \"pairs\": %ld, \"process_cpu_s\": %.3f, "
	       "\"peak_kib\": %ld}\n",
	       wall, cpu, all,
	       (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		   (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
	       peak_kib());
}

#endif
