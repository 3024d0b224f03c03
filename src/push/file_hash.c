/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/file_hash.h"

#include <endian.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "attach/proc/root_file.h"
#include "lib/hex.h"
#include "model/model.h"
#include "unwind/build_id.h"

#define PART  4096u
#define BYTES 16u /* of the digest */

static bool hash_part(struct sha256_ctx *h, int fd, off_t at, size_t n)
{
	uint8_t buf[PART];

	if (pread(fd, buf, n, at) != (ssize_t)n)
		return false;
	sha256_update(h, n, buf);
	return true;
}

/* The two parts overlap if the file is short. */
static bool hash_file(int fd, uint64_t bytes, char text[FILE_HASH_TEXT])
{
	const uint64_t length = htobe64(bytes);
	const size_t n = bytes < PART ? (size_t)bytes : PART;
	uint8_t digest[BYTES];
	struct sha256_ctx h;

	sha256_init(&h);
	if (!hash_part(&h, fd, 0, n) || !hash_part(&h, fd, (off_t)(bytes - n), n))
		return false;
	sha256_update(&h, sizeof(length), (const uint8_t *)&length);
	sha256_digest(&h, sizeof(digest), digest);
	hex_text(digest, sizeof(digest), text);
	return true;
}

static void take_hash(const struct file_hashes *f, const struct mp_module *m,
		      char text[FILE_HASH_TEXT])
{
	struct stat st;
	int fd = f->root < 0 ? -1 : root_file_open(f->root, m->path, f->uid, &st);

	text[0] = 0;
	if (fd < 0)
		return;
	if (!elf_is_build(fd, m->build_id, m->build_id_len) ||
	    !hash_file(fd, (uint64_t)st.st_size, text))
		text[0] = 0;
	close(fd);
}

void file_hashes_begin(struct file_hashes *f, pid_t pid)
{
	struct proc_status st;

	*f = (struct file_hashes){.root = root_open(pid)};
	if (!proc_status_read(pid, 0, &st))
		f->uid = st.uid;
}

/* Return: as kept in @f->known, or NULL when out of memory. */
static const struct file_hash *learn(struct file_hashes *f, const struct mp_module *m)
{
	struct file_hash *fresh;

	if (vec_push(&f->known, (struct file_hash){0}))
		return NULL;
	fresh = &f->known.at[f->known.n - 1];
	fresh->path = strdup(m->path);
	if (!fresh->path) {
		f->known.n--;
		return NULL;
	}
	take_hash(f, m, fresh->text);
	return fresh;
}

const char *file_hash(void *hashes, size_t index)
{
	struct file_hashes *f = hashes;
	const struct mp_module *m = &f->model->facts.modules.at[index];
	const struct file_hash *found = NULL;

	vec_for_each (&f->known, k) {
		if (!strcmp(k->path, m->path))
			found = k;
	}
	if (!found)
		found = learn(f, m);
	return found && found->text[0] ? found->text : NULL;
}

void file_hashes_free(struct file_hashes *f)
{
	vec_for_each (&f->known, k)
		free(k->path);
	vec_free(&f->known);
	if (f->root >= 0)
		close(f->root);
}
