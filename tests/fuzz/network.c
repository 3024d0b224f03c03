/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What comes over the network: bytes of anybody, frames of one that has the token, and the names of files. */
#include <sys/socket.h>
#include "fuzz.h"
#include "stream/peer.h"
#include "stream/store.h"

static const struct token token = {16, "0123456789abcdef"};

static void name(struct input *in)
{
	char clean[WIRE_NAME + 1];
	size_t n;

	store_clean_name(in->at, in->left, clean);
	n = strlen(clean);
	if (!n || n > WIRE_NAME || *clean == '.' || strchr(clean, '/'))
		abort();
}

/* Has @peer read what @fd gets, in pieces. */
static void feed(struct peer *peer, int fd, struct input *in)
{
	struct wire_frame f;

	while (in->left) {
		uint8_t piece[300];
		size_t n = 1 + input_number(in, 1) % sizeof(piece);
		int got;

		n = n < in->left ? n : in->left;
		input_take(in, piece, n);
		if (send(fd, piece, n, 0) != (ssize_t)n || peer_receive(peer) || peer_send(peer))
			return;
		while ((got = peer_next(peer, &f)) > 0) {
			if (f.length > WIRE_PAYLOAD)
				abort();
		}
		if (got)
			return;
	}
}

/* Connects @peer, which is the receiver; makes the handshake if @proven.  Return: the sender's socket. */
static int connect_peer(struct peer *peer, bool proven, struct peer *sender)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		abort();
	if (peer_begin(peer, fd[0], WIRE_RECEIVER, &token) || peer_send(peer))
		abort();
	*sender = (struct peer){.fd = fd[1]};
	if (!proven)
		return fd[1];
	if (peer_begin(sender, fd[1], WIRE_SENDER, &token) || peer_send(sender) ||
	    peer_receive(sender) || peer_send(sender))
		abort();
	while (sender->stage != PEER_READY) {
		if (peer_receive(peer) || peer_send(peer) || peer_receive(sender))
			abort();
	}
	return fd[1];
}

/* Frames whose codes are right: each has a type, an offset and a payload of the input. */
static void frames(struct peer *peer, struct peer *sender, struct input *in)
{
	while (in->left) {
		uint32_t type = (uint32_t)input_number(in, 1);
		uint64_t offset = input_number(in, 8);
		size_t n = input_number(in, 1);
		struct wire_frame f;
		int got = 0;

		n = n < in->left ? n : in->left;
		if (peer_put(sender, (enum wire_type)type, offset, in->at, n) || peer_send(sender))
			abort();
		while (!got && !peer_receive(peer))
			got = peer_next(peer, &f);
		if (got > 0 && (f.type != type || f.offset != offset || f.length != n ||
				memcmp(f.payload, in->at, n) != 0))
			abort();
		if (got < 0) {
			if (type >= WIRE_OPEN && type <= WIRE_CANCEL)
				abort(); /* a valid frame was refused */
			return;
		}
		in->at += n;
		in->left -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint32_t way = (uint32_t)input_number(&in, 1) % 3;
	struct peer peer, sender;
	int fd;

	if (way == 2) {
		name(&in);
		return 0;
	}
	fd = connect_peer(&peer, way == 1, &sender);
	if (way == 1)
		frames(&peer, &sender, &in);
	else
		feed(&peer, fd, &in);
	peer_end(&peer);
	peer_end(&sender);
	return 0;
}
