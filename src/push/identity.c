/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/identity.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "attach/proc/cgroups.h"
#include "attach/proc/procfs.h"
#include "lib/path.h"
#include "lib/utf8.h"

static struct otlp_attribute *find_attribute(const struct identity *id, const char *key, size_t n)
{
	vec_for_each (&id->attributes, a) {
		if (strlen(a->key) == n && !strncmp(a->key, key, n))
			return a;
	}
	return NULL;
}

/* Sets a text, or if that is NULL a number.  Return: 0 or -ENOMEM. */
static int set_attribute(struct identity *id, const char *key, size_t n, const char *text,
			 int64_t number)
{
	struct otlp_attribute fresh = {.number = number}, *old = find_attribute(id, key, n);
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	if (copy)
		utf8_clean(copy);
	if (old) {
		free((char *)old->text);
		old->text = copy;
		return 0;
	}
	fresh.text = copy;
	fresh.key = strndup(key, n);
	if (fresh.key && !vec_push(&id->attributes, fresh))
		return 0;
	free((char *)fresh.key);
	free(copy);
	return -ENOMEM;
}

static int set_text(struct identity *id, const char *key, const char *text)
{
	return *text ? set_attribute(id, key, strlen(key), text, 0) : 0;
}

static int take_cgroup(struct identity *id, pid_t pid)
{
	char container[CGROUP_CONTAINER], uid[CGROUP_POD];
	struct cgroups c;
	int ret = cgroups_read(pid, &c);

	if (ret)
		return ret == -ENOMEM ? ret : 0;
	if (cgroups_container(&c, container))
		ret = set_text(id, "container.id", container);
	if (!ret && cgroups_pod(&c, uid))
		ret = set_text(id, "k8s.pod.uid", uid);
	cgroups_free(&c);
	return ret;
}

/* ----------------------------------------------------------------- process -- */

static int take_process(struct identity *id, pid_t pid)
{
	char link[64], path[PATH_MAX];
	struct proc_status st;
	ssize_t n;
	int ret = set_attribute(id, "process.pid", strlen("process.pid"), NULL, pid);

	snprintf(link, sizeof(link), "/proc/%d/exe", proc_of(pid));
	n = readlink(link, path, sizeof(path) - 1);
	if (n > 0) {
		path[n] = 0;
		ret = ret ? ret : set_text(id, "process.executable.path", path);
		ret = ret ? ret : set_text(id, "process.executable.name", path_base(path));
	}
	/* A program that is run by an interpreter is better known by what it calls itself. */
	if (!ret && !proc_status_read(pid, 0, &st))
		ret = set_text(id, "service.name", st.name);
	return ret;
}

static int take_host(struct identity *id)
{
	struct utsname u;
	int ret = set_text(id, "os.type", "linux");

	if (uname(&u))
		return ret;
	ret = ret ? ret : set_text(id, "host.name", u.nodename);
	return ret ? ret
		   : set_text(id, "host.arch",
			      !strcmp(u.machine, "x86_64")    ? "amd64"
			      : !strcmp(u.machine, "aarch64") ? "arm64"
							      : u.machine);
}

bool identity_is_label(const char *text)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return false;
	for (const char *c = text; c < equals; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("._-/", *c))
			return false;
	}
	return true;
}

int identity_take(struct identity *id, pid_t pid, const char *const *label, size_t n)
{
	int ret;

	*id = (struct identity){0};
	ret = take_process(id, pid);
	ret = ret ? ret : take_host(id);
	ret = ret ? ret : take_cgroup(id, pid);
	for (size_t i = 0; !ret && i < n; i++) {
		const char *equals = strchr(label[i], '=');

		ret = set_attribute(id, label[i], (size_t)(equals - label[i]), equals + 1, 0);
	}
	if (ret)
		identity_free(id);
	return ret;
}

void identity_free(struct identity *id)
{
	vec_for_each (&id->attributes, a) {
		free((char *)a->key);
		free((char *)a->text);
	}
	vec_free(&id->attributes);
}

const char *identity_text(const struct identity *id, const char *key)
{
	const struct otlp_attribute *a = find_attribute(id, key, strlen(key));

	return a ? a->text : NULL;
}
