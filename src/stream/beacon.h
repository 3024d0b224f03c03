/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Announcements by UDP broadcast: a sender says on its local networks where it waits for a receiver. */
#ifndef STREAM_BEACON_H
#define STREAM_BEACON_H

#include <stdint.h>
#include "stream/endpoint.h"
#include "stream/wire.h"

#define BEACON_PORT 43512u /* as bytehound's */

struct beacon {
	uint8_t id[WIRE_ID]; /* of the recording */
	uint32_t pid;
	uint16_t port; /* TCP, at the address from which it comes */
	char name[64]; /* of the program */
};

/* Return: a socket for beacon_send(), or a negative errno. */
int beacon_open(void);
/* Sends to the broadcast address of each network of this machine.  Errors are ignored: the next one can
 * arrive. */
void beacon_send(int fd, const struct beacon *b);
/* Return: a socket for beacon_hear(), which does not block, or a negative errno. */
int beacon_listen(void);
/* Takes one announcement.  @from: where it waits, with the TCP port.  Return: 1, 0: none from a local
 * network is there, or a negative errno. */
int beacon_hear(int fd, struct beacon *b, union endpoint *from);

#endif
