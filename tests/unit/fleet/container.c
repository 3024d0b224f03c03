/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ids of containers, from the files of the engines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fleet/container.h"

#define ID(digit)                                                                                  \
	digit digit digit digit digit digit digit digit digit digit digit digit digit digit digit  \
	    digit
#define LONG_ID(digit) ID(digit) ID(digit) ID(digit) ID(digit)

static void put(const char *root, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	for (const char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(path, sizeof(path), "%s%.*s", root, (int)(slash - name), name);
		mkdir(path, 0700);
	}
	snprintf(path, sizeof(path), "%s%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int begin(void **state)
{
	static char root[] = "/tmp/memprof-test-XXXXXX";
	char path[512];

	assert_non_null(mkdtemp(root));
	*state = root;
	put(root, "/var/lib/docker/containers/" LONG_ID("a") "/config.v2.json",
	    "{\"ID\": \"" LONG_ID("a") "\", \"Name\": \"/shop\", \"State\": {}}");
	put(root, "/var/lib/docker/containers/torn/config.v2.json", "{\"ID\": \"");
	put(root, "/var/lib/docker/containers/odd/config.v2.json",
	    "{\"ID\": 7, \"Name\": \"/odd\"}");
	put(root, "/var/lib/docker/containers/bad/config.v2.json",
	    "{\"ID\": \"../../etc\", \"Name\": \"/bad\"}");
	put(root, "/var/lib/containers/storage/overlay-containers/containers.json",
	    "[{\"id\": \"" LONG_ID("b") "\", \"names\": [\"web\", \"www\"]}, {\"id\": \"" LONG_ID(
		"c") "\", \"names\": [\"twice\"]}, {\"id\": \"" LONG_ID("d") "\"}, 3]");
	put(root, "/home/v/.local/share/containers/storage/overlay-containers/x", "");
	snprintf(path, sizeof(path),
		 "%s/home/v/.local/share/containers/storage/overlay-containers/containers.json",
		 root);
	assert_int_equal(symlink("/dev/zero", path), 0);
	put(root, "/home/u/.local/share/containers/storage/overlay-containers/containers.json",
	    "[{\"id\": \"" LONG_ID("e") "\", \"names\": [\"twice\"]}]");
	put(root,
	    "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" LONG_ID("f") "/config.json",
	    "{\"annotations\": {\"io.kubernetes.cri.container-name\": \"sidecar\"}}");
	return 0;
}

static int end(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", (char *)*state);
	return system(command);
}

static void has(const char *root, const char *text, const char *id)
{
	struct mp_err err = {0};
	/* The first one has nothing. */
	const char *const roots[] = {"/proc/1/fdinfo", root, NULL};
	char found[CONTAINER_ID];

	assert_int_equal(container_resolve(text, roots, found, &err), 0);
	assert_string_equal(found, id);
}

static void fails(const char *root, const char *text, const char *why)
{
	struct mp_err err = {0};
	const char *const roots[] = {"/proc/1/fdinfo", root, NULL};
	char found[CONTAINER_ID];

	assert_int_equal(container_resolve(text, roots, found, &err), -ENOENT);
	assert_int_equal(err.exit, MP_EXIT_USAGE);
	assert_non_null(strstr(err.what, why));
}

static void ids(void **state)
{
	has(*state, "0123456789ab", "0123456789ab");
	has(*state, LONG_ID("0"), LONG_ID("0"));
	fails(*state, "0123456789a", "no container");
	fails(*state, LONG_ID("0") "0", "no container");
	fails(*state, "", "no container");
}

static void names(void **state)
{
	has(*state, "shop", LONG_ID("a"));
	has(*state, "web", LONG_ID("b"));
	has(*state, "www", LONG_ID("b"));
	has(*state, "sidecar", LONG_ID("f"));
	fails(*state, "twice", "2 containers have the name 'twice'");
	fails(*state, "odd", "no container");
	fails(*state, "bad", "no container");
	fails(*state, "none", "no container of docker, podman or containerd has the name 'none'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ids), cmocka_unit_test(names)};

	return cmocka_run_group_tests(tests, begin, end);
}
