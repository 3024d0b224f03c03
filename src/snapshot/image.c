/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/image.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/by_number.h"
#include "lib/path.h"

void image_init(struct image *img, const struct arch *arch, pid_t pid)
{
	memset(img, 0, sizeof(*img));
	img->arch = arch;
	img->pid = pid;
	img->fd = img->live_fd = -1;
	img->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
}

void image_close(struct image *img)
{
	if (img->ops && img->ops->close)
		img->ops->close(img);
	vec_for_each (&img->maps, m)
		free(m->path);
	vec_free(&img->maps);
	vec_free(&img->threads);
	if (img->fd >= 0)
		close(img->fd);
	if (img->live_fd >= 0)
		close(img->live_fd);
	img->fd = img->live_fd = -1;
	img->ops = NULL;
}

struct image_thread *image_thread(struct image *img, size_t known, pid_t tid, size_t *next)
{
	for (size_t n = 0; n < known; n++) {
		size_t i = (*next + n) % known;

		if (img->threads.at[i].tid != tid)
			continue;
		*next = i + 1;
		return &img->threads.at[i];
	}
	return NULL;
}

size_t image_read(struct image *img, uint64_t addr, void *to, size_t len)
{
	size_t n = img->ops->fetch(img, addr, to, len);

	img->bytes_read += n;
	return n;
}

bool image_read_all(struct image *img, uint64_t addr, void *to, size_t len)
{
	return image_read(img, addr, to, len) == len;
}

bool image_word(struct image *img, uint64_t addr, uint64_t *value)
{
	uint8_t raw[sizeof(*value)];

	if (!image_read_all(img, addr, raw, img->arch->word_size))
		return false;
	*value = arch_word(img->arch, raw);
	return true;
}

uint64_t image_present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	return *addr < map->end ? img->ops->present(img, map, addr) : 0;
}

size_t image_pread(int fd, void *to, size_t len, uint64_t offset)
{
	size_t n = 0;

	while (n < len) {
		ssize_t got = pread(fd, (char *)to + n, len - n, (off_t)(offset + n));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

const struct image_map *image_map_at(const struct image *img, uint64_t addr)
{
	return vec_search(&img->maps, &addr, by_range);
}

int image_open_file(struct image *img, const struct image_map *map)
{
	return map->path[0] == '/' ? img->ops->open_file(img, map) : -ENOENT;
}

const char *image_map_name(const struct image_map *map)
{
	return path_base(map->path);
}

const void *image_view(struct image *img, struct image_view *v, uint64_t addr, size_t len)
{
	if (addr >= v->start && addr - v->start <= v->n && len <= v->n - (addr - v->start))
		return v->buf + (addr - v->start);
	if (len > IMAGE_VIEW_SIZE)
		return NULL;
	if (!v->buf) {
		v->buf = malloc(IMAGE_VIEW_SIZE);
		if (!v->buf)
			return NULL;
	}
	v->start = addr;
	v->n = image_read(img, addr, v->buf, IMAGE_VIEW_SIZE);
	return len <= v->n ? v->buf : NULL;
}

void image_view_free(struct image_view *v)
{
	free(v->buf);
	memset(v, 0, sizeof(*v));
}
