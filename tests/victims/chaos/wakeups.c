/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Waits without a timeout that another thread ends.  That thread puts the values 1, 2, 3 ..., each
 * after the one before was taken.  The waiting thread must get the same values.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "chaos.h"

#define TIMES 4

struct place {
	struct actor *a;
	const struct way *way;
	int fd[3], id;
	mqd_t queue;
	sem_t sem;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_barrier_t barrier;
	pthread_t getter;
	struct sockaddr_in addr;
	uint32_t word;
	atomic_int taken;
	long value;
};

/* get() returns the value that was put, or -1 with errno if the call failed. */
struct way {
	const char *name;
	bool (*open)(struct place *p);
	void (*put)(struct place *p, long value);
	long (*get)(struct place *p);
	void (*close)(struct place *p);
};

static bool pipe_open(struct place *p)
{
	return !pipe(p->fd);
}

static void pipe_close(struct place *p)
{
	close(p->fd[0]);
	close(p->fd[1]);
}

static void pipe_put(struct place *p, long value)
{
	must(p->a, write(p->fd[1], &value, sizeof(value)) == sizeof(value),
	     "%s: a write failed: %s", p->way->name, strerror(errno));
}

static long pipe_get(struct place *p)
{
	long value = 0;
	ssize_t n = read(p->fd[0], &value, sizeof(value));

	return n == sizeof(value) ? value : n < 0 ? -1 : -2;
}

static long poll_get(struct place *p)
{
	struct pollfd fd = {p->fd[0], POLLIN, 0};
	int ret = poll(&fd, 1, -1);

	return ret == 1 && fd.revents == POLLIN ? pipe_get(p) : ret < 0 ? -1 : -3;
}

static long select_get(struct place *p)
{
	fd_set set;
	int ret;

	FD_ZERO(&set);
	FD_SET(p->fd[0], &set);
	ret = select(p->fd[0] + 1, &set, NULL, NULL, NULL);
	return ret == 1 && FD_ISSET(p->fd[0], &set) ? pipe_get(p) : ret < 0 ? -1 : -3;
}

static bool socket_open(struct place *p)
{
	return !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p->fd);
}

static long socket_get(struct place *p)
{
	long value = 0;
	ssize_t n = recv(p->fd[0], &value, sizeof(value), 0);

	return n == sizeof(value) ? value : n < 0 ? -1 : -2;
}

static bool eventfd_open(struct place *p)
{
	p->fd[0] = eventfd(0, EFD_CLOEXEC);
	p->fd[1] = dup(p->fd[0]);
	return p->fd[1] >= 0;
}

static void eventfd_put(struct place *p, long value)
{
	must(p->a, !eventfd_write(p->fd[1], (eventfd_t)value), "eventfd: a write failed: %s",
	     strerror(errno));
}

static long eventfd_get(struct place *p)
{
	eventfd_t value;

	return eventfd_read(p->fd[0], &value) ? -1 : (long)value;
}

static bool inotify_open(struct place *p)
{
	p->fd[1] = inotify_init1(IN_CLOEXEC);
	p->fd[0] = dup(p->fd[1]);
	return p->fd[0] >= 0 && inotify_add_watch(p->fd[1], "/dev", IN_OPEN | IN_ONLYDIR) > 0;
}

static void inotify_put(struct place *p, long value)
{
	(void)value;
	close(open("/dev", O_RDONLY | O_CLOEXEC));
	(void)p;
}

/* Other programs can open the file as well, so there can be more than one event. */
static long inotify_get(struct place *p)
{
	union {
		struct inotify_event event;
		char room[4096];
	} u;
	ssize_t n = read(p->fd[0], &u, sizeof(u));

	return n < 0							 ? -1
	       : n >= (ssize_t)sizeof(u.event) && u.event.mask & IN_OPEN ? p->taken + 1
									 : -2;
}

