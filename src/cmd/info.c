/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof info and memprof verify. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "export/lists/contents_list.h"
#include "lib/human.h"
#include "lib/printable.h"

static const char info_help[] =
    "usage: memprof info RECORDING [--json]\n"
    "Prints what was recorded, what the recording contains, and how long freed blocks lived.\n"
    "      --json  as JSON\n";
static const char verify_help[] =
    "usage: memprof verify RECORDING\n"
    "Reads all of a recording and checks it: checksums, decoding, references, binaries,\n"
    "its end.\n"
    "Exit status 0: complete and undamaged; 13: damaged or cut off (the message says where).\n";

/* Return: 0 with the recording's path in *@path; the exit status after an error; or -1 if the help
 * was printed. */
static int parse_arguments(int argc, char **argv, const char *help, bool *json, const char **path)
{
	static const struct option all[] = {
	    {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	const struct option *options = json ? all : all + 1;
	int c;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return -1;
		}
		if (c != 'j' || !json)
			return option_error(argv[0], c, argv, options);
		*json = true;
	}
	if (optind == argc)
		return usage_error("%s: which recording?", argv[0]);
	if (optind + 1 < argc)
		return usage_error("%s: unexpected argument '%s'", argv[0], argv[optind + 1]);
	*path = argv[optind];
	return 0;
}

int cmd_info(int argc, char **argv)
{
	struct mp_err err = {0};
	struct contents c;
	const char *path = NULL;
	bool json = false;
	int ret = parse_arguments(argc, argv, info_help, &json, &path);

	if (ret)
		return ret < 0 ? MP_EXIT_OK : ret;
	if (contents_read(path, &c, &err))
		return complain(&err);
	if (json)
		ret = contents_json(&c, stdout);
	else
		contents_text(&c, stdout);
	contents_free(&c);
	if (ret || fflush(stdout) || ferror(stdout)) {
		mp_fail(&err, MP_EXIT_OUTPUT, -EIO, "cannot write to standard output");
		return complain(&err);
	}
	return MP_EXIT_OK;
}

static int judge_binaries(const struct contents *c, const char *path, struct mp_err *err)
{
	vec_for_each (&c->binaries.list, b) {
		if (b->wrong)
			return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
				       "%s: the embedded binary %s %s", path, b->path, b->wrong);
	}
	return c->binaries.damaged ? mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
					     "%s: an embedded binary is damaged", path)
				   : 0;
}

static int check_contents(const struct contents *c, const char *path, struct mp_err *err)
{
	if (c->truncated)
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL, "%s: %s", path, c->truncated);
	if (c->unknown_stacks || c->unknown_hooks)
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			       "%s: the stacks of %s and the functions of %s are missing", path,
			       counted(c->unknown_stacks, "event"),
			       counted(c->unknown_hooks, "event"));
	if (!c->has_finish)
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			       "%s: the record of how the recording ended is missing", path);
	return judge_binaries(c, path, err);
}

int cmd_verify(int argc, char **argv)
{
	struct mp_err err = {0};
	struct contents c;
	const char *path = NULL;
	int ret = parse_arguments(argc, argv, verify_help, NULL, &path);

	if (ret)
		return ret < 0 ? MP_EXIT_OK : ret;
	if (contents_read(path, &c, &err))
		return complain(&err);
	ret = check_contents(&c, path, &err);
	if (!ret)
		printf("%s: complete and undamaged: %s, %s, %s\n", printable(path),
		       counted(c.items[MPF_EVENT], "event"), counted(c.items[MPF_STACK], "stack"),
		       human(c.file_bytes));
	contents_free(&c);
	return ret ? complain(&err) : MP_EXIT_OK;
}
