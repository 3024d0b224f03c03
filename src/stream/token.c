/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/token.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/hex.h"
#include "lib/write_all.h"

#define RANDOM_BYTES 32u

static int bad(struct mp_err *err, const char *path, int code, const char *why)
{
	return mp_fail(err, MP_EXIT_USAGE, code, "the token file %.200s %s", path, why);
}

/* Return: 0, or a negative errno with @err. */
static int check(const char *path, int fd, struct mp_err *err)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return bad(err, path, -EINVAL, "is not a regular file");
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return bad(err, path, -EPERM, "can be used by others than its owner: chmod 600");
	return 0;
}

int token_read(const char *path, struct token *token, struct mp_err *err)
{
	char text[TOKEN_MOST + 64];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), ret;
	ssize_t n;

	if (fd < 0)
		return bad(err, path, -errno, strerror(errno));
	ret = check(path, fd, err);
	n = ret ? 0 : read(fd, text, sizeof(text));
	close(fd);
	if (ret)
		return ret;
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	if (n < (ssize_t)TOKEN_LEAST)
		return bad(err, path, -EINVAL, "has no token of 16 bytes or more");
	if (n > (ssize_t)TOKEN_MOST)
		return bad(err, path, -EINVAL, "has more than 1024 bytes");
	token->n = (size_t)n;
	memcpy(token->bytes, text, token->n);
	return 0;
}

int token_create(const char *path, struct mp_err *err)
{
	uint8_t random[RANDOM_BYTES];
	char text[2 * RANDOM_BYTES + 2];
	int fd, ret;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return mp_fail(err, MP_EXIT_FAILURE, -EIO, "no random numbers");
	hex_text(random, sizeof(random), text);
	strcat(text, "\n");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return mp_fail(err, MP_EXIT_OUTPUT, -errno, "cannot create %.200s: %s", path,
			       strerror(errno));
	ret = write_all(fd, text, strlen(text)) ? 0 : -errno;
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret)
		return 0;
	unlink(path);
	return mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write %.200s: %s", path, strerror(-ret));
}
