/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include "cmd/cmd.h"
#include "cmd/gathering.h"
#include "cmd/options/parse.h"
#include "stream/token.h"

static const char help[] =
    "usage: memprof gather --token FILE [-o DIR] [options]\n"
    "       memprof gather --new-token FILE\n"
    "Receives the recordings of memprof attach --to and --announce: one file each, which every\n"
    "report can read while it grows.  Ctrl-C ends it (doc/streaming.md).\n"
    "  -o, --output DIR     where the files are put; is created (default: the current folder)\n"
    "      --token FILE     has the secret that the senders have, too\n"
    "      --new-token FILE make such a file\n"
    "      --listen PORT    wait for senders there; ADDR:PORT at that address (default 9743, at "
    "all;\n"
    "                       port 0: any that is free)\n"
    "      --find           connect to senders of the local network that announce themselves;\n"
    "                       without --listen only to these\n"
    "      --recordings N   end when so many are complete\n"
    "  -q, --quiet          only what goes wrong\n";

struct arguments {
	struct gathering_options o;
	const char *new_token;
};

/* Return: 0, or the exit status after it printed an error. */
static int take_option(struct arguments *a, int c)
{
	switch (c) {
	case 'o':
		a->o.folder = optarg;
		return 0;
	case 't':
		a->o.token = optarg;
		return 0;
	case 'N':
		a->new_token = optarg;
		return 0;
	case 'l':
		a->o.listen = optarg;
		return 0;
	case 'f':
		a->o.find = true;
		return 0;
	case 'q':
		a->o.quiet = true;
		return 0;
	default:
		if (parse_count(optarg, &a->o.most) && a->o.most)
			return 0;
		return usage_error("gather: --recordings: '%.100s' is not a number of recordings",
				   optarg);
	}
}

static int gather(const struct gathering_options *o)
{
	struct gathering g;
	int status = gathering_open(o, &g);

	if (status)
		return status;
	status = gathering_run(&g);
	gathering_close(&g);
	return status;
}

int cmd_gather(int argc, char **argv)
{
	static const struct option options[] = {{"output", required_argument, NULL, 'o'},
						{"token", required_argument, NULL, 't'},
						{"new-token", required_argument, NULL, 'N'},
						{"listen", required_argument, NULL, 'l'},
						{"find", no_argument, NULL, 'f'},
						{"recordings", required_argument, NULL, 'r'},
						{"quiet", no_argument, NULL, 'q'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct arguments a = {.o.folder = "."};
	struct mp_err err = {0};
	int c, status = 0;

	while (!status && (c = getopt_long(argc, argv, ":ho:q", options, NULL)) != -1) {
		if (c == '?' || c == ':')
			return option_error("gather", c, argv, options);
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		status = take_option(&a, c);
	}
	if (!status && optind < argc)
		status = usage_error("gather: '%.100s' is not an option", argv[optind]);
	if (status)
		return status;
	if (a.new_token)
		return token_create(a.new_token, &err) ? complain(&err) : MP_EXIT_OK;
	if (!a.o.token)
		return usage_error("gather: --token FILE is needed: it has the secret of the "
				   "senders; --new-token FILE makes one");
	return gather(&a.o);
}
