/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads wait in system calls of all kinds, SECONDS each, and print the result of each call: "name
 * result errno milliseconds".  Then prints "ok".  The main thread ends the calls that have no
 * timeout.  With the name of a call as second argument, the main thread makes only that call:
 * memprof uses this thread as carrier.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int seconds;
static int pipes[4][2], listener, sockets[2], msg_id, sem_id;
static uint32_t futex_word, futex_other;
static int begun; /* threads that have read the time before their call */
static pid_t child;

static struct timespec span(void)
{
	return (struct timespec){seconds, 0};
}

static struct timespec at(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += seconds;
	return t;
}

static long do_nanosleep(void)
{
	struct timespec t = span(), rest;

	return nanosleep(&t, &rest);
}

static long do_clock_relative(void)
{
	struct timespec t = span();

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static long do_clock_absolute(void)
{
	struct timespec t = at(CLOCK_REALTIME);

	return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}

static long do_poll(void)
{
	return poll(NULL, 0, seconds * 1000);
}

static long do_ppoll(void)
{
	struct timespec t = span();

	return ppoll(NULL, 0, &t, NULL);
}

static long do_select(void)
{
	struct timeval t = {seconds, 0};

	return select(0, NULL, NULL, NULL, &t);
}

static long do_futex(void)
{
	struct timespec t = span();

	return syscall(SYS_futex, &futex_other, FUTEX_WAIT, 0, &t, NULL, 0);
}

static long do_futex_absolute(void)
{
	struct timespec t = at(CLOCK_MONOTONIC);

	return syscall(SYS_futex, &futex_other, FUTEX_WAIT_BITSET, 0, &t, NULL,
		       FUTEX_BITSET_MATCH_ANY);
}

/* After an interruption, the calls above continue with the time that was left. */

static long do_futex_untimed(void)
{
	return syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long do_read(void)
{
	char c;

	return read(pipes[0][0], &c, 1);
}

static long do_poll_untimed(void)
{
	struct pollfd p = {.fd = pipes[1][0], .events = POLLIN};

	return poll(&p, 1, -1);
}

static long do_epoll(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(0);

	epoll_ctl(fd, EPOLL_CTL_ADD, pipes[2][0], &e);
	return epoll_wait(fd, &e, 1, -1);
}

static long do_accept(void)
{
	return accept(listener, NULL, NULL) >= 0;
}

static long do_recv(void)
{
	char c;

	return recv(sockets[0], &c, 1, 0);
}

static long do_wait4(void)
{
	int status = 0;

	return wait4(child, &status, 0, NULL) == child && WEXITSTATUS(status) == 7;
}

static long do_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} m;

	return msgrcv(msg_id, &m, sizeof(m.text), 0, 0);
}

static long do_semop(void)
{
	struct sembuf op = {0, -1, 0};

	return semop(sem_id, &op, 1);
}

static long do_sigwaitinfo(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigwaitinfo(&set, NULL);
}

static long do_pause(void)
{
	return pause();
}

static long do_sigsuspend(void)
{
	sigset_t set;

	sigemptyset(&set);
	return sigsuspend(&set);
}

/* After an interruption, the calls below begin anew with the whole time: it is not known how long
 * they have waited. */

static long do_epoll_timed(void)
{
	struct epoll_event e;

	return epoll_wait(epoll_create1(0), &e, 1, seconds * 1000);
}

static long do_sigtimedwait(void)
{
	struct timespec t = span();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 5);
	return sigtimedwait(&set, NULL, &t);
}

static long do_semtimedop(void)
{
	struct timespec t = span();
	struct sembuf op = {1, -1, 0};

	return semtimedop(sem_id, &op, 1, &t);
}

static long do_recv_timed(void)
{
	struct timeval t = {seconds, 0};
	int fd[2];
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return -2;
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	return recv(fd[0], &c, 1, 0);
}

/* Return: a socket whose buffer is full and whose sends time out after SECONDS. */
static int full_socket(void)
{
	struct timeval t = {seconds, 0};
	char some[4096] = {0};
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) ||
	    setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)))
		exit(3);
	while (send(fd[0], some, sizeof(some), MSG_DONTWAIT) > 0)
		;
	return fd[0];
}

