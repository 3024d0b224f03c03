/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Waits that only their timeout ends. */
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include "chaos.h"

#define MS    30
#define TICKS 10 /* maximum error of the kernel's coarse clocks, ms */

static void sleeps_round(struct actor *a)
{
	struct timespec t = of_ms(MS), rest, end = in_ms(CLOCK_REALTIME, MS), now;
	int64_t since = now_ns();
	int ret;

	came_out(a, "nanosleep", nanosleep(&t, &rest), 0, 0, since, MS);
	since = now_ns();
	ret = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &rest);
	came_out(a, "clock_nanosleep", ret, 0, 0, since, MS);
	since = now_ns();
	ret = clock_nanosleep(CLOCK_BOOTTIME, 0, &t, NULL);
	came_out(a, "clock_nanosleep(CLOCK_BOOTTIME)", ret, 0, 0, since, MS);
	end = in_ms(CLOCK_REALTIME, MS);
	ret = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, NULL);
	clock_gettime(CLOCK_REALTIME, &now);
	must(a, !ret, "clock_nanosleep(TIMER_ABSTIME): expected 0, got %s", strerror(ret));
	must(a, now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec),
	     "clock_nanosleep(TIMER_ABSTIME): expected to be woken at its time, was earlier");
}

/* After a call with a signal mask as argument, the thread must have its own mask again. */
static void mask_is_back(struct actor *a, const char *call, const sigset_t *before)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	must(a, !memcmp(&now, before, _NSIG / 8),
	     "%s: expected the thread's signal mask, got another", call);
}

static void polls_round(struct actor *a)
{
	struct timeval tv = {0, MS * 1000};
	struct timespec t = of_ms(MS);
	sigset_t mask, before;
	int64_t since;
	int fd[2];
	fd_set set;

	if (pipe(fd))
		give_up("pipe");
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	sigfillset(&mask);
	since = now_ns();
	came_out(a, "poll", poll(&(struct pollfd){fd[0], POLLIN, 0}, 1, MS), 0, 0, since, MS);
	since = now_ns();
	came_out(a, "ppoll", ppoll(&(struct pollfd){fd[0], POLLIN, 0}, 1, &t, &mask), 0, 0, since,
		 MS);
	mask_is_back(a, "ppoll", &before);
	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	since = now_ns();
	came_out(a, "select", select(fd[0] + 1, &set, NULL, NULL, &tv), 0, 0, since, MS);
	must(a, !FD_ISSET(fd[0], &set), "select: expected no descriptor, got one");
	FD_SET(fd[0], &set);
	since = now_ns();
	came_out(a, "pselect", pselect(fd[0] + 1, &set, NULL, NULL, &t, &mask), 0, 0, since, MS);
	mask_is_back(a, "pselect", &before);
	close(fd[0]);
	close(fd[1]);
}

static void epolls_round(struct actor *a)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);
	sigset_t mask, before;
	int64_t since;

	pthread_sigmask(SIG_BLOCK, NULL, &before);
	sigfillset(&mask);
	since = now_ns();
	came_out(a, "epoll_wait", epoll_wait(fd, &e, 1, MS), 0, 0, since, MS);
	since = now_ns();
	came_out(a, "epoll_pwait", epoll_pwait(fd, &e, 1, MS, &mask), 0, 0, since, MS);
	mask_is_back(a, "epoll_pwait", &before);
#if defined(SYS_epoll_pwait2) && __SIZEOF_POINTER__ == 8
	struct timespec t = of_ms(MS);
	long ret;

	since = now_ns();
	ret = syscall(SYS_epoll_pwait2, fd, &e, 1, &t, &mask, (size_t)_NSIG / 8);
	if (ret != -1 || errno != ENOSYS) {
		came_out(a, "epoll_pwait2", ret, 0, 0, since, MS);
		mask_is_back(a, "epoll_pwait2", &before);
	}
#endif
	close(fd);
}

