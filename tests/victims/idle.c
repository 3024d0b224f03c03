/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes a given number of idle threads, prints "ready", and ends at the end of stdin. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *idle(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 8;
	pthread_attr_t attr;
	pthread_t th;
	char c;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (long i = 1; i < n; i++) {
		if (pthread_create(&th, &attr, idle, NULL))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