static long do_send_timed(void)
{
	return send(full_socket(), "x", 1, 0);
}

static long do_write_timed(void)
{
	return write(full_socket(), "x", 1);
}

static long do_writev_timed(void)
{
	struct iovec iov = {"x", 1};

	return writev(full_socket(), &iov, 1);
}

static long do_sendmsg_timed(void)
{
	struct iovec iov = {"x", 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	return sendmsg(full_socket(), &m, 0);
}

static long do_sendmmsg_timed(void)
{
	struct iovec iov = {"x", 1};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}},
			       {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}}};

	return sendmmsg(full_socket(), m, 2, 0);
}

static long do_sendfile_timed(void)
{
	int file = memfd_create("restart", 0);

	if (file < 0 || ftruncate(file, 4096))
		return -2;
	return sendfile(full_socket(), file, NULL, 4096);
}

static long do_recvmmsg_timed(void)
{
	struct timeval t = {seconds, 0};
	char byte[2];
	struct iovec iov[2] = {{&byte[0], 1}, {&byte[1], 1}};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = &iov[0], .msg_iovlen = 1}},
			       {.msg_hdr = {.msg_iov = &iov[1], .msg_iovlen = 1}}};
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fd))
		return -2;
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	return recvmmsg(fd[0], m, 2, 0, NULL);
}

/* Makes one more connection than fit in the listener's backlog. */
static long do_connect_timed(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t n = sizeof(addr);
	struct timeval t = {seconds, 0};
	int fd[3];

	for (int i = 0; i < 3; i++)
		fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(fd[0], (struct sockaddr *)&addr, sizeof(addr.sun_family)) || listen(fd[0], 0) ||
	    getsockname(fd[0], (struct sockaddr *)&addr, &n) ||
	    connect(fd[1], (struct sockaddr *)&addr, n))
		return -2;
	setsockopt(fd[2], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	return connect(fd[2], (struct sockaddr *)&addr, n);
}

/* Return: -3 if the kernel has no io_uring. */
static long do_uring_timed(void)
{
	struct io_uring_params params = {0};
	struct __kernel_timespec t = {.tv_sec = seconds};
	struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&t};
	int fd = (int)syscall(SYS_io_uring_setup, 4, &params);

	if (fd < 0)
		return errno == ENOSYS || errno == EPERM ? -3 : -2;
	return syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
		       &arg, sizeof(arg));
}

static struct call {
	const char *name;
	long (*make)(void);
	pthread_t thread;
} call[] = {{"nanosleep", do_nanosleep, 0},
	    {"clock_relative", do_clock_relative, 0},
	    {"clock_absolute", do_clock_absolute, 0},
	    {"poll", do_poll, 0},
	    {"ppoll", do_ppoll, 0},
	    {"select", do_select, 0},
	    {"futex", do_futex, 0},
	    {"futex_absolute", do_futex_absolute, 0},
	    {"futex_untimed", do_futex_untimed, 0},
	    {"read", do_read, 0},
	    {"poll_untimed", do_poll_untimed, 0},
	    {"epoll", do_epoll, 0},
	    {"accept", do_accept, 0},
	    {"recv", do_recv, 0},
	    {"wait4", do_wait4, 0},
	    {"msgrcv", do_msgrcv, 0},
	    {"semop", do_semop, 0},
	    {"sigwaitinfo", do_sigwaitinfo, 0},
	    {"pause", do_pause, 0},
	    {"sigsuspend", do_sigsuspend, 0},
	    {"epoll_timed", do_epoll_timed, 0},
	    {"sigtimedwait", do_sigtimedwait, 0},
	    {"semtimedop", do_semtimedop, 0},
	    {"recv_timed", do_recv_timed, 0},
	    {"send_timed", do_send_timed, 0},
	    {"write_timed", do_write_timed, 0},
	    {"writev_timed", do_writev_timed, 0},
	    {"sendmsg_timed", do_sendmsg_timed, 0},
	    {"sendmmsg_timed", do_sendmmsg_timed, 0},
	    {"sendfile_timed", do_sendfile_timed, 0},
	    {"recvmmsg_timed", do_recvmmsg_timed, 0},
	    {"connect_timed", do_connect_timed, 0},
	    {"uring_timed", do_uring_timed, 0}};