/* Checks a function of the C library that returns the error number instead of setting errno. */
static void timed_out(struct actor *a, const char *call, int error, int64_t since)
{
	errno = error;
	came_out(a, call, error ? -1 : 0, -1, ETIMEDOUT, since, MS);
}

static void futexes_round(struct actor *a)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond;
	pthread_condattr_t attr;
	struct timespec end;
	int64_t since;
	sem_t sem;
	int ret;
#if __SIZEOF_POINTER__ == 8
	uint32_t word = 0;
	struct timespec t = of_ms(MS);

	since = now_ns();
	came_out(a, "futex(FUTEX_WAIT)", syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t, NULL, 0), -1,
		 ETIMEDOUT, since, MS);
	since = now_ns();
	end = in_ms(CLOCK_MONOTONIC, MS);
	came_out(
	    a, "futex(FUTEX_WAIT_BITSET)",
	    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &end, NULL, FUTEX_BITSET_MATCH_ANY), -1,
	    ETIMEDOUT, since, MS);
#ifdef SYS_futex_waitv
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} wait = {.uaddr = (uintptr_t)&word, .flags = 2 /* FUTEX_32 */};
	long waited;

	since = now_ns();
	end = in_ms(CLOCK_MONOTONIC, MS);
	waited = syscall(SYS_futex_waitv, &wait, 1, 0, &end, CLOCK_MONOTONIC);
	if (waited != -1 || errno != ENOSYS)
		came_out(a, "futex_waitv", waited, -1, ETIMEDOUT, since, MS);
#endif
#endif
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&cond, &attr);
	pthread_mutex_lock(&mutex);
	since = now_ns();
	end = in_ms(CLOCK_MONOTONIC, MS);
	/* POSIX permits spurious wakeups; glibc on Linux has none. */
	timed_out(a, "pthread_cond_timedwait", pthread_cond_timedwait(&cond, &mutex, &end), since);
	since = now_ns();
	end = in_ms(CLOCK_REALTIME, MS + 1);
	timed_out(a, "pthread_mutex_timedlock", pthread_mutex_timedlock(&mutex, &end), since);
	pthread_mutex_unlock(&mutex);
	pthread_cond_destroy(&cond);
	sem_init(&sem, 0, 0);
	since = now_ns();
	end = in_ms(CLOCK_REALTIME, MS + 1);
	ret = sem_timedwait(&sem, &end);
	timed_out(a, "sem_timedwait", ret ? errno : 0, since);
	sem_destroy(&sem);
}

static void sigtimedwait_round(struct actor *a)
{
	struct timespec t = of_ms(MS);
	int64_t since = now_ns();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 15); /* never sent */
	came_out(a, "sigtimedwait", sigtimedwait(&set, NULL, &t), -1, EAGAIN, since, MS);
}

static void semtimedop_round(struct actor *a)
{
	struct sembuf op = {0, -1, 0};
	struct timespec t = of_ms(MS + TICKS);
	int id = semget(IPC_PRIVATE, 1, 0600);
	int64_t since = now_ns();

	if (id < 0) {
		skip(a, "no System V semaphores");
		return;
	}
	came_out(a, "semtimedop", semtimedop(id, &op, 1, &t), -1, EAGAIN, since, MS);
	semctl(id, 0, IPC_RMID);
}

static void queue_waits_round(struct actor *a)
{
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
	struct timespec end;
	char name[64], text[8] = "";
	int64_t since;
	mqd_t q;

	snprintf(name, sizeof(name), "/chaos-%d-%lx", getpid(), (unsigned long)pthread_self());
	q = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
	if (q == (mqd_t)-1) {
		skip(a, "no message queues");
		return;
	}
	mq_unlink(name);
	since = now_ns();
	end = in_ms(CLOCK_REALTIME, MS + 1);
	came_out(a, "mq_timedreceive", mq_timedreceive(q, text, 8, NULL, &end), -1, ETIMEDOUT,
		 since, MS);
	must(a, !mq_send(q, text, 8, 0), "mq_send: expected 0, got %s", strerror(errno));
	since = now_ns();
	end = in_ms(CLOCK_REALTIME, MS + 1);
	came_out(a, "mq_timedsend", mq_timedsend(q, text, 8, 0, &end), -1, ETIMEDOUT, since, MS);
	mq_close(q);
}

