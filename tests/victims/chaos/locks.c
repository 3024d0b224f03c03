/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that locks exclude other threads, and that threads have what they must at start and end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>
#include "chaos.h"

#define TIMES	300
#define THREADS 2

struct shared {
	struct actor *a;
	const struct lock *lock;
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	char path[64];
	volatile long count; /* protected by the lock */
	atomic_int holders, ready;
};

/* take(), give(): acquire and release the lock.  Return: 0 or an error number. */
struct lock {
	const char *name;
	int times, protocol, robust;
	int (*take)(struct shared *s, int fd);
	int (*give)(struct shared *s, int fd);
};

static int mutex_take(struct shared *s, int fd)
{
	(void)fd;
	return pthread_mutex_lock(&s->mutex);
}

static int mutex_give(struct shared *s, int fd)
{
	(void)fd;
	return pthread_mutex_unlock(&s->mutex);
}

static int write_take(struct shared *s, int fd)
{
	(void)fd;
	return pthread_rwlock_wrlock(&s->rwlock);
}

static int write_give(struct shared *s, int fd)
{
	(void)fd;
	return pthread_rwlock_unlock(&s->rwlock);
}

static int flock_take(struct shared *s, int fd)
{
	(void)s;
	return flock(fd, LOCK_EX) ? errno : 0;
}

static int flock_give(struct shared *s, int fd)
{
	(void)s;
	return flock(fd, LOCK_UN) ? errno : 0;
}

static int ofd_lock(int fd, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

	return fcntl(fd, F_OFD_SETLKW, &l) ? errno : 0;
}

static int ofd_take(struct shared *s, int fd)
{
	(void)s;
	return ofd_lock(fd, F_WRLCK);
}

static int ofd_give(struct shared *s, int fd)
{
	(void)s;
	return ofd_lock(fd, F_UNLCK);
}

static const struct lock mutexes[] = {
    {"mutex", TIMES, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, mutex_take, mutex_give},
    {"mutex, robust", TIMES, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, mutex_take, mutex_give},
    {"mutex, inheriting", TIMES, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, mutex_take,
     mutex_give},
    {"rwlock", TIMES, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, write_take, write_give},
    {0}};
static const struct lock file_locks[] = {
    {"flock", 10, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, flock_take, flock_give},
    {"fcntl(F_OFD_SETLKW)", 10, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, ofd_take, ofd_give},
    {0}};

static void *count_up(void *arg)
{
	struct shared *s = arg;
	int fd = open(s->path, O_RDWR | O_CLOEXEC), error;

	for (int i = 0; i < s->lock->times; i++) {
		long was;

		error = s->lock->take(s, fd);
		if (!must(s->a, !error, "%s: expected the lock, got %s", s->lock->name,
			  strerror(error)))
			break;
		must(s->a, s->holders++ == 0, "%s: expected to be alone", s->lock->name);
		was = s->count;
		if (i % (s->lock->times / 10) == 0)
			pause_us(300);
		s->count = was + 1;
		s->holders--;
		error = s->lock->give(s, fd);
		must(s->a, !error, "%s: expected it to be given back, got %s", s->lock->name,
		     strerror(error));
	}
	close(fd);
	return NULL;
}

static void contend(struct actor *a, const struct lock *lock)
{
	for (; lock->name; lock++) {
		struct shared s = {.a = a, .lock = lock};
		pthread_mutexattr_t attr;
		pthread_t th[THREADS];
		int fd = memfd_create("chaos", MFD_CLOEXEC);

		pthread_mutexattr_init(&attr);
		pthread_mutexattr_setprotocol(&attr, lock->protocol);
		pthread_mutexattr_setrobust(&attr, lock->robust);
		pthread_mutex_init(&s.mutex, &attr);
		pthread_rwlock_init(&s.rwlock, NULL);
		/* Each thread opens the file by this path: file locks do not exclude threads that
		 * share an open file. */
		snprintf(s.path, sizeof(s.path), "/proc/self/fd/%d", fd);
		for (int i = 0; i < THREADS; i++)
			th[i] = begin(count_up, &s);
		for (int i = 0; i < THREADS; i++)
			pthread_join(th[i], NULL);
		must(a, s.count == (long)THREADS * lock->times,
		     "%s: expected a count of %d, got %ld", lock->name, THREADS * lock->times,
		     s.count);
		pthread_rwlock_destroy(&s.rwlock);
		pthread_mutex_destroy(&s.mutex);
		pthread_mutexattr_destroy(&attr);
		close(fd);
	}
}

