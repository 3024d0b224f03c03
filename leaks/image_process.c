/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An image of a process that does not run: stopped by us, or the copy of one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/procfs.h"
#include "leaks/image.h"

static size_t process_read(struct image *img, uint64_t addr, void *to, size_t len)
{
	size_t n = 0;

	while (n < len) {
		ssize_t got = pread(img->fd, (char *)to + n, len - n, (off_t)(addr + n));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
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

	return proc_open_map(img->pid, &m);
}

static const struct image_ops process_ops = {.read = process_read, .open_file = process_open_file};

int image_take_threads(struct image *img, struct target *t)
{
	vec_free(&img->threads);
	vec_for_each (&t->threads, it) {
		struct image_thread th = {.tid = (*it)->tid};

		if (!thread_get_regs(t, *it)) {
			th.has_regs = true;
			th.regs = (*it)->regs;
			th.tls = t->arch->get_tp(&th.regs);
		}
		if (vec_push(&img->threads, th))
			return -ENOMEM;
	}
	return 0;
}

static int take_maps(struct image *img, struct maps *maps)
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
				       .path = m->path};

		if (vec_push(&img->maps, im))
			return -ENOMEM;
		m->path = NULL;
	}
	return 0;
}

int image_open_process(struct image *img, pid_t memory, struct mp_err *err)
{
	char path[64];
	struct maps maps;
	int ret = maps_read(memory, &maps);

	if (!ret) {
		ret = take_maps(img, &maps);
		maps_free(&maps);
	}
	if (!ret) {
		snprintf(path, sizeof(path), "/proc/%d/mem", memory);
		img->ops = &process_ops;
		img->fd = open(path, O_RDONLY | O_CLOEXEC);
		if (img->fd < 0)
			ret = -errno;
	}
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "cannot read the memory of process %d: %s", img->pid,
			       strerror(-ret));
	return 0;
}