static bool epoll_open(struct place *p)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = 77};

	p->fd[2] = epoll_create1(EPOLL_CLOEXEC);
	return p->fd[2] >= 0 && !pipe(p->fd) && !epoll_ctl(p->fd[2], EPOLL_CTL_ADD, p->fd[0], &e);
}

static long epoll_get(struct place *p)
{
	struct epoll_event e;
	int ret = epoll_wait(p->fd[2], &e, 1, -1);

	return ret == 1 && e.data.u32 == 77 ? pipe_get(p) : ret < 0 ? -1 : -3;
}

static void epoll_close(struct place *p)
{
	pipe_close(p);
	close(p->fd[2]);
}

static bool sem_open_(struct place *p)
{
	return !sem_init(&p->sem, 0, 0);
}

static void sem_put(struct place *p, long value)
{
	p->value = value;
	sem_post(&p->sem);
}

static long sem_get(struct place *p)
{
	return sem_wait(&p->sem) ? -1 : p->value;
}

static void sem_close_(struct place *p)
{
	sem_destroy(&p->sem);
}

static bool cond_open(struct place *p)
{
	pthread_mutex_init(&p->mutex, NULL);
	return !pthread_cond_init(&p->cond, NULL);
}

static void cond_put(struct place *p, long value)
{
	pthread_mutex_lock(&p->mutex);
	p->value = value;
	pthread_cond_signal(&p->cond);
	pthread_mutex_unlock(&p->mutex);
}

static long cond_get(struct place *p)
{
	long value;

	pthread_mutex_lock(&p->mutex);
	while (!p->value)
		pthread_cond_wait(&p->cond, &p->mutex);
	value = p->value;
	p->value = 0;
	pthread_mutex_unlock(&p->mutex);
	return value;
}

static void cond_close(struct place *p)
{
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->mutex);
}

static bool barrier_open(struct place *p)
{
	return !pthread_barrier_init(&p->barrier, NULL, 2);
}

static void barrier_put(struct place *p, long value)
{
	p->value = value;
	pthread_barrier_wait(&p->barrier);
}

static long barrier_get(struct place *p)
{
	pthread_barrier_wait(&p->barrier);
	return p->value;
}

static void barrier_close(struct place *p)
{
	pthread_barrier_destroy(&p->barrier);
}

static bool futex_open(struct place *p)
{
	return !p->word;
}