static void aio_round(struct actor *a)
{
#if __SIZEOF_POINTER__ == 8
	struct timespec t = of_ms(MS);
	aio_context_t context = 0;
	struct io_event event;
	int64_t since;

	if (syscall(SYS_io_setup, 4, &context)) {
		skip(a, errno == ENOSYS ? "no such call" : "refused");
		return;
	}
	since = now_ns();
	came_out(a, "io_getevents", syscall(SYS_io_getevents, context, 1, 1, &event, &t), 0, 0,
		 since, MS);
	syscall(SYS_io_destroy, context);
#else
	skip(a, "64-bit only");
#endif
}

#define ENTRIES 4

struct uring {
	int fd;
	struct io_uring_params p;
	uint8_t *rings;
	struct io_uring_sqe *sqes;
	size_t n_rings, n_sqes;
};

static uint32_t *ring_word(struct uring *u, uint32_t offset)
{
	return (uint32_t *)(u->rings + offset);
}

static bool uring_open(struct uring *u)
{
	memset(u, 0, sizeof(*u));
	u->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &u->p);
	if (u->fd < 0)
		return false;
	u->n_rings = u->p.cq_off.cqes + u->p.cq_entries * sizeof(struct io_uring_cqe);
	if (u->n_rings < u->p.sq_off.array + u->p.sq_entries * sizeof(uint32_t))
		u->n_rings = u->p.sq_off.array + u->p.sq_entries * sizeof(uint32_t);
	u->n_sqes = u->p.sq_entries * sizeof(*u->sqes);
	u->rings =
	    mmap(NULL, u->n_rings, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQ_RING);
	u->sqes = mmap(NULL, u->n_sqes, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQES);
	if (u->rings == MAP_FAILED || u->sqes == (void *)MAP_FAILED)
		give_up("io_uring");
	return true;
}

/* One ring for all rounds: to free a ring, the kernel interrupts the next system calls of the
 * thread that used it. */
static struct uring ring;

void sleeps_prepare(void)
{
	if (!uring_open(&ring))
		ring.fd = -errno;
}

static void uring_put(struct uring *u, uint8_t opcode, uint64_t addr, uint64_t data)
{
	uint32_t *tail = ring_word(u, u->p.sq_off.tail);
	uint32_t i = *tail & *ring_word(u, u->p.sq_off.ring_mask);
	struct io_uring_sqe *sqe = &u->sqes[i];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = opcode;
	sqe->fd = -1;
	sqe->addr = addr;
	sqe->len = opcode == IORING_OP_TIMEOUT;
	sqe->user_data = data;
	ring_word(u, u->p.sq_off.array)[i] = i;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
}

/* Checks that the next completion is this one. */
static void uring_get(struct actor *a, struct uring *u, uint64_t data, int res)
{
	uint32_t *head = ring_word(u, u->p.cq_off.head);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(u->rings + u->p.cq_off.cqes), *cqe;

	if (!must(a, *head != __atomic_load_n(ring_word(u, u->p.cq_off.tail), __ATOMIC_ACQUIRE),
		  "io_uring: expected the completion %d, there is none", (int)data))
		return;
	cqe = &cqes[*head & *ring_word(u, u->p.cq_off.ring_mask)];
	must(a, cqe->user_data == data && cqe->res == res,
	     "io_uring: expected the completion %d with %d, got %d with %d", (int)data, res,
	     (int)cqe->user_data, cqe->res);
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
}

