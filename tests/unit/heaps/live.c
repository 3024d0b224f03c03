/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory that the forked copy does not get is read from the running process; mappings that the
 * process makes afterwards are not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "snapshot/image.h"

#define SIZE ((size_t)64 << 10)

static void *map_at(void *addr, size_t size, int content)
{
	void *p = mmap(addr, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED : 0), -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, content, size);
	return p;
}

/* Makes the copy: a child of this process that only waits. */
static pid_t copy(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	while (!pid)
		pause();
	return pid;
}

static void test_live(void **state)
{
	uint8_t *room = map_at(NULL, 16 * SIZE, 0), *hidden = room + 2 * SIZE,
		*passing = room + 6 * SIZE, *grown = room + 10 * SIZE;
	struct mp_err err = {0};
	struct maps before;
	struct image img;
	uint8_t byte = 0;
	uint32_t live = 0;
	pid_t pid;

	(void)state;
	munmap(room, 16 * SIZE);
	map_at(hidden, SIZE, 1);
	madvise(hidden, SIZE, MADV_DONTFORK);
	map_at(passing, SIZE, 2);
	map_at(grown, 2 * SIZE, 3);
	assert_int_equal(maps_read(getpid(), &before), 0);
	/* When the copy is made, the first mapping is gone, and only the other's second half
	 * exists. */
	munmap(passing, SIZE);
	munmap(grown, SIZE);
	pid = copy();
	map_at(passing, SIZE, 4);
	map_at(grown, 2 * SIZE, 4);
	hidden[0] = 5;

	image_init(&img, NULL, getpid());
	assert_int_equal(image_open_process(&img, pid, &err), 0);
	assert_int_equal(image_add_live(&img, &before), 0);
	vec_for_each (&img.maps, m) {
		assert_true(m == img.maps.at || m[-1].end <= m->start);
		live += m->live;
	}
	assert_int_equal(live, 1);
	assert_true(image_read_all(&img, (uintptr_t)hidden, &byte, 1));
	assert_int_equal(byte, 5);
	assert_null(image_map_at(&img, (uintptr_t)passing));
	assert_null(image_map_at(&img, (uintptr_t)grown));
	assert_true(image_read_all(&img, (uintptr_t)grown + SIZE, &byte, 1));
	assert_int_equal(byte, 3);

	image_close(&img);
	maps_free(&before);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	munmap(room, 16 * SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_live)};

	return cmocka_run_group_tests_name("leaks/live", tests, NULL, NULL);
}
