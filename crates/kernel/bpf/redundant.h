/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All subflows with room at once. Backups carry no copies: they take turns. */
#include "schedule.h"

/* Repeated data too go everywhere. */
#define EVERYWHERE 1

INLINE u64 decided(const struct moment *m, struct memory *s)
{
	u64 all = 0, backups = 0;

	EACH_PATH(i, p, m) {
		all |= (u64)(p->counts & p->room) << opaque(i);
		backups |= p->counts & p->backup;
	}
	return pick(backups, only(next_turn(m, s)), all);
}
