/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program with threads that executes itself again:
 *
 *	execs THREADS live|dead|main asked	at each line that it reads
 *	execs THREADS live|dead|main MICROS	in a loop, each image after less than MICROS us
 *
 * live: the main thread waits and another thread calls execv().  dead: the same, but the main
 * thread has ended before.  main: the main thread calls execv().  Each image (in the second form
 * each hundredth) prints "image N PID" when its threads run.  At the end of stdin prints "ok N".
 */
#include <pthread.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static atomic_int there;
static pthread_t main_thread;
static char **args;
static long image;

/* Half of these threads compute, the other half wait in the kernel. */
static void *other(void *arg)
{
	there++;
	for (volatile unsigned long n = 0;; n++) {
		if ((long)arg % 2 || n % 100000 == 0)
			usleep(500);
	}
	return NULL;
}

static void finish(void)
{
	printf("ok %ld\n", image);
	fflush(stdout);
	_exit(0);
}

static void wait_micros(long micros)
{
	unsigned int random = 0;

	if (getrandom(&random, sizeof(random), 0) == sizeof(random))
		usleep(random % (unsigned int)micros);
}

static void *next_image(void *arg)
{
	char number[24], line[16];
	long threads = atol(args[1]);
	bool asked = !strcmp(args[3], "asked");
	struct pollfd input = {.fd = 0};

	(void)arg;
	while (there < threads)
		usleep(100);
	if (!strcmp(args[2], "dead"))
		pthread_join(main_thread, NULL);
	if (asked || image % 100 == 0) {
		printf("image %ld %d\n", image, getpid());
		fflush(stdout);
	}
	if (asked && !fgets(line, sizeof(line), stdin))
		finish();
	if (!asked)
		wait_micros(atol(args[3]));
	if (!asked && poll(&input, 1, 0) == 1)
		finish();
	snprintf(number, sizeof(number), "%ld", image + 1);
	execv(args[0], (char *[]){args[0], args[1], args[2], args[3], number, NULL});
	perror("execv");
	_exit(1);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 4)
		return 2;
	args = argv;
	image = argc > 4 ? atol(argv[4]) : 0;
	main_thread = pthread_self();
	setvbuf(stdin, NULL, _IONBF, 0);
	for (long i = 0; i < atol(argv[1]); i++) {
		if (pthread_create(&thread, NULL, other, (void *)i))
			return 1;
	}
	if (!strcmp(argv[2], "main"))
		next_image(NULL);
	if (pthread_create(&thread, NULL, next_image, NULL))
		return 1;
	if (!strcmp(argv[2], "dead"))
		pthread_exit(NULL);
	for (;;)
		pause();
}
