/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool files_has_suffix(const char *name, const char *suffix)
{
	const size_t n = strlen(name), k = strlen(suffix);

	return n > k && !strcmp(name + n - k, suffix);
}

int files_by_time(const void *a, const void *b)
{
	const struct file_entry *p = a, *q = b;

	if (p->written.tv_sec != q->written.tv_sec)
		return p->written.tv_sec < q->written.tv_sec ? -1 : 1;
	return p->written.tv_nsec < q->written.tv_nsec ? -1
						       : p->written.tv_nsec > q->written.tv_nsec;
}

int files_by_name(const void *a, const void *b)
{
	return strcmp(((const struct file_entry *)a)->name, ((const struct file_entry *)b)->name);
}

int files_list(int dir, const char *suffix, int (*order)(const void *a, const void *b),
	       struct files *f)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *de;

	if (!d) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return ret;
	}
	while (!ret && (de = readdir(d))) {
		struct file_entry fresh;
		struct stat st;

		if (de->d_name[0] == '.' || !files_has_suffix(de->d_name, suffix) ||
		    fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		snprintf(fresh.name, sizeof(fresh.name), "%s", de->d_name);
		fresh.written = st.st_mtim;
		fresh.bytes = (uint64_t)st.st_size;
		f->bytes += fresh.bytes;
		ret = vec_push(&f->list, fresh);
	}
	closedir(d);
	vec_sort(&f->list, order);
	return ret;
}

int files_make_room(int dir, const char *suffix, int (*order)(const void *a, const void *b),
		    uint64_t n, uint64_t limit, uint64_t *removed)
{
	struct files f = {0};
	int ret = n > limit ? -EFBIG : files_list(dir, suffix, order, &f);

	for (size_t i = 0; !ret && i < f.list.n && f.bytes + n > limit; i++) {
		if (!unlinkat(dir, f.list.at[i].name, 0) && removed)
			(*removed)++;
		f.bytes -= f.list.at[i].bytes;
	}
	vec_free(&f.list);
	return ret;
}