#define CALLS (sizeof(call) / sizeof(call[0]))

static void *run(void *arg)
{
	struct call *c = arg;
	struct timespec a, b;
	long result;
	int error;

	clock_gettime(CLOCK_MONOTONIC, &a);
	__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
	errno = 0;
	result = c->make();
	error = errno;
	clock_gettime(CLOCK_MONOTONIC, &b);
	dprintf(1, "%s %ld %d %ld\n", c->name, result, error,
		(b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000);
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void prepare(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	sigset_t set;

	for (int i = 0; i < 4; i++) {
		if (pipe(pipes[i]))
			exit(3);
	}
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 5) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		exit(3);
	msg_id = msgget(IPC_PRIVATE, 0600);
	sem_id = semget(IPC_PRIVATE, 2, 0600);
	signal(SIGUSR2, on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 5);
	sigprocmask(SIG_BLOCK, &set, NULL);
	child = fork();
	if (!child) {
		char c;

		alarm(0);
		close(pipes[3][1]); /* so that it ends if its parent does */
		if (read(pipes[3][0], &c, 1) == 1)
			sleep((unsigned)seconds);
		_exit(7);
	}
}

static void wake_all(void)
{
	struct sockaddr_in addr;
	socklen_t n = sizeof(addr);
	struct sembuf up = {0, 1, 0};
	struct {
		long type;
		char text[8];
	} m = {1, ""};

	for (int i = 0; i < 3; i++) {
		if (write(pipes[i][1], "x", 1) != 1)
			exit(3);
	}
	getsockname(listener, (struct sockaddr *)&addr, &n);
	connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&addr, sizeof(addr));
	send(sockets[1], "x", 1, 0);
	msgsnd(msg_id, &m, sizeof(m.text), 0);
	semop(sem_id, &up, 1);
	__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &futex_word, FUTEX_WAKE, 10, NULL, NULL, 0);
}

static struct call *find(const char *name)
{
	for (size_t i = 0; i < CALLS; i++) {
		if (!strcmp(call[i].name, name))
			return &call[i];
	}
	exit(2);
}

/* Ends the calls that only a signal can end. */
static void send_signals(void)
{
	static const struct {
		const char *name;
		int signal;
	} to[] = {{"sigwaitinfo", SIGUSR1}, {"pause", SIGUSR2}, {"sigsuspend", SIGUSR2}};

	for (int i = 0; i < 3; i++) {
		if (find(to[i].name)->thread)
			pthread_kill(find(to[i].name)->thread, to[i].signal);
	}
}

/* Ends the calls without a timeout after SECONDS, which begin when all @n threads have begun: on a
 * busy machine a new thread can wait long for a processor. */
static void wake_later(int n)
{
	struct timespec t;

	while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
	if (write(pipes[3][1], "x", 1) != 1)
		exit(3);
	t = at(CLOCK_MONOTONIC);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	wake_all();
	send_signals();
}

static void *waker(void *arg)
{
	wake_later(1);
	return arg;
}

int main(int argc, char **argv)
{
	seconds = argc > 1 ? atoi(argv[1]) : 2;
	alarm(120);
	prepare();
	if (argc > 2) {
		pthread_t other;

		find(argv[2])->thread = pthread_self();
		pthread_create(&other, NULL, waker, NULL);
		run(find(argv[2]));
		pthread_join(other, NULL);
	} else {
		for (size_t i = 0; i < CALLS; i++)
			pthread_create(&call[i].thread, NULL, run, &call[i]);
		wake_later((int)CALLS);
		for (size_t i = 0; i < CALLS; i++)
			pthread_join(call[i].thread, NULL);
	}
	msgctl(msg_id, IPC_RMID, NULL);
	semctl(sem_id, 0, IPC_RMID);
	puts("ok");
	return 0;
}