static void futex_put(struct place *p, long value)
{
	__atomic_store_n(&p->word, (uint32_t)value, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &p->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* EAGAIN: the value was put before the call. */
static long futex_get(struct place *p)
{
	long ret = syscall(SYS_futex, &p->word, FUTEX_WAIT, p->taken, NULL, NULL, 0);

	return ret && errno != EAGAIN ? -1 : (long)__atomic_load_n(&p->word, __ATOMIC_SEQ_CST);
}

static void nothing(struct place *p)
{
	(void)p;
}

static bool queue_open(struct place *p)
{
	struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = sizeof(long)};
	char name[64];

	snprintf(name, sizeof(name), "/chaos-w-%d-%lx", getpid(), (unsigned long)pthread_self());
	p->queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
	mq_unlink(name);
	return p->queue != (mqd_t)-1;
}

static void queue_put(struct place *p, long value)
{
	must(p->a, !mq_send(p->queue, (char *)&value, sizeof(value), 0), "mq_send: failed: %s",
	     strerror(errno));
}

static long queue_get(struct place *p)
{
	long value = 0;

	return mq_receive(p->queue, (char *)&value, sizeof(value), NULL) < 0 ? -1 : value;
}

static void queue_close(struct place *p)
{
	mq_close(p->queue);
}

struct message {
	long type, value;
};

static bool message_open(struct place *p)
{
	p->id = msgget(IPC_PRIVATE, 0600);
	return p->id >= 0;
}

static void message_put(struct place *p, long value)
{
	struct message m = {1, value};

	must(p->a, !msgsnd(p->id, &m, sizeof(m.value), 0), "msgsnd: failed: %s", strerror(errno));
}

static long message_get(struct place *p)
{
	struct message m = {0, 0};

	return msgrcv(p->id, &m, sizeof(m.value), 1, 0) < 0 ? -1 : m.value;
}

static void message_close(struct place *p)
{
	msgctl(p->id, IPC_RMID, NULL);
}

static bool semop_open(struct place *p)
{
	p->id = semget(IPC_PRIVATE, 1, 0600);
	return p->id >= 0;
}

static void semop_put(struct place *p, long value)
{
	struct sembuf up = {0, 1, 0};

	p->value = value;
	must(p->a, !semop(p->id, &up, 1), "semop, up: failed: %s", strerror(errno));
}

static long semop_get(struct place *p)
{
	struct sembuf down = {0, -1, 0};

	return semop(p->id, &down, 1) ? -1 : p->value;
}

static void semop_close(struct place *p)
{
	semctl(p->id, 0, IPC_RMID);
}

#define SIGNAL (SIGRTMIN + 1)

static bool signal_open(struct place *p)
{
	p->getter = pthread_self();
	return true;
}

static void signal_put(struct place *p, long value)
{
	union sigval v = {.sival_int = (int)value};

	must(p->a, !pthread_sigqueue(p->getter, SIGNAL, v), "pthread_sigqueue: failed");
}

static long signal_get(struct place *p)
{
	siginfo_t info;
	sigset_t set;

	(void)p;
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	if (sigwaitinfo(&set, &info) != SIGNAL)
		return -1;
	return info.si_code == SI_QUEUE && info.si_pid == getpid() ? info.si_value.sival_int : -4;
}

static bool signalfd_open(struct place *p)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	p->getter = pthread_self();
	p->fd[0] = signalfd(-1, &set, SFD_CLOEXEC);
	p->fd[1] = dup(p->fd[0]);
	return p->fd[1] >= 0;
}

static long signalfd_get(struct place *p)
{
	struct signalfd_siginfo info;
	ssize_t n = read(p->fd[0], &info, sizeof(info));

	if (n != sizeof(info))
		return n < 0 ? -1 : -2;
	return info.ssi_code == SI_QUEUE && (pid_t)info.ssi_pid == getpid() ? info.ssi_int : -4;
}

static bool listener_open(struct place *p)
{
	socklen_t n = sizeof(p->addr);

	p->addr =
	    (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	p->fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	p->fd[1] = dup(p->fd[0]);
	return p->fd[1] >= 0 && !bind(p->fd[0], (struct sockaddr *)&p->addr, n) &&
	       !listen(p->fd[0], 4) && !getsockname(p->fd[0], (struct sockaddr *)&p->addr, &n);
}

/* Sends a number and receives its echo. */
static void connection_put(struct place *p, long value)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	long echo = 0;

	must(p->a, !connect(fd, (struct sockaddr *)&p->addr, sizeof(p->addr)),
	     "connect: failed: %s", strerror(errno));
	must(p->a, send(fd, &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value),
	     "send: failed: %s", strerror(errno));
	must(p->a, recv(fd, &echo, sizeof(echo), MSG_WAITALL) == sizeof(echo) && echo == value,
	     "recv: expected the echo of %ld, got %ld", value, echo);
	close(fd);
}

static long connection_get(struct place *p)
{
	int fd = accept4(p->fd[0], NULL, NULL, SOCK_CLOEXEC);
	long value = -2;

	if (fd < 0)
		return -1;
	if (recv(fd, &value, sizeof(value), 0) == sizeof(value) &&
	    send(fd, &value, sizeof(value), MSG_NOSIGNAL) != sizeof(value))
		value = -3;
	close(fd);
	return value;
}

static const struct way files[] = {{"read, pipe", pipe_open, pipe_put, pipe_get, pipe_close},
				   {"poll", pipe_open, pipe_put, poll_get, pipe_close},
				   {"select", pipe_open, pipe_put, select_get, pipe_close},
				   {"recv", socket_open, pipe_put, socket_get, pipe_close},
				   {"eventfd", eventfd_open, eventfd_put, eventfd_get, pipe_close},
				   {"inotify", inotify_open, inotify_put, inotify_get, pipe_close},
				   {0}};
