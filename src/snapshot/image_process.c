/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An image of a process that does not run: stopped by memprof, or a copy. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "attach/proc/pagemap.h"
#include "attach/proc/procfs.h"
#include "attach/proc/smaps.h"
#include "lib/by_number.h"
#include "snapshot/image.h"

struct pagemaps {
	struct pagemap copy, process;
};

static int open_of(pid_t pid, const char *file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", proc_of(pid), file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static size_t process_read(struct image *img, uint64_t addr, void *to, size_t len)
{
	const struct image_map *m = img->live_fd >= 0 ? image_map_at(img, addr) : NULL;
	int fd = m && m->live ? img->live_fd : img->fd;

	return image_pread(fd, to, len, addr);
}

static int process_open_file(struct image *img, const struct image_map *map)
{
	struct map m = {.start = map->start,
			.end = map->end,
			.offset = map->offset,
			.ino = map->ino,
			.dev_major = map->dev_major,
			.dev_minor = map->dev_minor,
			.path = map->path};

	return map_open(img->pid, &m);
}

static uint64_t process_present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	struct pagemaps *p = img->backend;
	struct page_run run;

	/* The page tables of a copy have no shared pages until it touches them. */
	if (!pagemap_next(map->shared || map->live ? &p->process : &p->copy, *addr, map->end, &run))
		return 0;
	if (run.start > *addr)
		*addr = run.start;
	return run.end;
}

static void process_close(struct image *img)
{
	struct pagemaps *p = img->backend;

	if (p) {
		pagemap_close(&p->copy);
		pagemap_close(&p->process);
	}
	free(p);
	img->backend = NULL;
}

static const struct image_ops process_ops = {.fetch = process_read,
					     .present = process_present,
					     .open_file = process_open_file,
					     .close = process_close,
					     .parallel = true};

int image_take_threads(struct image *img, struct target *t)
{
	size_t known = img->threads.n, next = 0;

	vec_for_each (&t->threads, it) {
		struct image_thread th = {.tid = (*it)->tid}, *old;

		if (!thread_get_regs(t, *it)) {
			th.has_regs = true;
			th.regs = (*it)->regs;
			th.tls = thread_get_tp(t, *it);
		}
		old = image_thread(img, known, th.tid, &next);
		if (old)
			*old = th;
		else if (vec_push(&img->threads, th))
			return -ENOMEM;
	}
	return 0;
}

static int take_maps(struct image *img, const struct maps *maps)
{
	vec_for_each (&maps->list, m) {
		struct image_map im = {.start = m->start,
				       .end = m->end,
				       .offset = m->offset,
				       .ino = m->ino,
				       .dev_major = m->dev_major,
				       .dev_minor = m->dev_minor,
				       .read = m->read,
				       .write = m->write,
				       .exec = m->exec,
				       .shared = m->shared,
				       .path = strdup(m->path)};

		if (!im.path || vec_push(&img->maps, im)) {
			free(im.path);
			return -ENOMEM;
		}
	}
	return 0;
}

int image_open_process(struct image *img, pid_t memory, struct mp_err *err)
{
	struct pagemaps *p = malloc(sizeof(*p));
	struct maps maps;
	int ret = p ? maps_read(memory, &maps) : -ENOMEM;

	if (!ret) {
		ret = take_maps(img, &maps);
		maps_free(&maps);
	}
	if (!ret) {
		img->fd = open_of(memory, "mem");
		ret = img->fd < 0 ? img->fd : 0;
	}
	if (ret) {
		free(p);
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "cannot read the memory of process %d: %s%s", img->pid,
			       strerror(-ret),
			       ret == -EACCES ? " (another user's process: root, or "
						"CAP_DAC_READ_SEARCH besides CAP_SYS_PTRACE)"
					      : "");
	}
	/* Without a pagemap, all pages count as touched. */
	ignore_result(pagemap_open(&p->copy, memory));
	ignore_result(pagemap_open(&p->process, img->pid));
	img->backend = p;
	img->ops = &process_ops;
	return 0;
}

static bool overlaps(const struct image *img, uint64_t start, uint64_t end)
{
	vec_for_each (&img->maps, m) {
		if (m->start < end && start < m->end)
			return true;
	}
	return false;
}

/* Does the process still have memory that its copy lacks?  It can also have mapped it again since.
 */
static int lacks_some(const struct image *img, const struct maps *before, bool *some)
{
	struct maps now;
	int ret = maps_read(img->pid, &now);

	*some = false;
	if (ret)
		return ret;
	vec_for_each (&before->list, m) {
		const struct map *still = maps_find(&now, m->start);

		*some |= m->write && !image_map_at(img, m->start) && still && still->write;
	}
	maps_free(&now);
	return 0;
}

static int add_live(struct image *img, struct map_usage *u)
{
	struct image_map im = {.start = u->start,
			       .end = u->end,
			       .read = u->prot & PROT_READ,
			       .write = true,
			       .exec = u->prot & PROT_EXEC,
			       .shared = u->shared,
			       .live = true,
			       .path = u->path};

	if (vec_push(&img->maps, im))
		return -ENOMEM;
	u->path = NULL;
	return 0;
}

int image_add_live(struct image *img, const struct maps *before)
{
	size_t n = img->maps.n;
	struct map_usages now;
	bool some;
	int ret = lacks_some(img, before, &some);

	if (!ret && some)
		ret = map_usages_read(img->pid, &now);
	if (ret || !some)
		return ret == -ESRCH || ret == -ENOENT ? 0 : ret;
	vec_for_each (&now.list, u) {
		/* Memory that overlaps the copy's was mapped after the copy was made. */
		if (!ret && u->dontfork && u->prot & PROT_WRITE && !overlaps(img, u->start, u->end))
			ret = add_live(img, u);
	}
	map_usages_free(&now);
	if (img->maps.n > n) {
		vec_sort(&img->maps, by_number);
		img->live_fd = open_of(img->pid, "mem");
	}
	return ret;
}
