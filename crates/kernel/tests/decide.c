/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the scheduler of ALGORITHM. Input: `n 0` begins a connection, `b ID` tells that the peer's window blocked a
 * subflow, `d COUNT NOW UNSENT WINDOW` asks for a decision [ns, bytes], and is followed by COUNT lines of a subflow:
 * id, srtt, deviation [1/8 us], window, flight, mss [bytes], room, backup. Output: the set of places of each decision.
 */
#include <stdio.h>
#include <string.h>
#include ALGORITHM

static int read_path(struct path *p)
{
	unsigned room, backup;

	if (scanf("%u %u %u %u %u %u %u %u", &p->id, &p->srtt, &p->deviation, &p->window, &p->flight, &p->mss, &room,
		  &backup) != 8)
		return 0;
	p->room = room;
	p->backup = backup;
	p->counts = 1;
	return 1;
}

int main(void)
{
	struct memory memory;
	struct moment m;
	unsigned number;
	char event;

	memset(&memory, 0, sizeof(memory));
	while (scanf(" %c %u", &event, &number) == 2) {
		if (event == 'n') {
			memset(&memory, 0, sizeof(memory));
			continue;
		}
		if (event == 'b') {
			blocked(&memory, number);
			continue;
		}
		memset(&m, 0, sizeof(m));
		if (event != 'd' || number > SUBFLOWS || scanf("%llu %llu %llu", &m.now, &m.unsent, &m.window) != 3)
			return 1;
		for (unsigned i = 0; i < number; i++)
			if (!read_path(&m.paths[i]))
				return 1;
		printf("%llu\n", decided(&m, &memory));
	}
	return 0;
}