static const struct way epoll[] = {{"epoll_wait", epoll_open, pipe_put, epoll_get, epoll_close},
				   {0}};
static const struct way posts[] = {
    {"sem_wait", sem_open_, sem_put, sem_get, sem_close_},
    {"pthread_cond_wait", cond_open, cond_put, cond_get, cond_close},
    {"pthread_barrier_wait", barrier_open, barrier_put, barrier_get, barrier_close},
    {"futex", futex_open, futex_put, futex_get, nothing},
    {0}};
static const struct way messages[] = {
    {"mq_receive", queue_open, queue_put, queue_get, queue_close},
    {"msgrcv", message_open, message_put, message_get, message_close},
    {0}};
static const struct way counts[] = {{"semop", semop_open, semop_put, semop_get, semop_close}, {0}};
static const struct way waited[] = {{"sigwaitinfo", signal_open, signal_put, signal_get, nothing},
				    {0}};
static const struct way signal_files[] = {
    {"signalfd", signalfd_open, signal_put, signalfd_get, pipe_close}, {0}};
static const struct way connections[] = {
    {"accept", listener_open, connection_put, connection_get, pipe_close}, {0}};

static void *put_all(void *arg)
{
	struct place *p = arg;

	for (int i = 1; i <= TIMES; i++) {
		pause_us(10000);
		p->way->put(p, i);
		while (p->taken < i)
			pause_us(500);
	}
	return NULL;
}

static void meet(struct actor *a, const struct way *way)
{
	for (; way->name; way++) {
		struct place p = {.a = a, .way = way};
		pthread_t th;

		if (!way->open(&p)) {
			must(a, false, "%s: could not be opened: %s", way->name, strerror(errno));
			continue;
		}
		th = begin(put_all, &p);
		for (int i = 1; i <= TIMES; i++) {
			long value;

			do {
				value = way->get(&p);
			} while (was_cut_off(a, value));
			must(a, value == i, "%s: expected %d, got %ld (%s)", way->name, i, value,
			     value == -1 ? strerror(errno) : "");
			p.taken = i;
		}
		pthread_join(th, NULL);
		way->close(&p);
	}
}

#define ROUND(ways)                                                                                \
	static void ways##_round(struct actor *a)                                                  \
	{                                                                                          \
		meet(a, ways);                                                                     \
	}
ROUND(files)
ROUND(epoll)
ROUND(posts)
ROUND(messages)
ROUND(counts)
ROUND(waited)
ROUND(signal_files)
ROUND(connections)

#define EACH "what is put comes once and in order, the wait for it never ends by EINTR"

struct actor wakeups[] = {
    {.name = "files",
     .round = files_round,
     .guaranteed = "read() of pipes, eventfd and inotify, recv(), poll() and select() without a "
		   "timeout: " EACH},
    {.name = "epoll",
     .round = epoll_round,
     .cut_off = true,
     .guaranteed = "epoll_wait() without a timeout: " EACH,
     .but = "kill -9: EINTR"},
    {.name = "posts",
     .round = posts_round,
     .guaranteed = "semaphores, conditions, barriers, futexes: " EACH},
    {.name = "messages", .round = messages_round, .guaranteed = "mq_receive() and msgrcv(): " EACH},
    {.name = "semop",
     .round = counts_round,
     .cut_off = true,
     .guaranteed = EACH,
     .but = "kill -9: EINTR"},
    {.name = "sigwaitinfo",
     .round = waited_round,
     .cut_off = true,
     .guaranteed = EACH ", with its siginfo",
     .but = "kill -9: EINTR"},
    {.name = "signalfd", .round = signal_files_round, .guaranteed = EACH ", with its siginfo"},
    {.name = "connections",
     .round = connections_round,
     .guaranteed = "accept(), connect(), send() and recv() over TCP: " EACH},
    {0}};
