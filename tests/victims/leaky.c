/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A small service with two leaks: sessions that are never closed (184 bytes each) and a cache that
 * only grows (1000 bytes each).  It frees all other blocks.  At SIGTERM prints what it leaked.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
	struct session *next;
	char user[176];
};

static volatile sig_atomic_t stop;
static struct session *sessions;
static void *volatile cache[1 << 20];
static char *volatile last_body;
static long leaked_sessions, cached, requests;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

__attribute__((noinline)) static void open_session(void)
{
	struct session *s = calloc(1, sizeof(*s));

	pthread_mutex_lock(&lock);
	s->next = sessions;
	sessions = s;
	leaked_sessions++;
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void remember_answer(void)
{
	void *p = malloc(1000);

	memset(p, 7, 1000);
	pthread_mutex_lock(&lock);
	cache[cached++ % (1 << 20)] = p;
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void handle_request(unsigned int n)
{
	char *body = malloc(100 + n % 4000), *answer = malloc(64);

	memset(body, 1, 100);
	last_body = body;
	answer = realloc(answer, 200 + n % 100);
	if (n % 50 == 0)
		open_session();
	if (n % 97 == 0)
		remember_answer();
	free(body);
	free(answer);
	__atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED);
}

static void *serve(void *arg)
{
	unsigned int n = (unsigned int)(long)arg;

	while (!stop) {
		for (int i = 0; i < 100; i++)
			handle_request(n++);
		usleep(1000);
	}
	return NULL;
}

int main(void)
{
	pthread_t th[4];

	signal(SIGTERM, on_term);
	alarm(600);
	for (long t = 0; t < 4; t++)
		pthread_create(&th[t], NULL, serve, (void *)(t * 1000003));
	for (int t = 0; t < 4; t++)
		pthread_join(th[t], NULL);
	printf("{\"requests\": %ld, \"leaked_sessions\": %ld, \"cached\": %ld}\n", requests,
	       leaked_sessions, cached);
	return 0;
}