/* Waits for one completion, again if a kill of memprof has ended the wait.  Return: as the call. */
static long uring_wait(struct actor *a, struct uring *u)
{
	long ret;

	do {
		ret = syscall(SYS_io_uring_enter, u->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	} while (was_cut_off(a, ret));
	return ret;
}

static void uring_round(struct actor *a)
{
	struct __kernel_timespec t = {.tv_nsec = MS * 1000000};
	struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&t};
	struct uring *u = &ring;
	int64_t since;

	if (u->fd < 0) {
		skip(a, u->fd == -ENOSYS ? "no such call" : "refused");
		return;
	}
	since = now_ns();
	came_out(a, "io_uring_enter(IORING_ENTER_EXT_ARG)",
		 syscall(SYS_io_uring_enter, u->fd, 0, 1,
			 IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof(arg)),
		 -1, ETIME, since, MS);
	uring_put(u, IORING_OP_NOP, 0, 1);
	uring_put(u, IORING_OP_TIMEOUT, (uintptr_t)&t, 2);
	since = now_ns();
	came_out(a, "io_uring_enter, two entries",
		 syscall(SYS_io_uring_enter, u->fd, 2, 0, 0, NULL, 0), 2, 0, since, 0);
	uring_get(a, u, 1, 0);
	came_out(a, "io_uring_enter, wait for a timeout", uring_wait(a, u), 0, 0, since, MS);
	uring_get(a, u, 2, -ETIME);
}

static void timerfd_round(struct actor *a)
{
	struct itimerspec it = {.it_value = of_ms(5), .it_interval = of_ms(5)};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	int64_t before = now_ns(), after, least, most;
	uint64_t n, sum = 0;

	if (fd < 0 || timerfd_settime(fd, 0, &it, NULL))
		give_up("timerfd");
	after = now_ns();
	for (int i = 0; i < 10; i++) {
		least = (now_ns() - after) / 5000000;
		if (!must(a, read(fd, &n, sizeof(n)) == sizeof(n),
			  "timerfd: expected 8 bytes, got %s", strerror(errno)))
			break;
		sum += n;
		most = (now_ns() - before) / 5000000;
		must(a, (int64_t)sum + 1 >= least && (int64_t)sum <= most,
		     "timerfd: expected %d to %d expirations, got %d", (int)least, (int)most,
		     (int)sum);
	}
	close(fd);
}

/* Makes a socket pair; @option sets the timeout of calls on the first socket. */
static void timed_pair(int type, int option, int fd[2])
{
	struct timeval t = {0, (MS + TICKS) * 1000};

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fd) ||
	    setsockopt(fd[0], SOL_SOCKET, option, &t, sizeof(t)))
		give_up("socketpair");
}

static void close_pair(int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

static void receive_waits_round(struct actor *a)
{
	char byte[2];
	struct iovec iov[2] = {{&byte[0], 1}, {&byte[1], 1}};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = &iov[0], .msg_iovlen = 1}},
			       {.msg_hdr = {.msg_iov = &iov[1], .msg_iovlen = 1}}};
	int64_t since;
	int fd[2];

	timed_pair(SOCK_STREAM, SO_RCVTIMEO, fd);
	since = now_ns();
	came_out(a, "recv", recv(fd[0], byte, 1, 0), -1, EAGAIN, since, MS);
	since = now_ns();
	came_out(a, "read", read(fd[0], byte, 1), -1, EAGAIN, since, MS);
	since = now_ns();
	came_out(a, "recvmsg", recvmsg(fd[0], &m[0].msg_hdr, 0), -1, EAGAIN, since, MS);
	close_pair(fd);
	timed_pair(SOCK_DGRAM, SO_RCVTIMEO, fd);
	since = now_ns();
	came_out(a, "recvmmsg", recvmmsg(fd[0], m, 2, 0, NULL), -1, EAGAIN, since, MS);
	close_pair(fd);
}

