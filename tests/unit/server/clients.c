/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "server/clients.h"

#define SECOND 1000000000ull

struct peer {
	int fd[2];
	struct client *client;
};

static void connect_one(struct clients *c, struct peer *p, uint64_t seconds_ago)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->fd), 0);
	p->client = clients_add(c, p->fd[0]);
	assert_non_null(p->client);
	p->client->since = mono_ns() - seconds_ago * SECOND;
}

static void disconnect(struct clients *c, struct peer *p)
{
	clients_remove(c, p->client);
	close(p->fd[0]);
	close(p->fd[1]);
}

/* Return: whether the server ended the connection. */
static bool was_ended(const struct peer *p)
{
	char byte;

	return recv(p->fd[1], &byte, 1, 0) == 0;
}

/* Only those that have waited too long and that are not being answered lose their connections. */
static void patience(void **state)
{
	struct clients c = {.most = 100};
	struct peer fresh, old, answered, next;

	(void)state;
	connect_one(&c, &fresh, 10);
	connect_one(&c, &old, 60);
	connect_one(&c, &answered, 0);
	client_busy(answered.client, true);
	answered.client->since -= 60 * SECOND;
	connect_one(&c, &next, 60);
	client_busy(next.client, true);
	client_busy(next.client, false);
	clients_tick(&c);
	assert_false(was_ended(&fresh));
	assert_true(was_ended(&old));
	assert_false(was_ended(&answered));
	assert_false(was_ended(&next));
	disconnect(&c, &old);
	disconnect(&c, &fresh);
	disconnect(&c, &answered);
	disconnect(&c, &next);
	assert_int_equal(c.at.n, 0);
}

/* When more than half of the connections are in use, patience is shorter. */
static void many(void **state)
{
	struct clients c = {.most = 4};
	struct peer p[3];

	(void)state;
	connect_one(&c, &p[0], 10);
	connect_one(&c, &p[1], 0);
	clients_tick(&c);
	assert_false(was_ended(&p[0]));
	connect_one(&c, &p[2], 0);
	clients_tick(&c);
	assert_true(was_ended(&p[0]));
	assert_false(was_ended(&p[1]));
	for (uint32_t i = 0; i < 3; i++)
		disconnect(&c, &p[i]);
}

/* A client that has closed its side sends no further request; one that is being answered may have. */
static void left(void **state)
{
	struct clients c = {.most = 100};
	struct peer gone, answered, unread;

	(void)state;
	connect_one(&c, &gone, 0);
	connect_one(&c, &answered, 0);
	connect_one(&c, &unread, 0);
	client_busy(answered.client, true);
	assert_int_equal(send(unread.fd[1], "x", 1, 0), 1);
	shutdown(gone.fd[1], SHUT_WR);
	shutdown(answered.fd[1], SHUT_WR);
	shutdown(unread.fd[1], SHUT_WR);
	clients_tick(&c);
	assert_true(was_ended(&gone));
	assert_false(was_ended(&answered));
	assert_false(was_ended(&unread));
	disconnect(&c, &gone);
	disconnect(&c, &answered);
	disconnect(&c, &unread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(patience), cmocka_unit_test(many),
					   cmocka_unit_test(left)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
