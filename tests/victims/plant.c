/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Leaks blocks from known functions, some at the start and some at each line on stdin. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 88

/* Keeps the compiler from removing an allocation. */
static void *use(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

static __attribute__((noinline)) void plant_early(void)
{
	for (int i = 0; i < 50; i++)
		memset(use(malloc(SIZE)), 1, SIZE);
}

static __attribute__((noinline)) void plant_left(void)
{
	for (int i = 0; i < 30; i++) {
		free(use(malloc(SIZE))); /* the next one gets this address again */
		memset(use(malloc(SIZE)), 1, SIZE);
	}
}

static __attribute__((noinline)) void *plant_right(void *unused)
{
	for (int i = 0; i < 20; i++)
		memset(use(malloc(SIZE)), 1, SIZE);
	return unused;
}

/* Leaks a list: only its first block is a direct leak. */
static __attribute__((noinline)) void plant_list(void)
{
	void **head = NULL;

	for (int i = 0; i < 5; i++) {
		void **node = calloc(1, 300);

		*node = head;
		head = node;
	}
	use(head);
}

static __attribute__((noinline)) void plant_grown(void)
{
	char *text = use(malloc(1000));

	text = realloc(text, 5000);
	strcpy(use(text), "a text that has grown");
}

static __attribute__((noinline)) void *clear_stack(void *unused)
{
	char frame[16384];

	memset(frame, 0, sizeof(frame));
	use(frame);
	return unused;
}

static void in_thread(void *(*start)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, start, NULL))
		exit(1);
	pthread_join(thread, NULL);
}

int main(void)
{
	char line[64];

	plant_early();
	in_thread(clear_stack);
	clear_stack(NULL);
	puts("ready");
	fflush(stdout);
	while (read(0, line, sizeof(line)) > 0) {
		plant_left();
		plant_list();
		plant_grown();
		in_thread(plant_right);
		in_thread(clear_stack); /* on the same stack */
		clear_stack(NULL);
		write(1, "planted\n", 8);
	}
	return 0;
}