static void send_waits_round(struct actor *a)
{
	char some[4096] = {0};
	struct iovec iov = {some, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	int64_t since;
	int fd[2];

	timed_pair(SOCK_STREAM, SO_SNDTIMEO, fd);
	while (send(fd[0], some, sizeof(some), MSG_DONTWAIT) > 0)
		;
	since = now_ns();
	came_out(a, "send", send(fd[0], some, 1, 0), -1, EAGAIN, since, MS);
	since = now_ns();
	came_out(a, "writev", writev(fd[0], &iov, 1), -1, EAGAIN, since, MS);
	since = now_ns();
	came_out(a, "sendmsg", sendmsg(fd[0], &m, 0), -1, EAGAIN, since, MS);
	close_pair(fd);
}

/* accept() before there is a connection, and connect() when the listener's backlog is full. */
static void connect_waits_round(struct actor *a)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval t = {0, (MS + TICKS) * 1000};
	socklen_t n = sizeof(addr);
	int64_t since;
	int fd[3];

	for (int i = 0; i < 3; i++)
		fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd[0], (struct sockaddr *)&addr, sizeof(addr.sun_family)) || listen(fd[0], 0) ||
	    getsockname(fd[0], (struct sockaddr *)&addr, &n) ||
	    setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) ||
	    setsockopt(fd[2], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)))
		give_up("listen");
	since = now_ns();
	came_out(a, "accept", accept(fd[0], NULL, NULL), -1, EAGAIN, since, MS);
	if (connect(fd[1], (struct sockaddr *)&addr, n))
		give_up("connect");
	since = now_ns();
	came_out(a, "connect", connect(fd[2], (struct sockaddr *)&addr, n), -1, EAGAIN, since, MS);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

#define KILLED "kill -9: EINTR"

struct actor sleeps[] = {
    {.name = "sleeps",
     .round = sleeps_round,
     .guaranteed = "nanosleep() and clock_nanosleep(), relative and absolute, end at their time, "
		   "never by EINTR"},
    {.name = "polls",
     .round = polls_round,
     .guaranteed = "poll(), ppoll(), select(), pselect(): the same; the signal mask comes back"},
    {.name = "epolls",
     .round = epolls_round,
     .cut_off = true,
     .guaranteed = "epoll_wait(), epoll_pwait(), epoll_pwait2(): never early, never by EINTR; the "
		   "signal mask comes back",
     .but = "may last longer; " KILLED},
    {.name = "futexes",
     .round = futexes_round,
     .guaranteed = "futex(), futex_waitv(), timed waits for a condition, a mutex, a semaphore: "
		   "ETIMEDOUT, never early"},
    {.name = "sigtimedwait",
     .round = sigtimedwait_round,
     .cut_off = true,
     .guaranteed = "EAGAIN, never early, never EINTR",
     .but = "may last longer; " KILLED},
    {.name = "semtimedop",
     .round = semtimedop_round,
     .cut_off = true,
     .guaranteed = "EAGAIN, never early, never EINTR",
     .but = "may last longer; " KILLED},
    {.name = "queue-waits",
     .round = queue_waits_round,
     .guaranteed = "mq_timedreceive(), mq_timedsend(): ETIMEDOUT, never early, never EINTR"},
    {.name = "aio",
     .round = aio_round,
     .cut_off = true,
     .guaranteed = "io_getevents(): nothing came, never early, never EINTR",
     .but = "may last longer; " KILLED},
    {.name = "io-uring",
     .round = uring_round,
     .alone = true,
     .cut_off = true,
     .guaranteed = "each entry completes once, with its result and not early; io_uring_enter() "
		   "never fails by EINTR",
     .but = "may last longer; " KILLED},
    {.name = "timerfd",
     .round = timerfd_round,
     .guaranteed = "read() counts every expiration, none twice"},
    {.name = "receive-waits",
     .round = receive_waits_round,
     .cut_off = true,
     .guaranteed = "SO_RCVTIMEO: recv(), read(), recvmsg(), recvmmsg() fail by EAGAIN, never early",
     .but = "may last longer; " KILLED},
    {.name = "send-waits",
     .round = send_waits_round,
     .cut_off = true,
     .guaranteed = "SO_SNDTIMEO: send(), writev(), sendmsg() fail by EAGAIN, never early",
     .but = "may last longer; " KILLED},
    {.name = "connect-waits",
     .round = connect_waits_round,
     .cut_off = true,
     .guaranteed = "accept() and connect() with a timeout fail by EAGAIN, never early",
     .but = "may last longer; " KILLED},
    {0}};