static void mutexes_round(struct actor *a)
{
	contend(a, mutexes);
}

static void file_locks_round(struct actor *a)
{
	contend(a, file_locks);
}

static void *die_with_it(void *arg)
{
	struct shared *s = arg;

	pthread_mutex_lock(&s->mutex);
	s->ready = 1;
	pause_us(5000);
	return NULL;
}

/* A thread that waits for a lock must get EOWNERDEAD when the lock's owner ends. */
static void robust_round(struct actor *a)
{
	for (int inherit = 0; inherit < 2; inherit++) {
		struct shared s = {.a = a};
		pthread_mutexattr_t attr;
		pthread_t th;
		int error;

		pthread_mutexattr_init(&attr);
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
		pthread_mutexattr_setprotocol(&attr,
					      inherit ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		pthread_mutex_init(&s.mutex, &attr);
		th = begin(die_with_it, &s);
		while (!s.ready)
			pause_us(100);
		error = pthread_mutex_lock(&s.mutex);
		must(a, error == EOWNERDEAD, "robust mutex: expected EOWNERDEAD, got %s",
		     strerror(error));
		must(a, !pthread_mutex_consistent(&s.mutex) && !pthread_mutex_unlock(&s.mutex),
		     "robust mutex: expected to make it consistent");
		pthread_join(th, NULL);
		pthread_mutex_destroy(&s.mutex);
		pthread_mutexattr_destroy(&attr);
	}
}

static _Thread_local long mine = 17, zeros[8];
static pthread_key_t key;
static atomic_long destroyed, cleaned;

static void destroy(void *value)
{
	destroyed += (long)(intptr_t)value;
}

static void clean(void *arg)
{
	cleaned += (long)(intptr_t)arg;
}

struct life {
	struct actor *a;
	long number;
};

static void *live(void *arg)
{
	struct life *l = arg;

	must(l->a, mine == 17 && !zeros[7], "thread-local: expected 17 and 0, got %ld and %ld",
	     mine, zeros[7]);
	mine = zeros[7] = l->number;
	pthread_setspecific(key, (void *)(intptr_t)1);
	pause_us(3000);
	must(l->a, mine == l->number && zeros[7] == l->number,
	     "thread-local: expected %ld, got %ld", l->number, mine);
	return (void *)(intptr_t)(l->number * 3);
}

static void *be_cancelled(void *arg)
{
	pthread_setspecific(key, (void *)(intptr_t)1);
	pthread_cleanup_push(clean, (void *)(intptr_t)1);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return arg;
}

static void threads_round(struct actor *a)
{
	struct life l[4];
	pthread_t th[4], cancelled;
	void *result;

	if (pthread_key_create(&key, destroy))
		give_up("pthread_key_create");
	destroyed = cleaned = 0;
	for (int i = 0; i < 4; i++) {
		l[i] = (struct life){a, 100 + i};
		th[i] = begin(live, &l[i]);
	}
	cancelled = begin(be_cancelled, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(th[i], &result);
		must(a, (long)(intptr_t)result == 300 + 3 * i, "pthread_join: expected %d, got %ld",
		     300 + 3 * i, (long)(intptr_t)result);
	}
	pause_us(3000);
	pthread_cancel(cancelled);
	pthread_join(cancelled, &result);
	must(a, result == PTHREAD_CANCELED, "pthread_cancel: expected PTHREAD_CANCELED, got %p",
	     result);
	/* The thread can be cancelled before it has pushed the cleanup handler. */
	must(a, cleaned <= 1 && destroyed == 4 + cleaned,
	     "threads: expected %ld values destroyed, got %ld", 4 + cleaned, destroyed);
	pthread_key_delete(key);
}

struct actor locks[] = {
    {.name = "mutexes",
     .round = mutexes_round,
     .guaranteed = "mutexes (normal, robust, priority-inheriting) and rwlocks keep others out, "
		   "every wait succeeds"},
    {.name = "file-locks",
     .round = file_locks_round,
     .guaranteed = "flock() and fcntl(F_OFD_SETLKW): the same; neither fails by EINTR"},
    {.name = "robust",
     .round = robust_round,
     .guaranteed = "the end of a lock's owner is told: EOWNERDEAD, once"},
    {.name = "threads",
     .round = threads_round,
     .alone = true,
     .guaranteed = "threads begin, end, and are cancelled with their values, thread-local "
		   "variables and destructors"},
    {0}};
